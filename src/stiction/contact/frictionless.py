"""`Frictionless`, and the way from a contact problem to Drumwright's algorithms and back.

In coordinates of unit mass the columns of one matrix are, in this order: joint rows, tangent rows
of the contacts that stick (none here; `no_slip.py`), normals, box rows. The first two kinds are
equalities. `solve_columns`:

1. divides every column by its length;
2. takes the equalities' span out of all columns (Drumwright's Algorithm 2), which leaves
   normals and boxes with the velocities that they have when all equalities hold;
3. divides what remains by its length, and velocities by the load: the largest of the free
   speed sqrt(v'M v), the speed the equalities ask for and that into a contact;
4. solves for normals and boxes (Algorithm 1, or the drive where there are boxes);
5. finds the equalities' impulses f: with X = L basis on the rows picked and y the coordinates of
   the change they bring about, L' f = y - basis (N' f_n + B' f_b). Rows not picked have none.

How it can fail: INFEASIBLE, where bounds, joints or tangents contradict each other; impulses are
then not a number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact import whitening
from stiction.contact.arrays import Array, Arrays, Whitened
from stiction.contact.drumwright import (
    ACTIVE,
    DRIVEN,
    HIGH,
    INDEPENDENT,
    LOW,
    OPEN,
    SLACK,
    WARM,
    Indices,
    States,
    add,
    dot,
    eliminate,
    remainders,
    solve_rows,
)
from stiction.contact.model import ContactModel, Impulses
from stiction.contact.problem import ContactProblem
from stiction.contact.solution import ContactSolution
from stiction.kernels.compile import kernel
from stiction.status import Code, Status


class Answer(NamedTuple):
    """What `solve_columns` found."""

    normal: Array  # (nc,) impulses
    equal: Array  # (joints + tangents,) impulses
    box: Array  # (nb,) impulses
    change: Array  # (r,) of velocity, in coordinates of unit mass
    code: int
    pivots: int
    answered: int  # PIVOTED, DRIVEN or WARM


@kernel
def _divide_columns(cols: Array, free: Array, first: int, least: float) -> Array:
    """Divides columns and velocities from `first` on by the columns' length, in place; returns
    the lengths (m,). Columns of `least` or less become zero, with length 1."""
    m = cols.shape[1]
    lengths = np.ones(m)
    remainders(cols, first, m, lengths)
    inverse = np.empty(m)
    for i in range(first, m):
        length = np.sqrt(lengths[i])
        lengths[i] = length if length > least else 1.0
        inverse[i] = 1.0 / length if length > least else 0.0
        free[i] /= lengths[i]
    for a in range(cols.shape[0]):
        col = cols[a]
        for i in range(first, m):
            col[i] *= inverse[i]
    return lengths


@kernel
def _equal_impulses(
    along: Array, picked: Indices, size: int, y: Array, push: Array, first: int, out: Array
) -> None:
    """Fills the impulses of the picked rows, of unit length, given those of the columns from
    `first` on, `push`; the others are left as they are."""
    part = np.empty(size)
    for k in range(size):
        part[k] = y[k] - dot(along[k, first:], push)
    for k in range(size - 1, -1, -1):
        for t in range(k + 1, size):
            part[k] -= along[k, picked[t]] * part[t]
        part[k] /= along[k, picked[k]]
        out[picked[k]] = part[k]


@kernel
def solve_columns(
    cols: Array, free: Array, joints: int, equal: int, limits: Array, speed: float, state: States
) -> Answer:
    """Impulses for the columns (r, m) of joints, tangents, normals and boxes, of the problem's
    own lengths; free (m,) velocities along them. Both are overwritten.

    joints, equal: how many columns are joints, and joints or tangents. limits (nb,) of the boxes;
    speed: sqrt(v'M v) of the free velocity; state: a warm start of normals and boxes, or empty.
    """
    r, m = cols.shape
    n = m - equal
    boxes = limits.shape[0]
    lengths = _divide_columns(cols, free, 0, 0.0)
    load = speed
    size = 0
    y = np.zeros(r)
    change = np.zeros(r)
    short = lengths
    along = cols
    picked = np.empty(r, np.int64)
    rows = cols
    if equal > 0:
        basis = np.empty((r, r))
        along = np.empty((r, m))
        squares = np.empty(m)
        size = eliminate(cols, free, 0, joints, basis, 0, y, along, picked, squares)
        size = eliminate(cols, free, joints, equal, basis, size, y, along, picked, squares)
        for k in range(size):
            load = max(load, abs(y[k]))
            add(change, y[k], basis[k])
        short = _divide_columns(cols, free, equal, INDEPENDENT)
        rows = np.empty((r, n))
        for a in range(r):
            rows[a] = cols[a, equal:]
    for i in range(equal, m - boxes):
        load = max(load, -free[i])
    if load == 0.0:
        load = 1.0
    c = free[equal:] / load
    caps = np.empty(boxes)
    for i in range(boxes):
        scale = lengths[m - boxes + i] * (short[m - boxes + i] if equal > 0 else 1.0)
        caps[i] = limits[i] * scale / load
    z = np.empty(n)
    u = np.empty(r)
    code, pivots, answered = solve_rows(rows, c, caps, state, z, u)
    for i in range(equal):
        if not abs(free[i]) <= SLACK * load:
            code = Code.INFEASIBLE
    z *= load
    add(change, load, u)
    impulses = np.zeros(equal)
    if equal > 0:
        for i in range(n):
            z[i] /= short[equal + i]
        _equal_impulses(along, picked, size, y, z, equal, impulses)
        for i in range(equal):
            impulses[i] /= lengths[i]
    for i in range(n):
        z[i] /= lengths[equal + i]
    if code == Code.INFEASIBLE:
        z[:] = np.nan
        impulses[:] = np.nan
    return Answer(z[: n - boxes], impulses, z[n - boxes :], change, code, pivots, answered)


@kernel
def _put_rows(cols: Array, first: int, rows: Array) -> int:
    """Writes rows (n, r) as columns from `first` on; returns where the next go."""
    n, r = rows.shape
    for i in range(n):
        for a in range(r):
            cols[a, first + i] = rows[i, a]
    return first + n


@kernel
def _put_tangents(cols: Array, first: int, tangent: Array, sticking: States) -> int:
    """The same for both tangents (nc, 2, r) of the contacts that stick."""
    for i in range(sticking.shape[0]):
        if sticking[i] != 0:
            first = _put_rows(cols, first, tangent[i])
    return first


@kernel
def count_equal(joints: int, sticking: States) -> int:
    """Equality columns: joints, and two tangents per contact that sticks."""
    count = joints
    for i in range(sticking.shape[0]):
        if sticking[i] != 0:
            count += 2
    return count


@kernel
def used_limits(limits: Array) -> Array:
    """The box limits, or none if all are zero: then no box row can do anything."""
    for i in range(limits.shape[0]):
        if limits[i] > 0.0:
            return limits
    return limits[:0]


@kernel
def whitened_columns(p: Whitened, sticking: States, boxes: int) -> tuple[Array, Array]:
    """Columns (r, m) and free velocities (m,) of a whitened problem."""
    nc, r = p.rows_normal.shape
    joints = p.rows_joint.shape[0]
    equal = count_equal(joints, sticking)
    cols = np.empty((r, equal + nc + boxes))
    free = np.empty(equal + nc + boxes)
    at = _put_rows(cols, 0, p.rows_joint)
    at = _put_tangents(cols, at, p.rows_tangent, sticking)
    at = _put_rows(cols, at, p.rows_normal)
    _put_rows(cols, at, p.rows_box[:boxes])
    free[:joints] = p.free_joint
    at = joints
    for i in range(nc):
        if sticking[i] != 0:
            free[at] = p.free_tangent[i, 0]
            free[at + 1] = p.free_tangent[i, 1]
            at += 2
        free[equal + i] = p.free_normal[i]
    free[equal + nc :] = p.free_box[:boxes]
    return cols, free


@kernel
def solve_whitened(p: Whitened, sticking: States, limits: Array, state: States) -> Answer:
    """Impulses of a whitened problem whose contacts slide freely, but for those of `sticking`."""
    used = used_limits(limits)
    cols, free = whitened_columns(p, sticking, used.shape[0])
    joints = p.rows_joint.shape[0]
    equal = count_equal(joints, sticking)
    speed = np.sqrt(dot(p.momentum, p.momentum))
    return solve_columns(cols, free, joints, equal, used, speed, state)


@kernel
def whiten_columns(upper: Array, last: Indices, cols: Array) -> None:
    """Divides every column by L = upper', in place (`whitening.divide`, for all at once)."""
    m = cols.shape[1]
    for j in range(cols.shape[0]):
        col = cols[j]
        inverse = 1.0 / upper[j, j]
        for i in range(m):
            col[i] *= inverse
        for k in range(j + 1, last[j] + 1):
            if upper[j, k] != 0.0:
                add(cols[k], -upper[j, k], col)


@kernel
def unwhiten(upper: Array, last: Indices, y: Array) -> None:
    """y := L'^-1 y, from a change in coordinates of unit mass to one of velocity."""
    for j in range(y.shape[0] - 1, -1, -1):
        total = y[j]
        for k in range(j + 1, last[j] + 1):
            total -= upper[j, k] * y[k]
        y[j] = total / upper[j, j]


@kernel
def solve_arrays(
    arrays: Arrays, dt: float, sticking: States, state: States
) -> tuple[Array, Answer]:
    """Velocity (nv,) and impulses of a problem's own arrays, factorizing the mass; for compiled
    callers, who need no `ContactProblem`. A mass without a factor gives what is not a number."""
    nv = arrays.velocity.shape[0]
    nc, joints = arrays.normal.shape[0], arrays.joint.shape[0]
    upper = np.empty((nv, nv))
    last = np.empty(nv, np.int64)
    whitening.factorize(arrays.mass, upper, last, 0.0)
    velocity = dt * arrays.force
    whitening.solve(upper, last, velocity)
    velocity += arrays.velocity
    limits = used_limits(arrays.box_limit)
    boxes = limits.shape[0]
    equal = count_equal(joints, sticking)
    m = equal + nc + boxes
    cols = np.empty((nv, m))
    at = _put_rows(cols, 0, arrays.joint)
    at = _put_tangents(cols, at, arrays.tangent, sticking)
    at = _put_rows(cols, at, arrays.normal)
    _put_rows(cols, at, arrays.box[:boxes])
    free = np.zeros(m)
    for a in range(nv):
        if velocity[a] != 0.0:
            add(free, velocity[a], cols[a])
    for i in range(joints):
        free[i] -= arrays.joint_target[i]
    for i in range(nc):
        free[equal + i] -= arrays.bound[i]
    whiten_columns(upper, last, cols)
    momentum = whitening.whiten_momentum(upper, last, velocity)
    speed = np.sqrt(dot(momentum, momentum))
    answer = solve_columns(cols, free, joints, equal, limits, speed, state)
    unwhiten(upper, last, answer.change)
    velocity += answer.change
    return velocity, answer


@kernel
def scatter_tangents(equal: Array, joints: int, sticking: States) -> Array:
    """(nc, 2) tangential impulses out of those of the equalities."""
    out = np.zeros((sticking.shape[0], 2))
    at = joints
    for i in range(sticking.shape[0]):
        if sticking[i] != 0:
            out[i, 0] = equal[at]
            out[i, 1] = equal[at + 1]
            at += 2
    return out


@kernel
def warm_states(normal: Array, box: Array, limits: Array) -> States:
    """The warm start that impulses of an earlier problem give: which rows are active, which
    boxes at a limit."""
    nc, boxes = normal.shape[0], used_limits(limits).shape[0]
    state = np.zeros(nc + boxes, np.int8)
    for i in range(nc):
        state[i] = ACTIVE if normal[i] > 0.0 else OPEN
    for i in range(boxes):
        state[nc + i] = ACTIVE
        if box[i] >= limits[i]:
            state[nc + i] = HIGH
        elif box[i] <= -limits[i]:
            state[nc + i] = LOW
    return state


def start_states(problem: ContactProblem, start: ContactSolution | None) -> States:
    """The warm start that a solution gives for this problem; empty without one."""
    if start is None:
        return np.empty(0, np.int8)
    return warm_states(start.normal, start.box, problem.arrays.box_limit)


def to_impulses(problem: ContactProblem, answer: Answer, tangent: Array) -> Impulses:
    """What a model hands on, of the kernels' answer."""
    rungs: tuple[str, ...] = ("pivoting",)
    if answer.answered == WARM:
        rungs = ("warm start",)
    elif answer.answered == DRIVEN:
        rungs = ("drive",) if problem.nb else ("pivoting", "drive")
    box = answer.box if len(answer.box) == problem.nb else np.zeros(problem.nb)
    return Impulses(
        answer.normal,
        tangent,
        answer.equal[: problem.nj],
        box,
        Status.from_code(answer.code),
        answer.pivots,
        rungs,
    )


class Frictionless(ContactModel):
    """Contacts that only push: min 1/2 |v+ - v_free|^2 in the metric of the mass, over
    N v+ >= b and J v+ = c, with dry friction of joints. Unique in v+; with redundant contacts
    not in the impulses, of which at most nv are then positive."""

    law = "frictionless"

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of a problem whose rows all hang together."""
        state = start_states(problem, start)
        slides = np.zeros(problem.nc, np.int8)
        answer = solve_whitened(problem.whitened, slides, problem.arrays.box_limit, state)
        return to_impulses(problem, answer, np.zeros((problem.nc, 2)))
