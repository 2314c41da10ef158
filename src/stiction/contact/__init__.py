"""Contact problems, their certificates, and the models that solve them.

Names are imported when first used: `contact.models.registry` needs no compiled code.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stiction.contact.certificate.certificate import Certificate as Certificate
    from stiction.contact.certificate.certificate import certify as certify
    from stiction.contact.certificate.solution import ContactSolution as ContactSolution
    from stiction.contact.derivatives.derivatives import ContactDerivatives as ContactDerivatives
    from stiction.contact.models.baraff import Baraff as Baraff
    from stiction.contact.models.coulomb import Coulomb as Coulomb
    from stiction.contact.models.drumwright_shell import DrumwrightShell as DrumwrightShell
    from stiction.contact.models.frictionless import Frictionless as Frictionless
    from stiction.contact.models.ladder import LadderModel as LadderModel
    from stiction.contact.models.model import ContactModel as ContactModel
    from stiction.contact.models.no_slip import NoSlip as NoSlip
    from stiction.contact.models.registry import register as register
    from stiction.contact.models.viscous import Viscous as Viscous
    from stiction.contact.problem.modes import Mode as Mode
    from stiction.contact.problem.problem import ContactProblem as ContactProblem

_HOMES = {
    "certificate.certificate": ("Certificate", "certify"),
    "problem.modes": ("Mode",),
    "certificate.solution": ("ContactSolution",),
    "derivatives.derivatives": ("ContactDerivatives",),
    "models.baraff": ("Baraff",),
    "models.coulomb": ("Coulomb",),
    "models.drumwright_shell": ("DrumwrightShell",),
    "models.frictionless": ("Frictionless",),
    "models.ladder": ("LadderModel",),
    "models.model": ("ContactModel",),
    "models.no_slip": ("NoSlip",),
    "models.registry": ("register",),
    "models.viscous": ("Viscous",),
    "problem.problem": ("ContactProblem",),
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
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
]

if not TYPE_CHECKING:  # a type checker should still find a misspelt name

    def __getattr__(name: str) -> Any:
        if name in _NAMES:
            return getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
