import numpy as np
import pytest

from stiction.contact import ContactProblem
from stiction.reproduce.contact_lcps import directions, frictionless, stewart_trinkle, unpack
from stiction.reproduce.families import (
    SINGLE_BODIES,
    STACKS,
    grasp,
    peg,
    scaled,
    single_body,
    stack,
)

MAKERS = {f"peg {n}": lambda rng, n=n: peg(n, rng) for n in (2, 8, 16, 32, 256)}
MAKERS |= {kind: lambda rng, kind=kind: single_body(kind, rng) for kind in SINGLE_BODIES}
MAKERS |= {f"stack {m}/{n}": lambda rng, m=m, n=n: stack(m, n, rng) for m, n in STACKS}
MAKERS |= {f"grasp {n}": lambda rng, n=n: grasp(n, rng) for n in (1, 2, 4)}
ARRAYS = ("mass", "velocity", "force", "normal", "tangent", "friction", "bound")
every_family = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def make(name, seed=0):
    return MAKERS[name](np.random.default_rng(seed))


@every_family
def test_arrays_have_the_shapes_of_a_contact_problem(make):
    arrays = make(np.random.default_rng(0))
    contacts, coordinates = arrays.normal.shape
    assert arrays.mass.shape == (coordinates, coordinates)
    assert arrays.velocity.shape == arrays.force.shape == (coordinates,)
    assert arrays.tangent.shape == (contacts, 2, coordinates)
    assert arrays.friction.shape == arrays.bound.shape == (contacts,)
    assert arrays.dt > 0


@every_family
def test_mass_is_symmetric_and_positive_definite(make):
    mass = make(np.random.default_rng(0)).mass
    assert np.array_equal(mass, mass.T)
    assert np.linalg.eigvalsh(mass).min() > 0


@every_family
def test_contact_directions_are_orthonormal(make):
    arrays = make(np.random.default_rng(0))
    # The linear velocity of the body that a normal pushes, the last one in its row (before a
    # pusher, which has one coordinate only), sees the three directions themselves.
    pusher = 1 if arrays.name.startswith("grasp") else 0
    bodies = np.arange(pusher, arrays.normal.shape[1] - pusher).reshape(-1, 6)
    for normal, tangent in zip(arrays.normal, arrays.tangent, strict=True):
        touched = [body for body in bodies if normal[body].any()]
        axes = np.vstack([normal, tangent])[:, touched[-1][:3]]
        np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-14)


@every_family
def test_the_seed_decides_every_bit(make):
    first, again, other = (make(np.random.default_rng(seed)) for seed in (7, 7, 8))
    assert all(np.array_equal(getattr(first, a), getattr(again, a)) for a in ARRAYS)
    assert not np.array_equal(first.force, other.force)
    assert np.array_equal(first.normal, other.normal)


@every_family
def test_arrays_become_a_contact_problem(make):
    arrays = make(np.random.default_rng(0))
    problem = arrays.problem()
    assert isinstance(problem, ContactProblem)
    assert np.array_equal(problem.normal, arrays.normal)


@pytest.mark.parametrize("contacts", [8, 16, 32, 256])
def test_peg_has_half_its_contacts_on_each_rim(contacts):
    normal = make(f"peg {contacts}").normal
    assert normal.shape == (contacts, 6)
    np.testing.assert_allclose(normal[:, 2], 0)  # radial
    np.testing.assert_allclose(normal[: contacts // 2, :2], normal[contacts // 2 :, :2])
    np.testing.assert_allclose(normal[: contacts // 2].sum(axis=0), 0, atol=1e-12)


def test_single_bodies_are_ten_with_1_to_16_contacts():
    counts = [len(make(kind).normal) for kind in SINGLE_BODIES]
    assert counts == [1, 2, 3, 4, 6, 8, 8, 10, 12, 16]


@pytest.mark.parametrize(("blocks", "contacts"), STACKS)
def test_stack_has_the_contacts_it_was_asked_for(blocks, contacts):
    assert make(f"stack {blocks}/{contacts}").normal.shape == (contacts, 6 * blocks)


def test_stacks_are_ten_with_lloyds_largest():
    assert len(STACKS) == 10
    assert {(1, 4), (5, 20), (5, 32)} <= set(STACKS)


def test_points_where_turned_blocks_meet_lie_on_both_faces():
    arrays = stack(3, 16, np.random.default_rng(0))  # the second block is turned, the third not
    for row in arrays.normal:
        for body in row.reshape(-1, 6):
            if body.any():
                # Under a normal along z the arm (x, y) shows as the torque (y, -x). The
                # turned faces reach to the diagonal, sqrt(2) times half the side.
                assert np.hypot(body[3], body[4]) <= np.sqrt(2) * 0.05 + 1e-12
    octagon = np.linalg.norm(arrays.normal[4:12, 9:11], axis=1)
    np.testing.assert_allclose(octagon, 0.05 * np.hypot(1, np.sqrt(2) - 1))


def test_weight_of_a_stack_rests_on_its_contacts():
    # With impulses m g h / 4 times the blocks above, at every corner, nothing moves.
    arrays = stack(4, 16, np.random.default_rng(0))
    gravity = np.tile([0, 0, -9.81, 0, 0, 0], 4)
    carried = np.repeat([4, 3, 2, 1], 4) * 9.81 / 4
    np.testing.assert_allclose(gravity + arrays.normal.T @ carried, 0, atol=1e-12)


def test_grasp_of_two_boxes_has_drumwrights_sizes():
    arrays = grasp(2)
    assert arrays.normal.shape == (36, 14)
    assert len(stewart_trinkle(arrays, 4)[1]) == 216
    assert len(np.unique(arrays.normal, axis=0)) == 12


def test_grasp_pushes_the_row_together_and_pulls_the_boxes_down():
    arrays = grasp(3)
    assert arrays.force[0] == 300.0
    assert arrays.force[-1] == -300.0
    assert np.count_nonzero(arrays.force) == 2 + 3
    # 300 N at each of the four faces, spread over its contacts, balance along the row.
    pressed = arrays.normal.T @ np.full(48, 300 / 12) + arrays.force
    pressed[[3, 9, 15]] += 9.81
    np.testing.assert_allclose(pressed, 0, atol=1e-10)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda rng: peg(7, rng), "contacts"),
        (lambda rng: single_body("block on ice", rng), "block in corner"),
        (lambda rng: stack(2, 10, rng), "contacts"),
        (lambda rng: stack(2, 16, rng), "contacts"),
        (lambda rng: grasp(0, rng), "boxes"),
    ],
)
def test_impossible_requests_say_what_is_possible(call, named):
    with pytest.raises(ValueError, match=named):
        call(np.random.default_rng(0))


# --- The assembled LCP -----------------------------------------------------------------


@pytest.mark.parametrize("facets", [3, 4, 8])
@pytest.mark.parametrize("name", ["block in corner", "stack 3/20", "grasp 2"])
def test_assembled_lcp_gives_the_velocities_computed_by_hand(name, facets):
    rng = np.random.default_rng(1)
    arrays = make(name)
    contacts = len(arrays.normal)
    # Families are at rest and touching: move them and open gaps, so that every term counts.
    velocity, bound = rng.standard_normal(len(arrays.mass)), rng.standard_normal(contacts)
    arrays = type(arrays)(**{**vars(arrays), "velocity": velocity, "bound": bound})
    M, q = stewart_trinkle(arrays, facets)
    z = rng.uniform(size=len(q))
    normal, tangent = unpack(z, contacts, facets)
    slide = z[-contacts:]
    along = z[contacts:-contacts].reshape(contacts, facets)

    impulse = arrays.dt * arrays.force
    for i in range(contacts):
        impulse = impulse + arrays.normal[i] * normal[i] + arrays.tangent[i].T @ tangent[i]
    after = velocity + np.linalg.solve(arrays.mass, impulse)
    parting = [arrays.normal[i] @ after - bound[i] for i in range(contacts)]
    sliding = [
        np.array([np.cos(2 * np.pi * j / facets), np.sin(2 * np.pi * j / facets)])
        @ (arrays.tangent[i] @ after)
        + slide[i]
        for i in range(contacts)
        for j in range(facets)
    ]
    left = [arrays.friction[i] * normal[i] - along[i].sum() for i in range(contacts)]
    np.testing.assert_allclose(M @ z + q, [*parting, *sliding, *left], rtol=1e-10, atol=1e-10)


@every_family
def test_matrix_is_copositive(make):
    rng = np.random.default_rng(2)
    M, _ = stewart_trinkle(make(rng), 4)
    for z in rng.exponential(size=(20, len(M))) * (rng.uniform(size=(20, len(M))) < 0.5):
        assert z @ M @ z >= -1e-10 * np.abs(M).max() * (z @ z)


@every_family
def test_frictionless_lcp_is_the_corner_of_the_full_one(make):
    arrays = make(np.random.default_rng(3))
    contacts = len(arrays.normal)
    matrix, vector = frictionless(arrays)
    M, q = stewart_trinkle(arrays, 4)
    assert np.array_equal(matrix, matrix.T)
    np.testing.assert_allclose(matrix, M[:contacts, :contacts], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(vector, q[:contacts], rtol=1e-12, atol=1e-12)


def test_facets_are_evenly_spaced_unit_vectors():
    np.testing.assert_allclose(directions(4), [[1, 0], [0, 1], [-1, 0], [0, -1]], atol=1e-15)
    np.testing.assert_allclose(directions(8).sum(axis=0), 0, atol=1e-14)


def test_problem_and_arrays_give_the_same_lcp():
    arrays = make("stack 3/20")
    for ours, theirs in zip(
        stewart_trinkle(arrays, 8), stewart_trinkle(arrays.problem(), 8), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_infinite_friction_has_no_facets():
    with pytest.raises(ValueError, match=r"friction\[0\]"):
        stewart_trinkle(grasp(1, mu=np.inf), 4)


def test_two_facets_do_not_span_a_plane():
    with pytest.raises(ValueError, match="facets"):
        stewart_trinkle(grasp(1), 2)


@pytest.mark.parametrize("momentum", [1e-8, 1.0, 1e4])
@pytest.mark.parametrize("mass", [1e-6, 1.0])
def test_scaling_changes_the_units_and_nothing_else(momentum, mass):
    rng = np.random.default_rng(4)
    base = make("stack 2/12")
    moving = {"velocity": rng.standard_normal(12), "bound": rng.standard_normal(12)}
    base = type(base)(**{**vars(base), **moving})
    other = scaled(base, momentum=momentum, mass=mass)
    np.testing.assert_allclose(other.mass @ other.velocity, momentum * base.mass @ base.velocity)
    M, q = stewart_trinkle(base, 4)
    other_M, other_q = stewart_trinkle(other, 4)
    # An answer in impulses z, slides s becomes momentum z, momentum / mass s.
    units = np.repeat([momentum, momentum / mass], [60, 12])
    z = rng.uniform(size=72)
    w, other_w = M @ z + q, other_M @ (units * z) + other_q
    np.testing.assert_allclose(other_w[:60], w[:60] * momentum / mass, rtol=1e-9)
    np.testing.assert_allclose(other_w[60:], w[60:] * momentum, rtol=1e-9)
