"""Exact rigid-body contact, with a certificate for every answer.

`stiction.lcp` solves linear complementarity problems and knows no physics; `ContactProblem`
and the contact models go from arrays to certified impulses. Parts are imported when first
used, so that `import stiction` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stiction import articulated as articulated
    from stiction import gym as gym
    from stiction import lcp as lcp
    from stiction import scenes as scenes
    from stiction.contact import Baraff as Baraff
    from stiction.contact import Certificate as Certificate
    from stiction.contact import ContactDerivatives as ContactDerivatives
    from stiction.contact import ContactModel as ContactModel
    from stiction.contact import ContactProblem as ContactProblem
    from stiction.contact import ContactSolution as ContactSolution
    from stiction.contact import Coulomb as Coulomb
    from stiction.contact import DrumwrightShell as DrumwrightShell
    from stiction.contact import Frictionless as Frictionless
    from stiction.contact import LadderModel as LadderModel
    from stiction.contact import Mode as Mode
    from stiction.contact import NoSlip as NoSlip
    from stiction.contact import Viscous as Viscous
    from stiction.contact import certify as certify
    from stiction.contact import register as register
    from stiction.errors import InvalidInput as InvalidInput
    from stiction.errors import OverlapWarning as OverlapWarning
    from stiction.errors import SolveFailed as SolveFailed
    from stiction.errors import StictionError as StictionError
    from stiction.simulate import Batch as Batch
    from stiction.simulate import EventDriven as EventDriven
    from stiction.simulate import Report as Report
    from stiction.simulate import SimulationError as SimulationError
    from stiction.simulate import Simulator as Simulator
    from stiction.simulate import Statistics as Statistics
    from stiction.simulate import StepDerivatives as StepDerivatives
    from stiction.simulate import TimeStepping as TimeStepping
    from stiction.simulate import rollout as rollout
    from stiction.simulate import step as step
    from stiction.status import Status as Status
    from stiction.sweeps import sweep as sweep

__version__ = "0.1.0"

_PARTS = ("articulated", "gym", "lcp", "scenes")
_HOMES = {
    "stiction.contact": (
        "Baraff",
        "Certificate",
        "ContactDerivatives",
        "ContactModel",
        "ContactProblem",
        "ContactSolution",
        "Coulomb",
        "DrumwrightShell",
        "Frictionless",
        "LadderModel",
        "Mode",
        "NoSlip",
        "Viscous",
        "certify",
        "register",
    ),
    "stiction.errors": ("InvalidInput", "OverlapWarning", "SolveFailed", "StictionError"),
    "stiction.simulate": (
        "Batch",
        "EventDriven",
        "Report",
        "SimulationError",
        "Simulator",
        "Statistics",
        "StepDerivatives",
        "TimeStepping",
        "rollout",
        "step",
    ),
    "stiction.status": ("Status",),
    "stiction.sweeps": ("sweep",),
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # a type checker should still find a misspelt name

    def __getattr__(name: str) -> Any:
        if name in _PARTS:
            return import_module(f"{__name__}.{name}")
        if name in _NAMES:
            # Kept, so that `stiction.step(...)` in a loop costs what the function does.
            globals()[name] = found = getattr(import_module(_NAMES[name]), name)
            return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [*_PARTS, *_NAMES]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
