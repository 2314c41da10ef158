"""`Viscous`: friction against the sliding velocity, in proportion to it (Drumwright, section IV).

Solved as a problem without friction whose mass holds the drag (`solvers/drumwright/viscous.py`), by
Drumwright's algorithm or Lemke's. mu is not looked at, nor torsional and rolling friction
(`box_friction`): box rows have their `box_limit` alone. How it can fail: INFEASIBLE, where bounds
or joints contradict each other; impulses are then not a number.
"""

from __future__ import annotations

from typing import ClassVar, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from stiction.contact.certificate.laws import Law
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.description import Compiled, Kind, SustainedLaw
from stiction.contact.models.frictionless import Frictionless, from_answer, start_states
from stiction.contact.models.model import ContactModel, Impulses
from stiction.contact.problem import validation as check
from stiction.contact.problem import whitening
from stiction.contact.problem.arrays import Array, Arrays
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.drumwright.columns import Answer
from stiction.contact.solvers.drumwright.viscous import (
    solve_loads,
    solve_viscous,
    solve_viscous_by_lemke,
    step_drag,
    viscous_loads,
)
from stiction.errors import InvalidInput, is_number, is_one_of

Solver = Literal["ppm", "lemke"]


class Viscous(ContactModel):
    """Viscous friction: an impulse -h mu_v T v+ at every contact that touches.

    coefficient: mu_v >= 0 of all contacts [N s/m]; None takes the problem's `viscosity`.
    solver: "ppm", Drumwright's Algorithm 1, or "lemke", which he compares it with.
    """

    name: ClassVar[str] = "viscous"
    law = "viscous"
    acts_nearby: ClassVar[bool] = True
    solvers: ClassVar[tuple[str, ...]] = ("ppm", "lemke")

    def __init__(self, coefficient: float | None = None, *, solver: Solver = "ppm") -> None:
        if not is_one_of(solver, self.solvers):
            raise InvalidInput("solver", f"is {solver!r}: 'ppm' or 'lemke'")
        self.solver = solver
        if coefficient is not None and not (is_number(coefficient) and 0.0 <= coefficient < np.inf):
            reason = f"is {coefficient!r}: viscosity is a finite number >= 0 in N s/m"
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

    @classmethod
    def from_number(cls, number: float | None) -> Viscous:
        """The model with that coefficient [N s/m]."""
        if number is None:
            raise InvalidInput("contact", "viscous needs its coefficient in N s/m: viscous:0.1")
        return cls(number)

    def with_solver(self, solver: str) -> ContactModel:
        """The same law by another solver."""
        if solver not in self.solvers:
            return super().with_solver(solver)
        return Viscous(self.coefficient, solver=cast(Solver, solver))

    @property
    def notation(self) -> str:
        """Its name on the command line."""
        return self.name if self.coefficient is None else f"{self.name}:{self.coefficient:g}"

    def check_simulated(self) -> None:
        """A MuJoCo model holds no viscosity: the coefficient must be the model's own."""
        if self.coefficient is None:
            raise InvalidInput(
                "contact", "is Viscous() without a coefficient: a MuJoCo model holds no viscosity"
            )

    @property
    def compiled(self) -> Compiled | None:
        """By the solver that compiled steps have, unless Lemke's was asked for."""
        if self.solver == "lemke":
            return None
        return Compiled(Law.VISCOUS)

    @property
    def sustained(self) -> SustainedLaw:
        """A force that is known from the velocity."""
        return SustainedLaw(Kind.SMOOTH, self.solve_loads, float(self.coefficient or 0.0))

    @property
    def at_impact(self) -> ContactModel:
        """A viscous force is finite, and has no time to act."""
        return Frictionless()

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of an island."""
        arrays, white = problem.arrays, problem.whitened
        drag = step_drag(problem.dt, arrays.viscosity, arrays.bound)
        if self.solver == "lemke":
            answer, tangent = solve_viscous_by_lemke(white, drag, arrays.box_limit)
            return from_answer(problem, answer, tangent)._replace(rungs=("lemke",))
        state = start_states(problem, np.zeros(problem.nc, np.int8), start)
        answer, tangent = solve_viscous(white, drag, arrays.box_limit, state)
        return from_answer(problem, answer, tangent)

    def solve_loads(self, loads: Arrays) -> tuple[Array, Answer]:
        """Acceleration (nv,) and forces of `viscous_loads`, by the solver that was chosen."""
        return solve_loads(loads, lemke=self.solver == "lemke")

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
        problem.sparse,
    )
    return other
