"""Linear complementarity problems, solved by pivoting. Nothing of physics in here."""

from stiction.lcp.ladder import METHODS
from stiction.lcp.result import Result, Rung
from stiction.lcp.solve import solve
from stiction.status import Status

__all__ = ["METHODS", "Result", "Rung", "Status", "solve"]


def __dir__() -> list[str]:
    return __all__
