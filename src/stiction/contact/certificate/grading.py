"""The grade of an answer by blocks: every law's largest violation, in SI units and scaled.

The laws of single rows are in `laws.py`, the scales in `problem/scales.py`. Contacts, joints and
box rows are counted in the order of their blocks, so that `where` has the numbers they have in the
`ContactProblem` made of the same blocks (`block_problem.py`): rows 3 to 5 of a contact are box rows
there, whose limit is the normal impulse times a coefficient.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.certificate.laws import (
    Entry,
    Law,
    Table,
    grade_box,
    grade_friction,
    grade_normal,
    grade_sliding,
    new_table,
    note,
    ratio,
)
from stiction.contact.problem.arrays import Array, Arrays
from stiction.contact.problem.blocks import (
    ROWS,
    Blocks,
    Datum,
    Head,
    Indices,
    Kind,
    add_impulses,
    mass_times,
    row_velocities,
)
from stiction.contact.problem.dense_blocks import blocks_of, collect
from stiction.contact.problem.scales import (
    Scales,
    block_speed,
    friction_weight,
    own_speeds,
    row_speed,
    spread,
)
from stiction.kernels.compile import kernel, lean, lean_leaf
from stiction.kernels.dense import row_dot
from stiction.kernels.packing import packed


@packed
class GradingWorkspace(NamedTuple):
    """What grading works in."""

    table: Table
    own: Array  # (nv,), this and the next: see `Scales`
    sigma: Array  # (nv,)
    speed: Array  # (cap,)
    slides: Indices  # (cap,) of `grade_rows`; a time step has none
    inverse: Array  # (nv,) of the mass' diagonal
    passed: Array  # (cap, ROWS) speed that a row has passed on
    spread: Indices  # (1,) 1 if sigma has been spread for the problem at hand
    work: Array  # (2, nv)


def allocate(nv: int, cap: int) -> GradingWorkspace:
    """Room for problems of that size."""
    return GradingWorkspace(
        new_table(),
        np.zeros(nv),
        np.zeros(nv),
        np.zeros(cap),
        np.zeros(cap, np.int64),
        np.zeros(nv),
        np.zeros((cap, ROWS)),
        np.zeros(1, np.int64),
        np.zeros((2, nv)),
    )


@lean_leaf
def _grade_contact(
    b: Blocks, i, contact, boxes, law, facets, weight, sigma, scale, slides, u, f, table
):
    """Laws of the contact in block i, which is contact number `contact`; the box rows before it are
    `boxes` in number."""
    data, rows = b.data, b.head[i, Head.ROWS]
    idle = True
    for r in range(rows):
        idle = idle and f[i, r] == 0.0
    grade_normal(table, contact, law, f[i, 0], u[i, 0], scale, weight[i, 0])
    if rows > 2 and not (idle and (law == Law.COULOMB or law == Law.FRICTIONLESS)):
        w_t, mu = friction_weight(weight, i), data[i, Datum.SLIDE]
        if slides and mu > 0.0 and law == Law.COULOMB:
            grade_sliding(
                table, contact, mu, f[i, 0], f[i, 1], f[i, 2], u[i, 1], u[i, 2], scale, w_t
            )  # fmt: skip
        else:
            grade_friction(
                table, contact, law, facets, mu, data[i, Datum.DRAG], data[i, Datum.BOUND] < 0.0,
                f[i, 0], f[i, 1], f[i, 2], u[i, 0], u[i, 1], u[i, 2], scale, w_t,
            )  # fmt: skip
    for r in range(3, rows):
        if f[i, r] == 0.0 and idle:
            continue
        ratio_r = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
        limit = ratio_r * max(f[i, 0], 0.0) if law == Law.COULOMB else 0.0
        speed = row_speed(b, i, r, sigma)
        grade_box(table, boxes + r - 3, limit, f[i, r], u[i, r], speed, weight[i, r])


@lean
def grade_rows(
    b: Blocks, count, law, facets, weight, sigma, speed, slides, u, f, residual, table: Table
):  # fmt: skip
    """Fills the table with what is violated by impulses f (count, ROWS), speeds u (count, ROWS)
    along the rows less their bounds, and momentum that is off by residual (nv,); returns the
    largest scaled violation. weight, sigma, speed: see `Scales`.

    slides (count,): not 0 where a contact under Coulomb's law, or the row of a box, is known to
    slide, and u has the direction of the slip in the place of its speed.
    """
    for e in range(table.value.shape[0]):
        table.value[e] = 0.0
        table.scaled[e] = 0.0
        table.where[e] = -1
    contacts, joints, boxes = 0, 0, 0
    for i in range(count):
        kind, scale = b.head[i, Head.KIND], speed[i]
        if kind == Kind.CONTACT:
            _grade_contact(
                b, i, contacts, boxes, law, facets, weight, sigma, scale, slides[i] != 0, u, f,
                table,
            )  # fmt: skip
            contacts += 1
            boxes += max(0, b.head[i, Head.ROWS] - 3)
        elif kind == Kind.HOLD:
            off = abs(u[i, 0])
            note(table, Entry.JOINT, off, ratio(off, scale), joints)
            joints += 1
        elif kind == Kind.BOX:
            limit = b.data[i, Datum.LIMIT]
            if law == Law.COULOMB and b.data[i, Datum.SPIN] > 0.0:
                limit += b.data[i, Datum.SPIN] * max(f[b.head[i, Head.PARENT], 0], 0.0)
            along = u[i, 0]
            if slides[i] != 0:
                along *= scale
            grade_box(table, boxes, limit, f[i, 0], along, scale, weight[i, 0])
            boxes += 1
    for j in range(residual.shape[0]):
        off = abs(residual[j])
        note(table, Entry.DYNAMICS, off, ratio(off, b.mass[b.row[j] + j] * sigma[j]), j)
    worst = 0.0
    for e in range(table.scaled.shape[0]):
        worst = max(worst, table.scaled[e])
    return worst


@lean
def momentum_residual(b: Blocks, count, v, f, moved, residual):
    """residual (nv,) := M (v - v before) less the push and the impulses f. Overwrites moved
    (nv,)."""
    for j in range(v.shape[0]):
        moved[j] = v[j] - b.velocity[j]
    mass_times(b, moved, residual)
    for j in range(v.shape[0]):
        moved[j] = b.push[j]
    add_impulses(b, 0, count, f, moved)
    for j in range(v.shape[0]):
        residual[j] -= moved[j]


@lean
def set_scales(b: Blocks, v_free, grading: GradingWorkspace):
    """The speeds of the problem, before they are spread, into the workspace."""
    own_speeds(b, v_free, grading.inverse, grading.own)
    grading.spread[0] = 0


@lean
def raise_scales(b: Blocks, v_free, grading: GradingWorkspace):
    """Raises them to another free motion's. With soft rows that is the one that these leave, next
    to nothing where they bear a load; what the load alone would do counts, as it does where a
    contact bears it."""
    for j in range(v_free.shape[0]):
        speed = abs(b.velocity[j]) + abs(v_free[j] - b.velocity[j])
        grading.own[j] = max(grading.own[j], speed)
    grading.spread[0] = 0


@lean
def grade_blocks(
    b: Blocks, count, law, facets, tolerance, weight, v, u, f, grading: GradingWorkspace
):  # fmt: skip
    """Fills grading.table for the velocity v (nv,), with u its speeds along rows, and the impulses
    f; returns the largest scaled violation. weight: inverse inertias of the rows. `set_scales` has
    run before.

    Scales that have not been spread are smaller, or the same, so an answer that passes with them
    passes; the table then holds upper bounds. Only otherwise are they spread, once for all answers
    of a problem: on a heap that takes longer than an iteration of a solver.
    """
    own, sigma, speed, residual = grading.own, grading.sigma, grading.speed, grading.work[1]
    for i in range(count):
        speed[i] = block_speed(b, i, own)
        if b.head[i, Head.KIND] == Kind.SOFT:  # its law is exact; what is off shows in momentum
            f[i, 0] = -b.data[i, Datum.DRAG] * u[i, 0]
    momentum_residual(b, count, v, f, grading.work[0], residual)
    worst = grade_rows(
        b, count, law, facets, weight, own, speed, grading.slides, u, f, residual, grading.table
    )
    if worst <= tolerance:
        return worst
    if grading.spread[0] == 0:
        for j in range(own.shape[0]):
            sigma[j] = own[j]
        spread(b, count, grading.inverse, grading.passed, sigma)
        grading.spread[0] = 1
    for i in range(count):
        speed[i] = block_speed(b, i, sigma)
    return grade_rows(
        b, count, law, facets, weight, sigma, speed, grading.slides, u, f, residual, grading.table
    )


@kernel
def grade_residual(law, facets, b: Blocks, scales: Scales, v, f, residual) -> Table:
    """The certificate of velocity v (nv,) and impulses f (count, ROWS) that leave the residual
    (nv,) of the momentum, or of u - W f - q."""
    count = scales.speed.shape[0]
    u, slides, table = np.zeros((count, ROWS)), np.zeros(count, np.int64), new_table()
    row_velocities(b, count, v, u)
    grade_rows(
        b, count, law, facets, scales.weight, scales.sigma, scales.speed, slides, u, f, residual,
        table,
    )  # fmt: skip
    return table


@kernel
def grade_dense(law, facets, b: Blocks, scales: Scales, delassus, v, f_n, f_t, f_j, f_b) -> Table:
    """The certificate of velocity v (nv,) and impulses by kind, of a problem whose blocks b come
    from arrays: contacts, joints, box rows; delassus: see `blocks_of`."""
    count, nv = scales.speed.shape[0], v.shape[0]
    f = np.zeros((count, ROWS))
    collect(f_n, f_t, f_j, f_b, f)
    residual, moved = np.empty(nv), np.zeros(nv)
    if delassus.shape[0] > 0:
        add_impulses(b, 0, count, f, moved)
        for j in range(nv):
            residual[j] = v[j] - b.velocity[j] - row_dot(delassus, j, moved)
    else:
        momentum_residual(b, count, v, f, moved, residual)
    return grade_residual(law, facets, b, scales, v, f, residual)


@kernel
def grade_problem(
    law, facets, dt, arrays: Arrays, scales: Scales, delassus, v, f_n, f_t, f_j, f_b
) -> Table:  # fmt: skip
    """The same from the arrays: one call for Python."""
    b = blocks_of(arrays, dt, delassus)
    return grade_dense(law, facets, b, scales, delassus, v, f_n, f_t, f_j, f_b)
