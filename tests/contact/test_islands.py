"""Problems that fall into parts, and those given by their contact-space matrix."""

import numpy as np
import pytest
from random_problem import NC, NV, arguments, delassus_of, with_entry
from siconos import friction_files, read_friction

from stiction.contact.problem.problem import ContactProblem
from stiction.errors import InvalidInput


def two_body_arguments():
    """Bodies of 3 dofs each; contacts 0 and 2 on the first, 1 on the second."""
    normal = np.zeros((3, 6))
    normal[0, 0] = normal[2, 2] = normal[1, 4] = 1.0
    return {
        "mass": np.kron(np.eye(2), np.eye(3) + 0.1),
        "velocity": np.arange(6.0),
        "force": np.ones(6),
        "dt": 0.1,
        "normal": normal,
        "tangent": np.zeros((3, 2, 6)),
        "friction": 0.5,
    }


def members(island):
    return tuple(group.tolist() for group in island)


def test_bodies_that_do_not_touch_are_islands():
    first, second = ContactProblem(**two_body_arguments()).islands()
    assert members(first) == ([0, 2], [], [], [0, 1, 2])
    assert members(second) == ([1], [], [], [3, 4, 5])


@pytest.mark.parametrize("link", ["tangent", "joint", "box", "mass"])
def test_anything_that_couples_two_bodies_joins_their_islands(link):
    given = two_body_arguments()
    row = np.array([1.0, 0, 0, 0, 0, -1.0])
    if link == "tangent":
        given["tangent"][0, 1] = row
    elif link == "mass":
        given["mass"][0, 5] = given["mass"][5, 0] = 0.01
    else:
        given[link] = row[None]
        given["box_limit"] = 1.0 if link == "box" else None
    (island,) = ContactProblem(**given).islands()
    assert island.dofs.tolist() == list(range(6))
    assert island.contacts.tolist() == [0, 1, 2]
    assert (len(island.joints), len(island.boxes)) == (int(link == "joint"), int(link == "box"))


def test_rows_of_zeros_and_untouched_bodies_disturb_no_island():
    given = two_body_arguments()
    given["normal"] = np.vstack([given["normal"][:1], np.zeros((1, 6))])
    given["tangent"] = np.zeros((2, 2, 6))
    given["joint"] = np.zeros((1, 6))
    islands = [members(island) for island in ContactProblem(**given).islands()]
    assert islands == [([0], [], [], [0, 1, 2]), ([1], [], [], []), ([], [0], [], [])]


def test_a_row_is_in_the_island_of_its_contact_whatever_it_touches():
    given = two_body_arguments()
    rows = np.zeros((4, 6))
    rows[0, 0] = rows[1, 5] = rows[2, 1] = 1.0  # the last is a row of zeros
    given.update(box=rows, box_limit=0.1, box_friction=0.2)
    apart = ContactProblem(**given, box_contact=[2, 1, -1, 1])
    first, second = apart.islands()
    assert members(first) == ([0, 2], [], [0, 2], [0, 1, 2])
    assert members(second) == ([1], [], [1, 3], [3, 4, 5])
    part = apart.restricted(first)
    assert part.box_contact.tolist() == [1, -1]
    assert part.box_friction.tolist() == [0.2, 0.0]
    assert apart.restricted(second).box_contact.tolist() == [0, 0]
    (together,) = ContactProblem(**given, box_contact=[1, -1, -1, -1]).islands()[:-1]
    assert members(together) == ([0, 1, 2], [], [0, 1, 2], list(range(6)))


def test_a_contact_of_zeros_goes_with_its_rows():
    given = two_body_arguments()
    given["normal"][1] = 0.0
    given.update(box=np.zeros((2, 6)), box_limit=0.1, box_friction=0.2, box_contact=[1, 1])
    islands = [members(island) for island in ContactProblem(**given).islands()]
    assert islands == [([0, 2], [], [], [0, 1, 2]), ([1], [], [0, 1], [])]
    given["box"][1, 4] = 1.0
    islands = [members(island) for island in ContactProblem(**given).islands()]
    assert islands == [([0, 2], [], [], [0, 1, 2]), ([1], [], [0, 1], [3, 4, 5])]


def test_islands_solved_apart_are_the_same_mechanics():
    problem = ContactProblem(**two_body_arguments())
    f_n = np.array([0.3, 0.7, 0.2])
    whole = problem.velocity_from(f_n)
    for island in problem.islands():
        part = problem.restricted(island)
        np.testing.assert_allclose(
            part.velocity_from(f_n[island.contacts]), whole[island.dofs], rtol=1e-14
        )


def test_a_delassus_problem_is_the_same_mechanics_as_its_mass_problem():
    bare = ("joint", "joint_target", "box", "box_limit", "box_contact", "box_friction")
    given = {**arguments(), **dict.fromkeys(bare)}
    massive = ContactProblem(**given)
    along = massive.contact_velocity(massive.free_velocity)
    free = np.column_stack([along.normal, along.tangent]).ravel()
    problem = ContactProblem.from_delassus(
        delassus_of(massive), free, friction=massive.friction, bound=massive.bound
    )
    assert problem.whitened.rows_normal.shape == (NC, NV)  # the rank of W
    rng = np.random.default_rng(1)
    f_n, f_t = rng.normal(size=NC), rng.normal(size=(NC, 2))
    ours = problem.contact_velocity(problem.velocity_from(f_n, f_t))
    theirs = massive.contact_velocity(massive.velocity_from(f_n, f_t))
    np.testing.assert_allclose(ours.normal, theirs.normal, rtol=1e-12)
    np.testing.assert_allclose(ours.tangent, theirs.tangent, rtol=1e-12)
    np.testing.assert_allclose(problem.whitened.free_normal, massive.whitened.free_normal)
    with pytest.raises(AttributeError, match="whitened"):
        _ = problem.mass


def test_a_planar_delassus_problem_has_a_second_tangent_of_zeros():
    W = np.array([[1.6, -1.2], [-1.2, 3.4]])
    problem = ContactProblem.from_delassus(W, [-0.1, 1.0], friction=0.5, dimension=2)
    w = problem.whitened
    assert not w.rows_tangent[:, 1].any()
    rows = np.stack([w.rows_normal[0], w.rows_tangent[0, 0]])
    np.testing.assert_allclose(rows @ rows.T, W, rtol=1e-14)
    u = problem.velocity_from([1.0], [[2.0, 5.0]])
    np.testing.assert_allclose(u, W @ [1.0, 2.0] + [-0.1, 1.0], rtol=1e-15)


def test_contacts_without_a_common_block_are_islands_of_a_delassus_problem():
    W = np.kron(np.eye(3), np.eye(3) + 0.5)
    W[6, 0] = W[0, 6] = 0.1
    problem = ContactProblem.from_delassus(W, np.arange(9.0), friction=0.5)
    first, second = problem.islands()
    assert members(first) == ([0, 2], [], [], [0, 1, 2, 6, 7, 8])
    assert members(second) == ([1], [], [], [3, 4, 5])
    part = problem.restricted(first)
    assert part.nc == 2
    assert part.delassus[3, 0] == 0.1


def test_a_free_velocity_outside_the_range_of_w_is_kept():
    problem = ContactProblem.from_delassus(np.diag([1.0, 0.0, 0.0]), [-1, 2, 3], friction=0.5)
    assert problem.whitened.rows_normal.shape == (1, 1)
    assert problem.whitened.free_tangent.tolist() == [[2.0, 3.0]]


@pytest.mark.parametrize(
    ("W", "match"),
    [
        (np.eye(4), "shape"),
        (with_entry(np.eye(3), (0, 1), 0.5), "symmetric"),
        (with_entry(np.eye(3), (2, 2), -1.0), "negative"),
        (with_entry(np.eye(3), (1, 1), np.nan), "finite"),
        (np.array([[1.0, 2.0, 0], [2.0, 1.0, 0], [0, 0, 1.0]]), "semidefinite"),
        (np.array([[0, 1e-3, 0], [0, 1.0, 0], [0, 0, 1.0]]), "symmetric"),
    ],
)
def test_a_matrix_that_is_no_delassus_matrix_is_refused(W, match):
    with pytest.raises(InvalidInput, match=match) as caught:
        ContactProblem.from_delassus(W, np.zeros(3), friction=0.5)
    assert caught.value.name == "delassus"


def test_rows_that_do_not_make_whole_contacts_are_refused():
    with pytest.raises(InvalidInput, match="free_velocity"):
        ContactProblem.from_delassus(np.eye(4), np.zeros(4), friction=0.5)
    with pytest.raises(InvalidInput, match="dimension"):
        ContactProblem.from_delassus(np.eye(4), np.zeros(4), friction=0.5, dimension=4)


@friction_files
def test_siconos_problems_are_taken_as_they_are(path):
    data = read_friction(path)
    problem = ContactProblem.from_delassus(
        data.W, data.q, friction=data.mu, dimension=data.dimension
    )
    assert problem.asymmetry < 1e-2
    np.testing.assert_array_equal(problem.delassus, 0.5 * (data.W + data.W.T))
    w = problem.whitened
    rows = np.concatenate([w.rows_normal[:, None], w.rows_tangent[:, : data.dimension - 1]], axis=1)
    rows = rows.reshape(len(data.q), -1)
    diagonal = np.sqrt(problem.delassus.diagonal())
    off = np.abs(rows @ rows.T - problem.delassus) / np.outer(diagonal, diagonal)
    # Files with seven printed digits are indefinite by as much; the rest is rounding.
    assert off.max() < (2e-7 if problem.indefiniteness > 1e-12 else 1e-13)
