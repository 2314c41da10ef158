"""Contact problems, their certificates, and the models that solve them."""

from stiction.contact.baraff import Baraff
from stiction.contact.certificate import Certificate, certify
from stiction.contact.coulomb import Coulomb
from stiction.contact.drumwright_shell import DrumwrightShell
from stiction.contact.frictionless import Frictionless
from stiction.contact.model import ContactModel
from stiction.contact.no_slip import NoSlip
from stiction.contact.problem import ContactProblem
from stiction.contact.solution import ContactSolution, Mode
from stiction.contact.viscous import Viscous

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
