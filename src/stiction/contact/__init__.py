"""Contact problems, their certificates, and the models that solve them."""

from stiction.contact.certificate.certificate import Certificate, certify
from stiction.contact.models.baraff import Baraff
from stiction.contact.models.coulomb import Coulomb
from stiction.contact.models.drumwright_shell import DrumwrightShell
from stiction.contact.models.frictionless import Frictionless
from stiction.contact.models.model import ContactModel
from stiction.contact.models.no_slip import NoSlip
from stiction.contact.models.solution import ContactSolution, Mode
from stiction.contact.models.viscous import Viscous
from stiction.contact.problem.problem import ContactProblem

__all__ = [
    "Baraff",
    "Certificate",
    "ContactModel",
    "ContactProblem",
    "ContactSolution",
    "Coulomb",
    "DrumwrightShell",
    "Frictionless",
    "Mode",
    "NoSlip",
    "Viscous",
    "certify",
]


def __dir__() -> list[str]:
    return __all__
