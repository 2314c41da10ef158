"""Viscous friction as mass: what is left is a problem without friction (Drumwright, section IV).

Velocities: the friction of the step is taken at its end, f_t = -h mu_v T v+ where a contact touches
(bound >= 0), which removes the stiffness that the paper reports. In coordinates of unit mass, with
the change of velocity d and q_t the free sliding velocities,

    d = N'f_n + J'f_j + B'f_b - h T' mu_v (q_t + T d)
    A d = N'f_n + J'f_j + B'f_b - h T' mu_v q_t,     A = I + h T' mu_v T

so viscosity adds to the inertia. With A = C C' all rows are divided by C, the free velocities moved
by d_0 = -A^-1 h T' mu_v q_t, and what remains is a frictionless problem (`columns.py`). Then
f_t = -h mu_v (q_t + T d). With h mu_v large that product loses as many digits as h mu_v T T' has;
each refinement with A restores them, and two are made.

Accelerations, as the paper has it: viscous forces are known, f* = f - S' mu_v S v - T' mu_v T v
(its eqs. 13 to 15, with the signs that oppose motion), and

    M a = f* + N'f_n + J'f_j,   0 <= f_n  _|_  N a + Ndot v >= 0,   J a + Jdot v = 0

is solved by the same algorithm, or by Lemke's method (`lemke.py`).
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.arrays import Array, Arrays, Whitened
from stiction.contact.solvers.drumwright.active_set import Indices, States
from stiction.contact.solvers.drumwright.columns import (
    Answer,
    add,
    solve_arrays,
    solve_columns,
    used_limits,
    whiten_columns,
    whitened_columns,
)
from stiction.contact.solvers.drumwright.lemke import solve_arrays_by_lemke, solve_columns_by_lemke
from stiction.kernels import linear
from stiction.kernels.compile import kernel
from stiction.kernels.dense import dot

REFINEMENTS = 2
"""Each wins as many digits as h mu_v T T' leaves of sixteen: two hold to 1e10."""


@kernel
def step_drag(dt: float, viscosity: Array, bound: Array) -> Array:
    """(nc,) h mu_v where a contact touches, else 0 [N s per m/s]."""
    drag = np.zeros(bound.shape[0])
    for i in range(bound.shape[0]):
        if bound[i] >= 0.0:
            drag[i] = dt * viscosity[i]
    return drag


@kernel
def _drag_metric(p: Whitened, drag: Array, upper: Array, last: Indices) -> Array:
    """Factors A = I + T' drag T into upper (r, r), last (r,); returns d_0 (r,)."""
    r = p.momentum.shape[0]
    metric = np.eye(r)
    pull = np.zeros(r)
    for i in range(drag.shape[0]):
        if drag[i] > 0.0:
            for t in range(2):
                for a in range(r):
                    along = drag[i] * p.rows_tangent[i, t, a]
                    if along != 0.0:
                        pull[a] -= along * p.free_tangent[i, t]
                        for b in range(r):
                            metric[a, b] += along * p.rows_tangent[i, t, b]
    linear.factorize(metric, upper, last, 0.0)
    linear.solve(upper, last, pull)
    return pull


@kernel
def _tangents(
    p: Whitened, drag: Array, upper: Array, last: Indices, change: Array, push: Array
) -> Array:
    """(nc, 2) impulses -drag (q_t + T d), refined so that `push` (r,), the change by all other
    impulses, and their own add up to d."""
    out = np.zeros((drag.shape[0], 2))
    lack = np.empty(p.momentum.shape[0])
    for sweep in range(1 + REFINEMENTS):
        lack[:] = push
        for i in range(drag.shape[0]):
            if drag[i] > 0.0:
                for t in range(2):
                    row = p.rows_tangent[i, t]
                    if sweep == 0:
                        out[i, t] = -drag[i] * (p.free_tangent[i, t] + dot(row, change))
                    add(lack, out[i, t], row)
        if sweep == REFINEMENTS:
            break
        # With e = push + T'f_t - d the change that the impulses bring about beyond d, impulses
        # are off by -drag T A^-1 e from their law at the true d.
        for a in range(lack.shape[0]):
            lack[a] -= change[a]
        linear.solve(upper, last, lack)
        for i in range(drag.shape[0]):
            if drag[i] > 0.0:
                for t in range(2):
                    out[i, t] -= drag[i] * dot(p.rows_tangent[i, t], lack)
        add(change, 1.0, lack)
    return out


@kernel
def drag_columns(
    p: Whitened, drag: Array, boxes: int
) -> tuple[Array, Array, Array, Array, Indices]:
    """(columns (r, m), free velocities (m,), d_0 (r,), factor of A (r, r), its envelope (r,)): the
    frictionless problem that is left, with h mu_v = drag (nc,) and the first `boxes` box rows."""
    r = p.momentum.shape[0]
    upper, last = np.empty((r, r)), np.empty(r, np.int64)
    start = _drag_metric(p, drag, upper, last)
    nc = p.rows_normal.shape[0]
    cols, free = whitened_columns(p, np.zeros(nc, np.int8), boxes)
    for a in range(r):
        add(free, start[a], cols[a])
    whiten_columns(upper, last, cols)
    return cols, free, start, upper, last


@kernel
def drag_impulses(
    p: Whitened, drag: Array, start: Array, upper: Array, last: Indices, answer: Answer
) -> Array:
    """(nc, 2) impulses along tangents, of the answer to the problem that was left."""
    r = p.momentum.shape[0]
    change = answer.change.copy()
    linear.undivide(upper, last, change)
    add(change, 1.0, start)
    push = np.zeros(r)
    for i in range(answer.equal.shape[0]):
        add(push, answer.equal[i], p.rows_joint[i])
    for i in range(answer.normal.shape[0]):
        if answer.normal[i] != 0.0:
            add(push, answer.normal[i], p.rows_normal[i])
    for i in range(answer.box.shape[0]):
        add(push, answer.box[i], p.rows_box[i])
    return _tangents(p, drag, upper, last, change, push)


@kernel
def solve_viscous(p: Whitened, drag: Array, limits: Array, state: States) -> tuple[Answer, Array]:
    """Impulses of a whitened problem with h mu_v = drag (nc,), and those along tangents (nc, 2)."""
    used = used_limits(limits)
    cols, free, start, upper, last = drag_columns(p, drag, used.shape[0])
    speed = np.sqrt(dot(p.momentum, p.momentum))
    answer = solve_columns(cols, free, p.rows_joint.shape[0], used, speed, state)
    return answer, drag_impulses(p, drag, start, upper, last, answer)


@kernel
def viscous_loads(
    mass: Array, velocity: Array, force: Array, normal: Array, tangent: Array, viscosity: Array,
    normal_bias: Array, joint: Array, joint_bias: Array,
) -> Arrays:  # fmt: skip
    """The frictionless problem of accelerations; biases are Ndot v (nc,) and Jdot v (nj,), the rest
    as in `models.viscous.Viscous.accelerations`."""
    nc, nv = normal.shape
    known = force.copy()
    for i in range(nc):
        for t in range(2):
            row = tangent[i, t]
            add(known, -viscosity[i] * dot(row, velocity), row)
    none = np.zeros(nc)
    # Over a step of one second from rest, velocities are accelerations and impulses forces.
    return Arrays(
        mass, np.zeros(nv), known, normal, tangent, none, none, -normal_bias,
        joint, -joint_bias, np.zeros((0, nv)), np.zeros(0), np.zeros(0, np.int64), np.zeros(0),
    )  # fmt: skip


def solve_viscous_by_lemke(p: Whitened, drag: Array, limits: Array) -> tuple[Answer, Array]:
    """As `solve_viscous`, without a warm start."""
    used = used_limits(limits)
    cols, free, start, upper, last = drag_columns(p, drag, len(used))
    answer = solve_columns_by_lemke(cols, free, len(p.rows_joint), used)
    return answer, drag_impulses(p, drag, start, upper, last, answer)


def solve_loads(loads: Arrays, *, lemke: bool = False) -> tuple[Array, Answer]:
    """Acceleration (nv,) and forces of lasting contacts without dry friction, such as those of
    `viscous_loads`."""
    if lemke:
        return solve_arrays_by_lemke(loads, 1.0)
    slides = np.zeros(len(loads.normal), np.int8)
    return solve_arrays(loads, 1.0, slides, np.empty(0, np.int8))
