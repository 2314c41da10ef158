"""`Viscous`: friction against the sliding velocity, in proportion to it (Drumwright, section IV).

Velocities (`Viscous.solve`): the friction of the step is taken at its end, f_t = -h mu_v T v+ where
a contact touches (bound >= 0), which removes the stiffness that the paper reports. In coordinates
of unit mass, with the change of velocity d and q_t the free sliding velocities,

    d = N'f_n + J'f_j + B'f_b - h T' mu_v (q_t + T d)
    A d = N'f_n + J'f_j + B'f_b - h T' mu_v q_t,     A = I + h T' mu_v T

so viscosity adds to the inertia. With A = C C' all rows are divided by C, the free velocities moved
by d_0 = -A^-1 h T' mu_v q_t, and what remains is a frictionless problem (`frictionless.py`). Then
f_t = -h mu_v (q_t + T d). With h mu_v large that product loses as many digits as h mu_v T T' has;
each refinement with A restores them, and two are made.

Accelerations (`Viscous.accelerations`), as the paper has it: viscous forces are known,
f* = f - S' mu_v S v - T' mu_v T v (its eqs. 13 to 15, with the signs that oppose motion), and

    M a = f* + N'f_n + J'f_j,   0 <= f_n  _|_  N a + Ndot v >= 0,   J a + Jdot v = 0

is solved by the same algorithm, or by Lemke's method (`lemke_rows.py`).

mu is not looked at, nor torsional and rolling friction (`box_friction`): box rows have their
`box_limit` alone. How it can fail: INFEASIBLE, as `frictionless.py`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from stiction.contact.models.frictionless import (
    Answer,
    add,
    solve_arrays,
    solve_columns,
    start_states,
    to_impulses,
    unwhiten,
    used_limits,
    whiten_columns,
    whitened_columns,
)
from stiction.contact.models.model import ContactModel, Impulses
from stiction.contact.models.solution import ContactSolution
from stiction.contact.problem import validation as check
from stiction.contact.problem import whitening
from stiction.contact.problem.arrays import Array, Arrays, Whitened
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.drumwright import Indices, States
from stiction.contact.solvers.lemke_rows import solve_arrays_by_lemke, solve_columns_by_lemke
from stiction.errors import InvalidInput
from stiction.kernels.compile import kernel
from stiction.kernels.dense import dot

Solver = Literal["ppm", "lemke"]

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
    whitening.factorize(metric, upper, last, 0.0)
    whitening.solve(upper, last, pull)
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
        whitening.solve(upper, last, lack)
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
    unwhiten(upper, last, change)
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
    as in `Viscous.accelerations`."""
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


class Viscous(ContactModel):
    """Viscous friction: an impulse -h mu_v T v+ at every contact that touches.

    coefficient: mu_v >= 0 of all contacts [N s/m]; None takes the problem's `viscosity`.
    solver: "ppm", Drumwright's Algorithm 1, or "lemke", which he compares it with.
    """

    law = "viscous"

    def __init__(self, coefficient: float | None = None, *, solver: Solver = "ppm") -> None:
        if solver not in ("ppm", "lemke"):
            raise InvalidInput("solver", f"is {solver!r}: 'ppm' or 'lemke'")
        self.solver = solver
        if coefficient is not None and not 0.0 <= coefficient < np.inf:
            reason = f"is {coefficient}: viscosity is a finite number >= 0 in N s/m"
            raise InvalidInput("coefficient", reason)
        self.coefficient = coefficient

    def __repr__(self) -> str:
        options = [] if self.coefficient is None else [str(self.coefficient)]
        if self.solver != "ppm":
            options.append(f"solver={self.solver!r}")
        return f"Viscous({', '.join(options)})"

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """Velocity and impulses, certified against this model's own coefficient."""
        if self.coefficient is not None:
            problem = _with_viscosity(problem, self.coefficient)
        return super().solve(problem, start)

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of a problem whose rows all hang together."""
        arrays = problem.arrays
        drag = step_drag(problem.dt, arrays.viscosity, arrays.bound)
        if self.solver == "lemke":
            return _solve_by_lemke(problem, drag)
        state = start_states(problem, np.zeros(problem.nc, np.int8), start)
        answer, tangent = solve_viscous(problem.whitened, drag, arrays.box_limit, state)
        return to_impulses(problem, answer, tangent)

    def solve_loads(self, loads: Arrays) -> tuple[Array, Answer]:
        """Acceleration (nv,) and forces of `viscous_loads`, by the solver that was chosen."""
        if self.solver == "lemke":
            return solve_arrays_by_lemke(loads, 1.0)
        slides = np.zeros(len(loads.normal), np.int8)
        return solve_arrays(loads, 1.0, slides, np.empty(0, np.int8))

    def accelerations(
        self,
        mass: ArrayLike,
        velocity: ArrayLike,
        force: ArrayLike,
        normal: ArrayLike,
        tangent: ArrayLike,
        viscosity: ArrayLike | None = None,
        normal_rate: ArrayLike | None = None,
        joint: ArrayLike | None = None,
        joint_rate: ArrayLike | None = None,
    ) -> tuple[Array, Array, Array, int]:
        """(acceleration (nv,), normal force (nc,), joint force (nj,), pivots) of sustained contact.

        mass (nv, nv), velocity (nv,), force (nv,) [N, N m]; normal (nc, nv), tangent (nc, 2, nv)
        and joint (nj, nv) rows as in `ContactProblem`; viscosity mu_v (nc,) or scalar [N s/m],
        if the model has no coefficient of its own. normal_rate is Ndot (nc, nv) [1/s], or Ndot v
        (nc,) [m/s^2]; joint_rate likewise; None means zero. All contacts must touch, N v = 0.

        Where no acceleration obeys all rows, acceleration and forces are not a number.
        """
        inertia, _, _ = check.spd("mass", mass)
        nv = len(inertia)
        v = check.real("velocity", velocity, (nv,))
        rows = check.real("normal", normal, (-1, nv))
        nc = len(rows)
        joints = np.zeros((0, nv)) if joint is None else check.real("joint", joint, (-1, nv))
        mu_v = check.nonnegative(
            "viscosity",
            (0.0 if viscosity is None else viscosity)
            if self.coefficient is None
            else self.coefficient,
            nc,
            "viscosity is a finite number >= 0 in N s/m",
            infinite=False,
        )
        loads = viscous_loads(
            inertia,
            v,
            check.real("force", force, (nv,)),
            rows,
            check.real("tangent", tangent, (nc, 2, nv)),
            mu_v,
            _bias("normal_rate", normal_rate, nc, v),
            joints,
            _bias("joint_rate", joint_rate, len(joints), v),
        )
        acceleration, answer = self.solve_loads(loads)
        return acceleration, answer.normal, answer.equal, answer.pivots


def _solve_by_lemke(problem: ContactProblem, drag: Array) -> Impulses:
    white, used = problem.whitened, used_limits(problem.arrays.box_limit)
    cols, free, start, upper, last = drag_columns(white, drag, len(used))
    answer = solve_columns_by_lemke(cols, free, problem.nj, used)
    tangent = drag_impulses(white, drag, start, upper, last, answer)
    return to_impulses(problem, answer, tangent)._replace(rungs=("lemke",))


def _bias(name: str, rate: ArrayLike | None, rows: int, velocity: Array) -> Array:
    """(rows,) the rate times the velocity, whichever of the two was given."""
    if rate is None:
        return np.zeros(rows)
    if np.ndim(rate) == 1:
        return check.real(name, rate, (rows,))
    return whitening.times(check.real(name, rate, (rows, len(velocity))), velocity)


def _with_viscosity(problem: ContactProblem, coefficient: float) -> ContactProblem:
    """The same problem with this viscosity at all contacts; its factors are shared."""
    other = ContactProblem.__new__(ContactProblem)
    other._fill(
        problem.arrays._replace(viscosity=np.full(problem.nc, float(coefficient))),
        problem._factor,
        problem._last,
        problem.dt,
        problem.delassus,
        problem.dimension,
        problem.asymmetry,
        problem.indefiniteness,
    )
    return other
