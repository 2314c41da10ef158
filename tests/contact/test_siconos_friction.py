"""The interior point on the friction problems of the Siconos collection, and on awkward ones."""

from time import perf_counter

import numpy as np
import pytest
from siconos import friction_files, read_friction

from stiction.contact import ContactProblem
from stiction.contact.models.model import conclude, from_attempt
from stiction.contact.problem.scaled import ScaledProblem
from stiction.contact.solvers.attempt import Options
from stiction.contact.solvers.table import SOLVERS
from stiction.reproduce.families import grasp, scaled, stack
from stiction.status import Status


def solve(problem, start=None):
    began = perf_counter()
    scaled = ScaledProblem(problem)
    before = None if start is None else scaled.scale(start.normal, start.tangent, start.box)
    attempt = SOLVERS["conic"](scaled, before, Options())
    return conclude(problem, "coulomb", from_attempt(scaled, attempt, "conic"), began)


def load(path):
    data = read_friction(path)
    return ContactProblem.from_delassus(data.W, data.q, friction=data.mu, dimension=data.dimension)


def random_bodies(rng, contacts, bodies, mu, copies=1, masses=None, **rows):
    """Bodies of size 0.1 m in contact with the world and each other at random points."""
    nv = 6 * bodies
    masses = np.ones(bodies) if masses is None else masses
    diagonal = np.concatenate([[m, m, m, 0.01 * m, 0.02 * m, 0.015 * m] for m in masses])
    frame = np.zeros((contacts, 3, nv))
    for rows_here in frame:
        upper, lower = rng.choice(bodies + 1, 2, replace=False)
        axes = np.linalg.qr(rng.standard_normal((3, 3)))[0].T
        for body, sign in ((upper, 1.0), (lower, -1.0)):
            if body < bodies:  # the last one is the world
                point = rng.uniform(-0.1, 0.1, 3)
                rows_here[:, 6 * body : 6 * body + 3] = sign * axes
                rows_here[:, 6 * body + 3 : 6 * body + 6] = sign * np.cross(point, axes)
    frame = np.repeat(frame, copies, axis=0)
    return ContactProblem(
        mass=np.diag(diagonal),
        velocity=rng.standard_normal(nv),
        force=-9.81 * diagonal * (np.arange(nv) % 6 == 2),
        dt=0.01,
        normal=frame[:, 0],
        tangent=frame[:, 1:],
        friction=np.resize(mu, contacts * copies),
        **rows,
    )


@friction_files
def test_every_problem_of_the_collection_is_solved(path):
    solution = solve(load(path))
    assert solution.certificate.worst <= 1e-8
    assert solution.status is Status.SOLVED


@friction_files
def test_its_own_answer_is_a_warm_start(path):
    problem = load(path)
    if problem.nc > 100:
        pytest.skip("a step of least norm takes long there, and the case is the same")
    first = solve(problem)
    again = solve(problem, first)
    assert again.certificate.worst <= 1e-8
    assert again.pivots <= 3


@pytest.mark.parametrize("momentum", [1e-8, 1.0, 1e4])
@pytest.mark.parametrize("mass", [1e-6, 1.0])
def test_units_do_not_matter(momentum, mass):
    rng = np.random.default_rng(7)
    for arrays in (stack(5, 32, rng), grasp(2, rng)):
        assert solve(scaled(arrays, momentum, mass).problem()).certificate.passed


@pytest.mark.parametrize(
    "mu", [[0.0], [0.0, 0.7], [1e-8, 1e-3], [0.1, 1.0, 10.0], [1e3], [0.5, np.inf]], ids=str
)
def test_friction_of_any_size(mu):
    rng = np.random.default_rng(11)
    for _ in range(5):
        assert solve(random_bodies(rng, 8, 3, mu)).certificate.passed


@pytest.mark.parametrize("copies", [2, 100, 300])
def test_contacts_given_many_times(copies):
    problem = random_bodies(np.random.default_rng(2), 4, 1, [0.5], copies)
    assert solve(problem).certificate.passed


def test_masses_six_decades_apart():
    rng = np.random.default_rng(3)
    for _ in range(5):
        problem = random_bodies(rng, 12, 3, [0.5], masses=[1e-3, 1.0, 1e3])
        assert solve(problem).certificate.passed


def test_joints_and_box_rows_beside_contacts():
    rng = np.random.default_rng(5)
    joint = rng.standard_normal((3, 18))
    joint[2] = joint[0] - joint[1]  # dependent
    problem = random_bodies(
        rng, 6, 3, [0.4], joint=joint, box=rng.standard_normal((4, 18)),
        box_limit=[0.0, 1e-3, 0.1, np.inf],
    )  # fmt: skip
    assert solve(problem).certificate.passed


def test_a_contact_that_nothing_can_keep_from_closing_is_infeasible():
    problem = ContactProblem.from_delassus(np.zeros((3, 3)), [-1.0, 0.0, 0.0], friction=0.5)
    assert solve(problem).status is Status.INFEASIBLE


@pytest.mark.long
def test_random_problems_with_mu_over_four_decades_are_lost_at_most_once_in_a_hundred():
    # The path turns back there; it is the last rung, and pivoting solves what it loses.
    rng = np.random.default_rng(2024)
    lost = 0
    for _ in range(2000):
        contacts, bodies = int(rng.integers(1, 30)), int(rng.integers(1, 8))
        mu = 10.0 ** rng.uniform(-3, 1, contacts) * (rng.random(contacts) < 0.9)
        solution = solve(random_bodies(rng, contacts, bodies, mu))
        lost += solution.status is Status.ERROR
    assert lost <= 20
