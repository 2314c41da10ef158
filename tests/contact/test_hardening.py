"""Forces of contacts that give, and grow harder."""

import numpy as np
import pytest

from stiction.contact.problem.cones import Cones
from stiction.contact.problem.scaled import ScaledProblem
from stiction.contact.solvers.baraff.driving import LEFT_BROKEN
from stiction.contact.solvers.baraff.hardening import harden
from stiction.reproduce.families import stack


def pile(seed, copies=1):
    """Three blocks on a floor under a random wrench: 16 contacts of 18 coordinates; each contact
    given `copies` times."""
    arrays = stack(3, 16, np.random.default_rng(seed))
    return ScaledProblem(
        arrays.problem(
            bound=0.0,
            normal=np.repeat(arrays.normal, copies, axis=0),
            tangent=np.repeat(arrays.tangent, copies, axis=0),
            friction=np.repeat(arrays.friction, copies),
        )
    ).cones


def violation(p, theta, phi, fixed, along):
    """Of the laws on unit rows: static friction by Coulomb's, dynamic friction along `along`."""
    v = theta @ p.normal + np.einsum("ut,utr->r", phi, p.rows)
    a, slip = p.normal @ v + p.free_normal, p.rows @ v + p.free
    worst = max(-a.min(), -theta.min(), np.abs(np.minimum(theta, a)).max())
    reach = p.mu * theta
    for u, at_edge in enumerate(fixed):
        if at_edge:
            worst = max(worst, np.abs(phi[u] - reach[u] * along[u]).max())
        else:
            size = np.hypot(*phi[u])
            power = phi[u] @ slip[u] + reach[u] * np.hypot(*slip[u])
            worst = max(worst, size - reach[u], abs(power))
    return worst


@pytest.mark.parametrize("sliding", [0.0, 0.5, 1.0])
def test_hardened_forces_obey_the_laws_of_static_and_of_dynamic_friction(sliding):
    rng = np.random.default_rng(11)
    for seed in range(40):
        p = pile(seed)
        fixed = rng.random(len(p.mu)) < sliding
        angle = rng.uniform(0.0, 2.0 * np.pi, len(p.mu))
        along = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        theta, phi, residual, steps = harden(p, fixed, along)
        assert residual <= LEFT_BROKEN
        assert violation(p, theta, phi, fixed, along) < 1e-8
        assert steps < 40


def test_contacts_that_are_given_twice_share_their_load_alike():
    p = pile(5, copies=2)
    fixed, along = np.zeros(len(p.mu), np.bool_), np.zeros((len(p.mu), 2))
    theta, phi, residual, _ = harden(p, fixed, along)
    assert residual <= LEFT_BROKEN
    assert theta.max() > 0.1
    np.testing.assert_allclose(theta[::2], theta[1::2], atol=1e-9)
    np.testing.assert_allclose(phi[::2], phi[1::2], atol=1e-9)


def test_where_no_finite_force_exists_the_residual_says_so():
    # Dynamic friction that pushes the contact down harder than its normal force lifts it.
    row = np.array([[1.0, 0.0]])
    rows = np.array([[[-0.8, 0.6], [0.6, 0.8]]])
    p = Cones(
        row, np.array([-1.0]), np.zeros(1, np.int64), np.arange(2), np.full(1, 2.0), np.zeros(1),
        rows, np.zeros((1, 2)), np.zeros(1, np.bool_), np.ones(1), np.ones(1),
        np.empty(0, np.int64), 1.0,
    )  # fmt: skip
    _, _, residual, steps = harden(p, np.ones(1, np.bool_), np.array([[1.0, 0.0]]))
    assert residual > 1e-3
    assert steps <= 200
