"""`StepDerivatives`: what `Simulator.derivatives` returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stiction.contact.derivatives.derivatives import check_smoothing
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.modes import Mode
from stiction.errors import InvalidInput, unknown
from stiction.simulate.derivatives.differences import Columns
from stiction.simulate.derivatives.linearization import Solved, StepLinearization
from stiction.simulate.derivatives.manifold import integrate, quaternion_dofs
from stiction.simulate.report import Report
from stiction.simulate.time_stepping.engine import Guess

if TYPE_CHECKING:
    from stiction.simulate.derivatives.differentiator import Differentiator

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Taken:
    """What is kept of a step that was taken; n blocks."""

    record: Array  # (n, Record)
    velocity: Array  # (nv,) v+
    correction: Array  # (nv,) of overlap
    member: Indices  # blocks of all islands, one island after the other
    members: Indices  # where each one's begin, and the end
    released: Indices  # (nactuator,) servos (`bridge/servos.py`)

    @property
    def islands(self) -> Indices:
        """(n,) island of each block, or -1."""
        out = np.full(len(self.record), -1)
        out[self.member] = np.repeat(np.arange(len(self.members) - 1), np.diff(self.members))
        return out


class StepDerivatives:
    """Derivatives of one step, in the conventions of `mjd_transitionFD`.

    The state is (change of position, velocity, activation), 2 nv + na numbers; a change of position
    is taken in tangent space, as `mj_differentiatePos` has it.
    """

    def __init__(
        self,
        source: Differentiator,
        law: str,
        transition: tuple[Array, Array] | None,
        report: Report | None = None,
        smoothing: float = 0.0,
    ) -> None:
        """law: that the step was solved by. transition: A and B, where they are known already.
        report: of the step, if there is one."""
        self._source, self._law, self._smoothing = source, law, smoothing
        self._reported = report
        self.is_compiled = transition is not None
        """Whether A and B come from closed forms, not from differences of the step's problem."""
        if transition is not None:
            self.A, self.B = transition

    @cached_property
    def _physics(self) -> Array:
        """The state that the step began with, as mjSTATE_INTEGRATION. Noted as `_taken` is."""
        return self._source.state.copy()

    @cached_property
    def _taken(self) -> Taken:
        """Noted when it is asked for, or before the next step is taken."""
        return self._source.note()

    @cached_property
    def report(self) -> Report:
        """Of the step that is differentiated."""
        return self._reported or self._source.report(self._physics)

    def keep(self) -> None:
        """Notes what is needed of the step, which is about to be overwritten."""
        _ = self._taken, self._physics
        self.report.keep()

    @cached_property
    def _problem(self) -> Solved:
        return self._source.pose(self._physics, self._taken, self._law)

    @cached_property
    def _solved(self) -> StepLinearization:
        """The law of contact to first order."""
        return StepLinearization(self._problem, self._smoothing)

    def __repr__(self) -> str:
        n = len(self.A)
        return f"StepDerivatives(A=({n}, {n}), B={self.B.shape}, margin={self.margin:.3g})"

    @property
    def margin(self) -> float:
        """How far the nearest contact, limit or dry joint is from a border, over the speeds of the
        step; inf without any. The derivatives hold for changes that are small beside it. Borders
        are those of modes, and of overlap: zero where something just touches, with or without a
        force, and where friction leaves the velocity undetermined. Not those of geometry, as where
        another edge comes to be the nearest."""
        return self._solved.margin

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Of `report.contacts`."""
        return tuple(contact.mode for contact in self.report.contacts)

    @cached_property
    def A(self) -> Array:
        """(2 nv + na, 2 nv + na) next state by state."""
        return self._transition[0]

    @cached_property
    def B(self) -> Array:
        """(2 nv + na, nu) next state by controls."""
        return self._transition[1]

    def smoothed(self, smoothing: float) -> StepDerivatives:
        """The same with contacts that change their mode gradually, so that one ahead is felt
        before it closes and one that sticks gives way a little: for plans that must find contact.
        Only what a step sees ahead can be felt: about a hundredth of a geom's radius, and what it
        travels in a step and a half.

        smoothing: product of normal impulse and parting speed, both over the scales of the step,
        at which an interior point is thought to stop; 1e-3, say (`contact/derivatives/modes.py`).
        """
        smoothing = check_smoothing(smoothing)
        if not self.is_compiled or smoothing == 0.0:
            return self.smoothed_by_arrays(smoothing)
        physics, record = self._physics, self._taken.record
        return self._source.differentiate_from(physics, Guess(record, None), smoothing)

    def smoothed_by_arrays(self, smoothing: float) -> StepDerivatives:
        """The same from the step's problem as dense arrays, whatever way its slopes came."""
        made = StepDerivatives(self._source, self._law, None, self.report, smoothing)
        made.__dict__["_physics"] = self._physics
        made.__dict__["_taken"] = self._taken
        made.__dict__["_problem"] = self._problem
        made.__dict__["_solved"] = StepLinearization(self._problem, smoothing)
        made.__dict__["_columns"] = self._columns  # what comes before contact is the same
        return made

    @cached_property
    def _columns(self) -> Columns:
        taken = self._taken if self.is_compiled else None
        return self._source.state_columns(self._physics, self._problem, taken)

    @cached_property
    def _transition(self) -> tuple[Array, Array]:
        model = self._source.model
        n = 2 * model.nv + model.na
        both = self._carry(self._columns, np.eye(model.nv, n + model.nu))
        return np.ascontiguousarray(both[:, :n]), np.ascontiguousarray(both[:, n:])

    @property
    def C(self) -> Array:
        """(nsensordata, 2 nv + na) sensors by state; by differences of whole steps."""
        return self._sensors[0]

    @property
    def D(self) -> Array:
        """(nsensordata, nu) sensors by controls; by differences of whole steps."""
        return self._sensors[1]

    @cached_property
    def _sensors(self) -> tuple[Array, Array]:
        both = self._source.sensor_differences(self._physics)
        n = 2 * self._source.model.nv + self._source.model.na
        return np.ascontiguousarray(both[:, :n]), np.ascontiguousarray(both[:, n:])

    def parameters(self, names: str | Sequence[str]) -> dict[str, Array]:
        """(2 nv + na, *shape) next state by each of the model's fields with these names:
        `body_mass`, `geom_friction`, `dof_damping`, ... Any field of floating-point numbers that a
        step reads, what `mj_setConst` derives from it included; not what the compiler makes once,
        such as the size of a mesh."""
        wanted = [names] if isinstance(names, str) else list(names)
        out: dict[str, Array] = {}
        for name in wanted:
            field = getattr(self._source.model, name, None)
            if not (isinstance(field, np.ndarray) and field.dtype == np.float64 and field.size):
                fields = numeric_fields(self._source.model)
                raise InvalidInput("names", unknown(name, fields))
            columns = self._source.parameter_columns(self._physics, self._problem, name)
            nv = self._source.model.nv
            moved = self._carry(columns, np.zeros((nv, field.size)))
            out[name] = moved.reshape(len(moved), *field.shape)
        return out

    def _carry(self, columns: Columns, place: Array) -> Array:
        """(2 nv + na, k) change of the state after the step; place (nv, k): of positions before."""
        step = self._solved.step
        velocity, correction = self._solved.solve(columns)
        position = integrate(
            quaternion_dofs(self._source.model),
            step.dt,
            step.velocity + step.correction,
            place,
            velocity + correction,
        )
        return np.concatenate([position, velocity, columns.act.T])

    def jvp(self, state: Array | None = None, control: Array | None = None) -> Array:
        """(2 nv + na,) change of the next state for changes of state and controls."""
        out = np.zeros(len(self.A))
        if state is not None:
            out += self.A @ np.asarray(state, np.float64)
        if control is not None:
            out += self.B @ np.asarray(control, np.float64)
        return out

    def vjp(self, gradient: Array) -> tuple[Array, Array]:
        """(by state (2 nv + na,), by controls (nu,)) of a function whose gradient with respect to
        the next state is given."""
        given = np.asarray(gradient, np.float64)
        return given @ self.A, given @ self.B


def numeric_fields(model: object) -> Iterable[str]:
    """Names of the model's arrays of floating-point numbers."""
    names = [name for name in dir(model) if not name.startswith("_")]
    kinds = ((name, getattr(model, name, None)) for name in names)
    return tuple(
        name
        for name, value in kinds
        if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.size
    )
