import numpy as np

from stiction.contact.solvers.interior_point import cone
from stiction.contact.solvers.interior_point.columns import COLUMNS, DX, X
from stiction.kernels.compile import kernel


@kernel
def _shorten(state, step):
    return cone.shorten(state, 0, X, DX, step)


def test_a_step_is_shortened_to_where_it_leaves_the_cone_and_no_further():
    rng = np.random.default_rng(3)
    shortened = 0
    for _ in range(300):
        state = np.zeros((1, COLUMNS))
        x, d = rng.normal(size=3), rng.normal(size=3) * 10.0 ** rng.uniform(-2, 2)
        x[0] = np.hypot(x[1], x[2]) * (1.0 + 10.0 ** rng.uniform(-6, 1))
        state[0, X : X + 3], state[0, DX : DX + 3] = x, d
        step = _shorten(state, 1.5)
        assert 0.0 <= step <= 1.5
        inside = x + 0.999 * step * d
        assert inside[0] >= np.hypot(inside[1], inside[2])
        if step < 1.5:
            shortened += 1
            outside = x + 1.001 * step * d
            assert outside[0] < np.hypot(outside[1], outside[2])
    assert 50 < shortened < 290
