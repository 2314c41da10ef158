"""The way from a contact problem to Drumwright's algorithms (`pivoting.py`) and back.

In coordinates of unit mass the columns of one matrix are, in this order: joint rows, tangent rows
of the contacts that stick (none where all slide freely), normals, box rows. The first two kinds
must hold. Columns are divided by their length and velocities by the load: the largest of the free
speed sqrt(v'M v), the speed at which a joint or tangent must change, and that into a contact.
Then all tolerances are absolute, whatever the units.

How it can fail: INFEASIBLE, where bounds, joints or tangents contradict each other; impulses are
then not a number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.problem import whitening
from stiction.contact.problem.arrays import Array, Arrays, Whitened
from stiction.contact.solvers.drumwright.active_set import ACTIVE, HIGH, LOW, Indices, States
from stiction.contact.solvers.drumwright.pivoting import solve_rows
from stiction.kernels import linear
from stiction.kernels.compile import kernel
from stiction.kernels.dense import dot
from stiction.status import Code


class Answer(NamedTuple):
    """What `solve_columns` found."""

    equal: Array  # (joints + tangents,) impulses
    normal: Array  # (nc,) impulses
    box: Array  # (nb,) impulses
    change: Array  # (r,) of velocity, in coordinates of unit mass
    code: int
    pivots: int
    answered: int  # PIVOTED, DRIVEN or WARM


@kernel
def add(y: Array, factor: float, x: Array) -> None:
    """y += factor x."""
    for i in range(y.shape[0]):
        y[i] += factor * x[i]


@kernel
def _divide_columns(cols: Array, free: Array, inverse: Array) -> None:
    """Divides the columns and free velocities (m,) by the columns' lengths, in place, and fills
    `inverse` (m,), one over them; 1 for zeros."""
    r, m = cols.shape
    for i in range(m):
        inverse[i] = 0.0
    for a in range(r):
        for i in range(m):
            inverse[i] += cols[a, i] * cols[a, i]
    for i in range(m):
        inverse[i] = 1.0 / np.sqrt(inverse[i]) if inverse[i] > 0.0 else 1.0
        free[i] *= inverse[i]
    for a in range(r):
        for i in range(m):
            cols[a, i] *= inverse[i]


@kernel
def solve_columns(
    cols: Array, free: Array, equal: int, limits: Array, speed: float, state: States
) -> Answer:
    """Impulses for the columns (r, m) of joints, tangents, normals and boxes, of the problem's
    own lengths; free (m,) velocities along them. Both are overwritten.

    equal: how many columns must hold. limits (nb,) of the boxes; speed: sqrt(v'M v) of the free
    velocity; state: a warm start of all columns, or empty.
    """
    r, m = cols.shape
    boxes = m - limits.shape[0]
    inverse = np.empty(m)
    _divide_columns(cols, free, inverse)
    load = speed
    for i in range(equal):
        load = max(load, abs(free[i]))
    for i in range(equal, boxes):
        load = max(load, -free[i])
    if load == 0.0:
        load = 1.0
    for i in range(m):
        free[i] /= load
    caps = limits.copy()
    for i in range(boxes, m):
        caps[i - boxes] /= inverse[i] * load
    z = np.empty(m)
    change = np.empty(r)
    code, pivots, answered = solve_rows(cols, free, equal, caps, state, z, change)
    for i in range(m):
        z[i] *= load * inverse[i]
    for i in range(boxes, m):
        z[i] = min(max(z[i], -limits[i - boxes]), limits[i - boxes])
    for a in range(r):
        change[a] *= load
    if code == Code.INFEASIBLE:
        z[:] = np.nan
        change[:] = np.nan
    return Answer(z[:equal], z[equal:boxes], z[boxes:], change, code, pivots, answered)


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
            for a in range(cols.shape[0]):
                cols[a, first] = tangent[i, 0, a]
                cols[a, first + 1] = tangent[i, 1, a]
            first += 2
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
    return solve_columns(cols, free, equal, used, speed, state)


@kernel
def whiten_columns(upper: Array, last: Indices, cols: Array) -> None:
    """Divides every column by L = upper', in place (`linear.divide`, for all at once)."""
    m = cols.shape[1]
    for j in range(cols.shape[0]):
        inverse = 1.0 / upper[j, j]
        for i in range(m):
            cols[j, i] *= inverse
        for k in range(j + 1, last[j] + 1):
            factor = upper[j, k]
            if factor != 0.0:
                for i in range(m):
                    cols[k, i] -= factor * cols[j, i]


@kernel
def arrays_columns(
    arrays: Arrays, dt: float, sticking: States
) -> tuple[Array, Array, Array, Array, Array, Indices]:
    """(free velocity (nv,), columns (nv, m), free velocities along them (m,), limits of the boxes
    among them, factor of the mass (nv, nv), its envelope (nv,)) of a problem's own arrays."""
    nv = arrays.velocity.shape[0]
    nc, joints = arrays.normal.shape[0], arrays.joint.shape[0]
    upper = np.empty((nv, nv))
    last = np.empty(nv, np.int64)
    linear.factorize(arrays.mass, upper, last, 0.0)
    velocity = np.empty(nv)
    for a in range(nv):
        velocity[a] = dt * arrays.force[a]
    linear.solve(upper, last, velocity)
    add(velocity, 1.0, arrays.velocity)
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
        speed_a = velocity[a]
        for i in range(m):
            free[i] += speed_a * cols[a, i]
    for i in range(joints):
        free[i] -= arrays.joint_target[i]
    for i in range(nc):
        free[equal + i] -= arrays.bound[i]
    whiten_columns(upper, last, cols)
    return velocity, cols, free, limits, upper, last


@kernel
def solve_arrays(
    arrays: Arrays, dt: float, sticking: States, state: States
) -> tuple[Array, Answer]:
    """Velocity (nv,) and impulses of a problem's own arrays, factorizing the mass; for compiled
    callers, who need no `ContactProblem`. A mass without a factor gives what is not a number."""
    velocity, cols, free, limits, upper, last = arrays_columns(arrays, dt, sticking)
    equal = count_equal(arrays.joint.shape[0], sticking)
    momentum = whitening.whiten_momentum(upper, last, velocity)
    speed = np.sqrt(dot(momentum, momentum))
    answer = solve_columns(cols, free, equal, limits, speed, state)
    linear.undivide(upper, last, answer.change)
    add(velocity, 1.0, answer.change)
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
def warm_states(
    normal: Array, tangent: Array, joint: Array, box: Array, limits: Array, sticking: States
) -> States:
    """The warm start that impulses of an earlier problem give: which rows are active, which
    boxes at a limit; rows in the order of the columns."""
    nc, joints, boxes = normal.shape[0], joint.shape[0], used_limits(limits).shape[0]
    equal = count_equal(joints, sticking)
    state = np.zeros(equal + nc + boxes, np.int8)
    for i in range(joints):
        state[i] = ACTIVE if joint[i] != 0.0 else 0
    at = joints
    for i in range(nc):
        if sticking[i] != 0:
            state[at] = ACTIVE if tangent[i, 0] != 0.0 else 0
            state[at + 1] = ACTIVE if tangent[i, 1] != 0.0 else 0
            at += 2
        state[equal + i] = ACTIVE if normal[i] > 0.0 else 0
    for i in range(boxes):
        state[equal + nc + i] = ACTIVE
        if box[i] >= limits[i]:
            state[equal + nc + i] = HIGH
        elif box[i] <= -limits[i]:
            state[equal + nc + i] = LOW
    return state
