"""The certificate of a problem by blocks: the formulas of `grading.py` and `scales.py`, without
the zeros.

Contacts, joints and box rows are counted in the order of their blocks, so that `where` has the
numbers they have in the `ContactProblem` made of the same blocks (`block_problem.py`): rows 3
to 5 of a contact are box rows there, whose limit is the normal impulse times a coefficient.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.certificate.grading import (
    Entry,
    Law,
    Table,
    grade_box,
    grade_friction,
    note,
    ratio,
)
from stiction.contact.certificate.modes import STILL, Mode
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import (
    ROWS,
    Blocks,
    Datum,
    Head,
    Kind,
    add_impulses,
    mass_times,
)
from stiction.contact.problem.scales import FLOOR, GROWTH
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.packing import packed


@packed
class GradingWorkspace(NamedTuple):
    """What grading works in."""

    table: Table
    sigma: Array  # (nv,)
    inverse: Array  # (nv,) of the mass' diagonal
    passed: Array  # (cap, ROWS) speed that a row has passed on
    light: Array  # (cap, ROWS) inverse of its lightest inertia
    work: Array  # (2, nv)


def allocate(nv: int, cap: int) -> GradingWorkspace:
    """Room for problems of that size."""
    table = Table(np.zeros(len(Entry)), np.zeros(len(Entry)), np.full(len(Entry), -1))
    passed, light = np.zeros((cap, ROWS)), np.zeros((cap, ROWS))
    return GradingWorkspace(table, np.zeros(nv), np.zeros(nv), passed, light, np.zeros((2, nv)))


@lean_leaf
def _acting_rows(b: Blocks, i):
    """Rows of block i that any law may load."""
    rough = b.data[i, Datum.SLIDE] > 0.0 or b.data[i, Datum.DRAG] > 0.0
    if b.head[i, Head.ROWS] > 2 and not rough:
        return np.int64(1)
    return b.head[i, Head.ROWS]


@lean
def _spread_row(b: Blocks, i, r, grading: GradingWorkspace):
    """Raises sigma to what an impulse along the row passes on of it; whether any grew."""
    sigma, inverse, passed, light = grading.sigma, grading.inverse, grading.passed, grading.light
    head, column, value = b.head, b.column, b.value
    width, c0 = head[i, Head.WIDTH], head[i, Head.COLUMN]
    a0 = head[i, Head.VALUE] + r * width
    speed = 0.0
    if r == 0:
        bound = b.data[i, Datum.BOUND]
        kind = head[i, Head.KIND]
        if kind == Kind.CONTACT:
            speed = max(bound, 0.0)
        elif kind == Kind.HOLD:
            speed = abs(bound)
    elif r < 4:
        speed = abs(b.data[i, Datum.SURFACE + r - 1])
    for k in range(width):
        speed = max(speed, abs(value[a0 + k]) * sigma[column[c0 + k]])
    if speed <= passed[i, r]:
        return False
    if passed[i, r] < 0.0:
        lightest = 0.0
        for k in range(width):
            lightest = max(lightest, value[a0 + k] * value[a0 + k] * inverse[column[c0 + k]])
        light[i, r] = lightest
    passed[i, r] = speed
    grew = False
    if speed > 0.0 and light[i, r] > 0.0:
        share = speed / light[i, r]
        for k in range(width):
            j = column[c0 + k]
            grown = share * abs(value[a0 + k]) * inverse[j]
            if grown > sigma[j]:
                grew |= grown > GROWTH * sigma[j]
                sigma[j] = grown
    return grew


@lean
def _spread(b: Blocks, count, grading: GradingWorkspace):
    """Spreads the dof speeds sigma over what can pass them on; see `scales.py`."""
    sigma, inverse, mass, first = grading.sigma, grading.inverse, b.mass, b.first
    nv = sigma.shape[0]
    for j in range(nv):
        inverse[j] = 1.0 / mass[b.row[j] + j]
    for i in range(count):
        for r in range(ROWS):
            grading.passed[i, r] = -1.0
    for sweep in range(nv + 1):
        grew = False
        for at in range(count):
            i = count - 1 - at if sweep % 2 == 1 else at
            for r in range(_acting_rows(b, i)):
                grew |= _spread_row(b, i, r, grading)
        for j in range(nv):
            at = b.row[j]
            for k in range(first[j], j):
                if mass[at + k] != 0.0:
                    size = abs(mass[at + k])
                    here, there = size * sigma[k] * inverse[j], size * sigma[j] * inverse[k]
                    if here > sigma[j]:
                        grew |= here > GROWTH * sigma[j]
                        sigma[j] = here
                    if there > sigma[k]:
                        grew |= there > GROWTH * sigma[k]
                        sigma[k] = there
        if not grew:
            break
    hardest = 0.0
    for j in range(nv):
        hardest = max(hardest, sigma[j] / np.sqrt(inverse[j]))
    for j in range(nv):
        sigma[j] = max(sigma[j], FLOOR * hardest * np.sqrt(inverse[j]))


@lean_leaf
def _speed(b: Blocks, i, r, sigma):
    head, column, value = b.head, b.column, b.value
    width, c0 = head[i, Head.WIDTH], head[i, Head.COLUMN]
    a0 = head[i, Head.VALUE] + r * width
    total = abs(b.data[i, Datum.SURFACE + r - 1]) if 0 < r < 4 else 0.0
    for k in range(width):
        total += abs(value[a0 + k]) * sigma[column[c0 + k]]
    return total


@lean_leaf
def _grade_contact(
    b: Blocks, i, contact, boxes, law, facets, weight, u, f, grading: GradingWorkspace
):
    table, sigma = grading.table, grading.sigma
    data, rows = b.data, b.head[i, Head.ROWS]
    bound = data[i, Datum.BOUND]
    rough = rows > 2 and (data[i, Datum.SLIDE] > 0.0 or data[i, Datum.DRAG] > 0.0)
    scale = max(bound, _speed(b, i, 0, sigma))
    if rough:
        x, y = _speed(b, i, 1, sigma), _speed(b, i, 2, sigma)
        scale = max(scale, np.sqrt(x * x + y * y))
    parting = u[i, 0]
    idle = True
    for r in range(rows):
        idle = idle and f[i, r] == 0.0
    w_n = weight[i, 0]
    x, y = ratio(f[i, 0] * w_n, scale), ratio(parting, scale)
    note(table, Entry.PENETRATION, max(0.0, -parting), max(0.0, -y), contact)
    if not idle:
        note(table, Entry.ADHESION, max(0.0, -f[i, 0]), max(0.0, -x), contact)
        energy = abs(f[i, 0] * parting)
        note(table, Entry.COMPLEMENTARITY, energy, max(0.0, min(x, y)), contact)
    if rows > 2 and not (idle and (law == Law.COULOMB or law == Law.FRICTIONLESS)):
        w_t = max(w_n, 0.5 * (weight[i, 1] + weight[i, 2]))
        mu = data[i, Datum.SLIDE]
        drag = data[i, Datum.DRAG]
        grade_friction(
            table, contact, law, facets, mu, drag, bound < 0.0,
            f[i, 0], f[i, 1], f[i, 2], parting, u[i, 1], u[i, 2], scale, w_t,
        )  # fmt: skip
    for r in range(3, rows):
        if f[i, r] == 0.0 and idle:
            continue
        spin = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
        limit = spin * max(f[i, 0], 0.0) if law == Law.COULOMB else 0.0
        speed = _speed(b, i, r, sigma)
        grade_box(table, boxes + r - 3, limit, f[i, r], u[i, r], speed, weight[i, r])


@lean
def _grade_rows(b: Blocks, count, law, facets, weight, u, f, grading: GradingWorkspace):
    """Enters every row's violations, and the momentum's in grading.work[1], with the scales sigma;
    returns the largest scaled one."""
    table, sigma = grading.table, grading.sigma
    for e in range(table.value.shape[0]):
        table.value[e] = 0.0
        table.scaled[e] = 0.0
        table.where[e] = -1
    contacts, joints, boxes = 0, 0, 0
    for i in range(count):
        kind = b.head[i, Head.KIND]
        if kind == Kind.CONTACT:
            _grade_contact(b, i, contacts, boxes, law, facets, weight, u, f, grading)
            contacts += 1
            boxes += max(0, b.head[i, Head.ROWS] - 3)
            continue
        scale = _speed(b, i, 0, sigma)
        if kind == Kind.HOLD:
            off = abs(u[i, 0])
            scale = max(scale, abs(b.data[i, Datum.BOUND]))
            note(table, Entry.JOINT, off, ratio(off, scale), joints)
            joints += 1
        elif kind == Kind.BOX:
            limit = b.data[i, Datum.LIMIT]
            grade_box(table, boxes, limit, f[i, 0], u[i, 0], scale, weight[i, 0])
            boxes += 1
    residual = grading.work[1]
    for j in range(residual.shape[0]):
        off = abs(residual[j])
        note(table, Entry.DYNAMICS, off, ratio(off, b.mass[b.row[j] + j] * sigma[j]), j)
    worst = 0.0
    for e in range(table.scaled.shape[0]):
        worst = max(worst, table.scaled[e])
    return worst


@lean
def set_scales(b: Blocks, v_free, grading: GradingWorkspace):
    """sigma := the dof speeds of the problem, before they are spread (`scales.py`)."""
    sigma = grading.sigma
    hardest = 0.0
    for j in range(v_free.shape[0]):
        sigma[j] = abs(b.velocity[j]) + abs(v_free[j] - b.velocity[j])
        hardest = max(hardest, sigma[j] * np.sqrt(b.mass[b.row[j] + j]))
    for j in range(v_free.shape[0]):
        sigma[j] = max(sigma[j], FLOOR * hardest / np.sqrt(b.mass[b.row[j] + j]))


@lean
def read_modes(b: Blocks, count, u, f, grading: GradingWorkspace, mode):
    """mode (count,) := `Mode` of each contact, as a number."""
    for i in range(count):
        sticks = f[i, 0] != 0.0
        slides = False
        if b.head[i, Head.ROWS] > 2 and f[i, 0] > 0.0 and b.data[i, Datum.SLIDE] > 0.0:
            scale = _speed(b, i, 1, grading.sigma) + _speed(b, i, 2, grading.sigma)
            still = STILL * max(scale, _speed(b, i, 0, grading.sigma))
            slides = u[i, 1] * u[i, 1] + u[i, 2] * u[i, 2] > still * still
        chosen = Mode.SLIDE if slides else (Mode.STICK if sticks else Mode.SEPARATE)
        mode[i] = np.int64(chosen)


@lean
def grade_blocks(
    b: Blocks, count, law, facets, tolerance, v_free, weight, v, u, f, grading: GradingWorkspace
):  # fmt: skip
    """Fills grading.table for the velocity v (nv,), with u its speeds along rows, and the impulses
    f; returns the largest scaled violation. weight: inverse inertias of the rows. The scales are
    as `set_scales` left them.

    Scales that have not been spread are smaller, or the same, so an answer that passes with them
    passes; the table then holds upper bounds. Only otherwise are they spread.
    """
    sigma = grading.sigma
    moved, residual = grading.work[0], grading.work[1]
    for i in range(count):
        if (
            b.head[i, Head.KIND] == Kind.SOFT
        ):  # its impulse is its law; what is off shows in momentum
            f[i, 0] = -b.data[i, Datum.DRAG] * u[i, 0]
    for j in range(v.shape[0]):
        moved[j] = v[j] - b.velocity[j]
    mass_times(b, moved, residual)
    for j in range(v.shape[0]):
        moved[j] = b.push[j]
    add_impulses(b, 0, count, f, moved)
    for j in range(v.shape[0]):
        residual[j] -= moved[j]
    worst = _grade_rows(b, count, law, facets, weight, u, f, grading)
    if worst > tolerance:
        for j in range(v.shape[0]):
            sigma[j] = abs(b.velocity[j]) + abs(v_free[j] - b.velocity[j])
        _spread(b, count, grading)
        worst = _grade_rows(b, count, law, facets, weight, u, f, grading)
    return worst
