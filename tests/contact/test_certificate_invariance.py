"""Grades do not depend on units, on momentum, or on the order of contacts and coordinates."""

import numpy as np
import pytest

from stiction.contact.certificate.certificate import certify
from stiction.contact.certificate.laws import Entry
from stiction.contact.problem.problem import ContactProblem


def random_case(seed):
    """A problem with all kinds of rows over 6 dofs, and any answer to it."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(6, 6))
    arrays = {
        "mass": root @ root.T + np.eye(6),
        "velocity": rng.normal(size=6),
        "force": 100 * rng.normal(size=6),
        "dt": 0.01,
        "normal": rng.normal(size=(5, 6)),
        "tangent": rng.normal(size=(5, 2, 6)),
        "friction": np.array([0.5, 0.0, np.inf, 2.0, 0.3]),
        "viscosity": rng.uniform(size=5),
        "bound": np.array([0.0, -0.1, 0.2, 0.0, -3.0]),
        "joint": rng.normal(size=(1, 6)),
        "joint_target": np.array([0.3]),
        "box": rng.normal(size=(2, 6)),
        "box_limit": np.array([0.2, 0.05]),
        "box_contact": np.array([-1, 3]),
        "box_friction": np.array([0.0, 0.4]),
    }
    answer = {
        "normal": rng.normal(size=5),
        "tangent": rng.normal(size=(5, 2)),
        "joint": rng.normal(size=1),
        "box": rng.normal(size=2),
        "velocity": rng.normal(size=6),
    }
    return arrays, answer


LAWS = [
    ("coulomb", None),
    ("coulomb", 8),
    ("frictionless", None),
    ("no-slip", None),
    ("viscous", None),
    ("convex", None),
]


def grades(arrays, answer, law, facets):
    return np.array(certify(ContactProblem(**arrays), **answer, law=law, facets=facets).scaled)


def in_units(arrays, answer, kilogram=1.0, metre=1.0, second=1.0):
    """The same in units of which the old ones are so many; dofs 0 to 2 are lengths, joint
    and box rows angles."""
    size = np.array([metre] * 3 + [1.0] * 3)  # of a coordinate
    force = kilogram * metre**2 / second**2 / size
    impulse = kilogram * metre / second
    speed = metre / second
    a = dict(arrays)
    a["mass"] = arrays["mass"] * kilogram * metre**2 / np.outer(size, size)
    a["velocity"] = arrays["velocity"] * size / second
    a["force"] = arrays["force"] * force
    a["dt"] = arrays["dt"] * second
    a["normal"] = arrays["normal"] * metre / size
    a["tangent"] = arrays["tangent"] * metre / size
    a["viscosity"] = arrays["viscosity"] * kilogram / second
    a["bound"] = arrays["bound"] * speed
    a["joint"] = arrays["joint"] / size
    a["joint_target"] = arrays["joint_target"] / second
    a["box"] = arrays["box"] / size
    a["box_limit"] = arrays["box_limit"] * impulse * metre
    a["box_friction"] = arrays["box_friction"] * metre
    b = {
        "normal": answer["normal"] * impulse,
        "tangent": answer["tangent"] * impulse,
        "joint": answer["joint"] * impulse * metre,
        "box": answer["box"] * impulse * metre,
        "velocity": answer["velocity"] * size / second,
    }
    return a, b


@pytest.mark.parametrize(("law", "facets"), LAWS)
@pytest.mark.parametrize(
    "units",
    [
        {"kilogram": 1e-6},
        {"metre": 1e-3},
        {"metre": 1e3},
        {"second": 1e3},
        {"kilogram": 1e3, "metre": 1e-3, "second": 1e-2},
    ],
)
def test_units_do_not_matter(units, law, facets):
    for seed in range(5):
        arrays, answer = random_case(seed)
        before = grades(arrays, answer, law, facets)
        after = grades(*in_units(arrays, answer, **units), law, facets)
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-13)
        assert before[Entry.DYNAMICS] > 0.01


@pytest.mark.parametrize("momentum", [1e-8, 1e-3, 1e4])
def test_how_much_momentum_there_is_does_not_matter(momentum):
    scaled_by_it = ("velocity", "force", "bound", "joint_target", "box_limit")
    for seed in range(5):
        arrays, answer = random_case(seed)
        more = {k: v * momentum if k in scaled_by_it else v for k, v in arrays.items()}
        moved = {k: v * momentum for k, v in answer.items()}
        before = grades(arrays, answer, "coulomb", None)
        after = grades(more, moved, "coulomb", None)
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(("law", "facets"), LAWS)
def test_the_order_of_contacts_and_coordinates_does_not_matter(law, facets):
    rng = np.random.default_rng(0)
    for seed in range(5):
        arrays, answer = random_case(seed)
        order, dofs = rng.permutation(5), rng.permutation(6)
        mixed, moved = dict(arrays), dict(answer)
        for name in ("normal", "tangent", "friction", "viscosity", "bound"):
            mixed[name] = mixed[name][order]
        for name in ("mass", "velocity", "force", "normal", "tangent", "joint", "box"):
            mixed[name] = mixed[name][..., dofs]
        mixed["mass"] = mixed["mass"][dofs]
        mixed["box_contact"] = np.array([-1, np.flatnonzero(order == 3)[0]])
        for name in ("normal", "tangent"):
            moved[name] = moved[name][order]
        moved["velocity"] = moved["velocity"][dofs]
        before, after = grades(arrays, answer, law, facets), grades(mixed, moved, law, facets)
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-13)
