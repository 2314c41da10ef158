"""Contact problems, the laws they obey, and what an answer looks like."""

from stiction.contact.arrays import Whitened
from stiction.contact.certificate import Certificate, certify
from stiction.contact.islands import Island
from stiction.contact.problem import ContactProblem
from stiction.contact.solution import ContactSolution, Mode

__all__ = [
    "Certificate",
    "ContactProblem",
    "ContactSolution",
    "Island",
    "Mode",
    "Whitened",
    "certify",
]
