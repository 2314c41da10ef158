"""Problems whose rows contradict each other are `infeasible` under every model, by proof."""

from collections import Counter

import numpy as np
import pytest
from scipy.optimize import linprog

from stiction.contact import (
    Baraff,
    ContactProblem,
    Coulomb,
    DrumwrightShell,
    Frictionless,
    NoSlip,
    Viscous,
)
from stiction.contact.certificate.contradiction import is_contradictory
from stiction.status import Status

MODELS = [Coulomb(), Frictionless(), NoSlip(), DrumwrightShell(), Viscous(), Baraff()]


def name(model):
    return type(model).__name__


def wedged(rng, unit=1.0):
    """Contacts on a body whose normals, weighted, add up to nothing, and bounds that add up to
    more than nothing: no velocity parts them all."""
    nc, nv = int(rng.integers(2, 6)), 6
    normal = rng.normal(size=(nc, nv))
    weights = rng.uniform(0.2, 1.0, nc - 1)
    normal[-1] = -weights @ normal[:-1]
    bound = rng.uniform(0.0, 0.3, nc)
    bound[-1] = rng.uniform(0.05, 0.5) - weights @ bound[:-1]
    scale = 10.0 ** rng.uniform(-3, 3, nv) if unit != 1.0 else np.ones(nv)
    return ContactProblem(
        mass=np.diag(scale**2),
        velocity=rng.normal(size=nv) / scale,
        force=np.zeros(nv),
        dt=1e-2,
        normal=normal * scale,
        tangent=rng.normal(size=(nc, 2, nv)) * scale,
        friction=rng.uniform(0.1, 1.0, nc),
        bound=bound,
    )


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_bounds_that_contradict_each_other_are_infeasible_under_every_model(model):
    rng = np.random.default_rng(0)
    for unit in (1.0, 2.0):
        for _ in range(10):
            assert model.solve(wedged(rng, unit)).status is Status.INFEASIBLE


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_a_limit_that_a_joint_forbids_is_infeasible_under_every_model(model):
    problem = ContactProblem(
        mass=np.eye(2),
        velocity=[0.0, 1.0],
        force=np.zeros(2),
        dt=0.1,
        normal=[[1.0, 0.0]],
        bound=[0.1],
        joint=[[1.0, 0.0]],
    )
    assert model.solve(problem).status is Status.INFEASIBLE


def test_no_proof_is_found_where_bodies_can_move():
    rng = np.random.default_rng(1)
    for _ in range(200):
        nc, nv = int(rng.integers(1, 7)), 6
        normal, goal = rng.normal(size=(nc, nv)), rng.normal(size=nv)
        joint = rng.normal(size=(2, nv))
        problem = ContactProblem(
            mass=np.eye(nv),
            velocity=np.zeros(nv),
            force=np.zeros(nv),
            dt=0.1,
            normal=normal,
            bound=normal @ goal,  # no room to spare
            joint=joint,
            joint_target=joint @ goal,
        )
        assert not is_contradictory(problem, "coulomb")


def crowded(rng, unit):
    """Up to a dozen contacts and two joints on few degrees of freedom, bounds at random: about half
    of these contradict themselves. `unit` not 1: degrees of freedom in units of their own."""
    nv, nc = int(rng.integers(1, 7)), int(rng.integers(2, 13))
    nj = int(rng.integers(0, min(3, nv)))
    scale = 10.0 ** rng.uniform(-3, 3, nv) if unit != 1.0 else np.ones(nv)
    return ContactProblem(
        mass=np.diag(scale**2),
        velocity=rng.normal(size=nv) / scale,
        force=np.zeros(nv),
        dt=1e-2,
        normal=rng.normal(size=(nc, nv)) * scale,
        tangent=rng.normal(size=(nc, 2, nv)) * scale,
        friction=rng.uniform(0.1, 1.0, nc),
        bound=rng.normal(scale=0.3, size=nc),
        joint=rng.normal(size=(nj, nv)) * scale,
        joint_target=rng.normal(scale=0.1, size=nj),
    )


def contradicts(problem, model):
    """Whether a linear program finds no velocity that obeys the rows that the model asks for."""
    arrays = problem.arrays
    scale = 1.0 / np.sqrt(np.diag(arrays.mass))
    equal, target = arrays.joint, arrays.joint_target
    if isinstance(model, NoSlip):
        held = arrays.tangent[arrays.bound >= 0.0].reshape(-1, len(scale))
        equal, target = np.vstack([equal, held]), np.append(target, np.zeros(len(held)))
    found = linprog(
        np.zeros(len(scale)), A_ub=-arrays.normal * scale, b_ub=-arrays.bound,
        A_eq=equal * scale, b_eq=target, bounds=(None, None),
    )  # fmt: skip
    return found.status == 2


def survey(seed, count):
    """How often each model says what, of crowded problems that contradict themselves and others."""
    rng, seen = np.random.default_rng(seed), Counter()
    for k in range(count):
        problem = crowded(rng, 1.0 + k % 2)
        for model in MODELS:
            truth = "contradictory" if contradicts(problem, model) else "possible"
            seen[name(model), truth, str(model.solve(problem).status)] += 1
    return seen


def assert_statuses(seen):
    """What contradicts itself is called infeasible, and nothing else is."""
    for (model, truth, status), times in seen.items():
        assert (truth == "contradictory") == (status == "infeasible"), (model, status, times)


def test_crowded_problems_are_infeasible_where_a_linear_program_says_so():
    assert_statuses(survey(seed=5, count=20))


@pytest.mark.long
def test_a_thousand_crowded_problems_are_infeasible_where_a_linear_program_says_so():
    seen = survey(seed=6, count=1000)
    for line, times in sorted(seen.items()):
        print(*line, times)
    assert_statuses(seen)
