"""Parts of a problem by cones that share no coordinate."""

import numpy as np

from stiction.contact.problem.cone_islands import label_cones, part_of
from stiction.contact.problem.cones import Cones


def cones(blocks):
    """Contacts with a disc each, of which contact i touches the coordinates blocks[i] alone."""
    rng = np.random.default_rng(3)
    n, r = len(blocks), 1 + max(max(block) for block in blocks)
    normal, rows = np.zeros((n, r)), np.zeros((n, 2, r))
    for i, block in enumerate(blocks):
        normal[i, block] = rng.normal(size=len(block))
        rows[i][:, block] = rng.normal(size=(2, len(block)))
    return Cones(
        normal, rng.normal(size=n), np.arange(n), np.arange(n + 1), np.full(n, 0.5), np.zeros(n),
        rows, rng.normal(size=(n, 2)), np.zeros(n, np.bool_), np.ones(n), np.ones(n),
        np.empty(0, np.int64), 1.0,
    )  # fmt: skip


def test_contacts_are_together_if_a_chain_of_bodies_leads_from_one_to_the_other():
    whole = cones([[0, 1], [4, 5], [1, 2], [5], [2, 3]])
    count, contact, unit, column = label_cones(whole)
    assert count == 2
    assert contact.tolist() == [0, 1, 0, 1, 0]
    assert unit.tolist() == contact.tolist()
    assert column.tolist() == [0, 0, 0, 0, 1, 1]


def test_a_part_has_its_own_rows_and_load():
    whole = cones([[0, 1], [4, 5], [1, 2], [5], [2, 3]])
    count, *labels = label_cones(whole)
    for k in range(count):
        part, contacts, units = part_of(whole, k, *labels)
        columns = np.flatnonzero(labels[2] == k)
        np.testing.assert_array_equal(part.normal, whole.normal[np.ix_(contacts, columns)])
        np.testing.assert_array_equal(part.rows, whole.rows[units][:, :, columns])
        np.testing.assert_allclose(part.free_normal * part.load, whole.free_normal[contacts])
        assert max(np.abs(part.free_normal).max(), np.abs(part.free).max()) == 1.0
        assert contacts[part.parent].tolist() == whole.parent[units].tolist()


def test_a_contact_that_moves_nothing_is_a_part_of_its_own():
    whole = cones([[0], [1]])
    whole.normal[1], whole.rows[1] = 0.0, 0.0
    count, contact, _, column = label_cones(whole)
    assert count == 2
    assert contact.tolist() == [0, 1]
    assert column.tolist() == [0, -1]
