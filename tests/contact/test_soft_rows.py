"""Free velocity and inverse inertias where soft rows hold what moves, beside dense matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from stiction.contact.problem.blocks import ROWS, Datum, Head, Kind, allocate
from stiction.contact.problem.soft_rows import MOST_SOFT_ROWS, yield_to
from stiction.kernels.compile import kernel
from stiction.kernels.skyline import factor_skyline

NV, CONTACTS = 9, 4


@kernel
def soften(b, soft, count, factor, yields, weight, v_free):
    factor_skyline(factor, b.row, b.first)
    return yield_to(b, soft, count, factor, yields, weight, v_free)


def problem(soft, rng):
    """(blocks, dense mass, rows of soft blocks, rows of contacts) of so many soft rows."""
    count = soft + CONTACTS
    b = allocate(NV, count, (soft + 3 * CONTACTS) * NV, NV * (NV + 1) // 2)
    half = rng.normal(size=(NV, NV))
    mass = half @ half.T + np.eye(NV)
    for j in range(NV):
        b.row[j] = j * (j + 1) // 2
        b.mass[b.row[j] : b.row[j] + j + 1] = mass[j, : j + 1]
    rows, at = [], 0
    for i in range(count):
        n = 1 if i < soft else 3
        rows.append(rng.normal(size=(n, NV)))
        b.head[i, [Head.KIND, Head.ROWS, Head.WIDTH]] = (
            Kind.SOFT if i < soft else Kind.CONTACT,
            n,
            NV,
        )
        b.head[i, Head.COLUMN] = b.head[i, Head.VALUE] = at
        b.column[at : at + NV] = np.arange(NV)
        b.value[at : at + n * NV] = rows[-1].ravel()
        at += n * NV
    b.data[:soft, Datum.DRAG] = 10.0 ** rng.uniform(-2.0, 1.5, soft)
    b.data[:soft, Datum.BOUND] = rng.normal(size=soft)
    return b, mass, np.concatenate(rows[:soft]), np.array(rows[soft:])


@pytest.mark.parametrize("soft", [1, 2, 7, MOST_SOFT_ROWS])
def test_soft_rows_one_after_another_are_those_of_the_dense_mass(soft):
    rng = np.random.default_rng(soft)
    b, mass, held, contacts = problem(soft, rng)
    drag, target = b.data[:soft, Datum.DRAG], b.data[:soft, Datum.BOUND]
    before = rng.normal(size=NV)
    weight = np.zeros((soft + CONTACTS, ROWS))
    weight[soft:, :3] = np.einsum("irj,jk,irk->ir", contacts, np.linalg.inv(mass), contacts)
    v_free, yields = before.copy(), np.zeros((MOST_SOFT_ROWS, NV))
    assert soften(b, soft, soft + CONTACTS, b.mass.copy(), yields, weight, v_free)
    heavy = mass + held.T @ (drag[:, None] * held)
    wanted = np.linalg.solve(heavy, mass @ before + held.T @ (drag * target))
    assert_allclose(v_free, wanted, rtol=1e-9, atol=1e-9)
    inverse = np.einsum("irj,jk,irk->ir", contacts, np.linalg.inv(heavy), contacts)
    assert_allclose(weight[soft:, :3], inverse, rtol=1e-7)


@pytest.mark.parametrize("drag", [1e5, 1e12])
def test_a_body_that_a_stiff_row_all_but_fixes_is_left_to_a_factorization(drag):
    rng = np.random.default_rng(0)
    b, mass, held, _ = problem(1, rng)
    b.data[0, Datum.DRAG] = drag
    b.value[b.head[1, Head.VALUE] : b.head[1, Head.VALUE] + NV] = held[0]
    weight = np.zeros((1 + CONTACTS, ROWS))
    weight[1:, :3] = np.einsum(
        "irj,jk,irk->ir", b.value[NV:].reshape(CONTACTS, 3, NV), np.linalg.inv(mass),
        b.value[NV:].reshape(CONTACTS, 3, NV),
    )  # fmt: skip
    yields = np.zeros((MOST_SOFT_ROWS, NV))
    assert not soften(b, 1, 1 + CONTACTS, b.mass.copy(), yields, weight, np.zeros(NV))
