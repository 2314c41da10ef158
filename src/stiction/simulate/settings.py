"""The options of a simulator, checked once: what `Simulator` and `Batch` have in common."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from stiction.contact.models.coulomb import Coulomb
from stiction.contact.models.description import Compiled, StepSolver
from stiction.contact.models.model import ContactModel
from stiction.errors import InvalidInput, is_one_of, real_numbers, unknown
from stiction.simulate.event_driven.engine import EventDriven
from stiction.simulate.options import is_flag, is_number
from stiction.simulate.steppers import TimeStepping

Array = NDArray[np.float64]
Delassus = Literal["factorized", "assembly"]
Equality = Literal["soft", "rigid"]
OnFailure = Literal["raise", "frictionless", "best"]
Stepper = TimeStepping | EventDriven


class Options(TypedDict, total=False):
    """Keyword arguments of `Simulator`, which tells what they mean."""

    stepper: Stepper | None
    equality: Equality
    delassus: Delassus
    on_failure: OnFailure
    warm_start: bool
    tolerance: float
    budget: float | None
    failures: str | Path | None
    restitution: float | Array


@dataclass(frozen=True)
class Settings:
    """Options as `Simulator` takes them, checked."""

    contact: ContactModel
    stepper: Stepper
    equality: Equality
    delassus: Delassus
    on_failure: OnFailure
    warm_start: bool
    tolerance: float
    budget: float | None
    failures: Path | None
    restitution: float | Array
    """As it was given; `check_restitution` has it for each geom of a model."""

    @property
    def compiled(self) -> Compiled | None:
        """How the contact model's steps are compiled; None where they are not."""
        return None if self.delassus == "assembly" else self.contact.compiled

    @property
    def bounces(self) -> bool:
        """Whether steps can have impacts that bounce."""
        compiled = self.compiled
        in_loop = compiled is not None and compiled.solver is StepSolver.INTERIOR_POINT
        return in_loop and isinstance(self.stepper, TimeStepping)


def check_settings(
    contact: ContactModel | None = None,
    stepper: Stepper | None = None,
    equality: Equality = "soft",
    delassus: Delassus = "factorized",
    on_failure: OnFailure = "raise",
    warm_start: bool = True,
    tolerance: float = 1e-6,
    budget: float | None = None,
    failures: str | Path | None = None,
    restitution: float | Array = 0.0,
    **others: object,
) -> Settings:
    """The settings; InvalidInput names what cannot be."""
    for name in others:  # of environments and batches, which hand on what they are given
        raise InvalidInput("options", unknown(name, ("contact", *Options.__annotations__)))
    model = Coulomb() if contact is None else contact
    steps = TimeStepping() if stepper is None else stepper
    if not isinstance(model, ContactModel):
        raise InvalidInput("contact", f"is {contact!r}: a contact model such as Coulomb()")
    if not isinstance(steps, (TimeStepping, EventDriven)):
        raise InvalidInput("stepper", f"is {stepper!r}: TimeStepping() or EventDriven()")
    if not is_one_of(equality, ("soft", "rigid")):
        raise InvalidInput("equality", f"is {equality!r}: 'soft' or 'rigid'")
    if not is_one_of(delassus, ("factorized", "assembly")):
        raise InvalidInput("delassus", f"is {delassus!r}: 'factorized' or 'assembly'")
    if delassus == "assembly" and isinstance(steps, EventDriven):
        raise InvalidInput(
            "delassus", "is 'assembly', which TimeStepping() can do; EventDriven() factorizes"
        )
    if not is_one_of(on_failure, ("raise", "frictionless", "best")):
        reason = f"is {on_failure!r}: 'raise', 'frictionless' or 'best'"
        raise InvalidInput("on_failure", reason)
    model.check_simulated()
    if not (is_number(tolerance) and 0.0 < tolerance < 1.0):
        raise InvalidInput("tolerance", f"is {tolerance!r}: a number between 0 and 1")
    if not is_flag(warm_start):
        raise InvalidInput("warm_start", f"is {warm_start!r}: True or False")
    if failures is not None and not isinstance(failures, (str, os.PathLike)):
        raise InvalidInput("failures", f"is {failures!r}: a directory, or None")
    if budget is not None and not (is_number(budget) and 0.0 < budget < 1e9):
        raise InvalidInput(
            "budget", f"is {budget!r}: seconds, more than none and less than 1e9, or None"
        )
    settings = Settings(
        model,
        steps,
        equality,
        delassus,
        on_failure,
        bool(warm_start),
        float(tolerance),
        None if budget is None else float(budget),
        None if failures is None else Path(failures),
        restitution,
    )
    if np.any(real_numbers("restitution", restitution)) and not settings.bounces:
        raise InvalidInput(
            "restitution",
            "is for TimeStepping() and contact models whose steps are compiled, such as "
            "Coulomb(); EventDriven() has a restitution of its own",
        )
    return settings
