"""`NoSlip`: contacts that touch do not slide at all (Drumwright, section VI).

    min 1/2 |v+ - v_free|^2 in the metric of the mass
    over N v+ >= b,  S v+ = T v+ = 0 where touching,  J v+ = c

A contact touches where its bound is not negative. One ahead of contact (a gap) has no tangent
rows yet, and one with mu = 0 is frictionless. The model is convex: a touching contact may carry a
tangential impulse without a normal one, so that it can open, yet not slide, where Coulomb's law
lets it slip (Lynch and Mason's example); `Coulomb` with friction=inf reads infinite friction the
other way.

The ladder: Drumwright's algorithms; where the certificate refuses their answer, an orthonormal
basis of the rows that must hold (`solvers/drumwright/no_slip.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from stiction.contact.certificate.laws import Law
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.description import Compiled, Kind, SustainedLaw
from stiction.contact.models.frictionless import from_answer, start_states
from stiction.contact.models.ladder import LadderModel
from stiction.contact.models.model import Impulses
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.drumwright.no_slip import (
    solve_no_slip,
    solve_orthonormal,
    sticking_contacts,
)
from stiction.contact.solvers.drumwright.viscous import solve_loads

NEXT_TO_NOTHING = (1e-2, 1e-3, 1e-4, 1e-6, 1e-9)
"""Singular values of unit rows below which a direction is left out, tried in turn: the more is left
out, the smaller the impulses, as long as the certificate passes."""


class NoSlip(LadderModel):
    """Drumwright's no-slip model: contacts that touch hold, whatever it takes.

    They hold against sliding: torsional and rolling friction belong to Coulomb's law, and a box
    row has its `box_limit` here, and nothing of `box_friction`.
    """

    name: ClassVar[str] = "no-slip"
    law = "no-slip"
    acts_nearby: ClassVar[bool] = True

    @property
    def compiled(self) -> Compiled:
        """By the solver that compiled steps have."""
        return Compiled(Law.NO_SLIP)

    @property
    def sustained(self) -> SustainedLaw:
        """Contacts hold like joints."""
        return SustainedLaw(Kind.HOLD, solve_loads)

    def attempts(
        self, problem: ContactProblem, start: ContactSolution | None
    ) -> Iterator[Impulses]:
        """Drumwright's algorithms, then an orthonormal basis, ever larger."""
        arrays, white = problem.arrays, problem.whitened
        sticking = sticking_contacts(arrays.friction, arrays.bound)
        state = start_states(problem, sticking, start)
        answer, tangent = solve_no_slip(white, sticking, arrays.box_limit, state)
        yield from_answer(problem, answer, tangent)
        for least in NEXT_TO_NOTHING:
            answer, tangent = solve_orthonormal(white, sticking, arrays.box_limit, least)
            yield from_answer(problem, answer, tangent)._replace(rungs=("orthonormal",))
