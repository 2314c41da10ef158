"""`diagnose`: why does it slip? See `diagnose.py`."""

from stiction.record.diagnosis.diagnose import Diagnosis, diagnose
from stiction.record.diagnosis.finding import Finding
from stiction.record.diagnosis.pairs import Pair

__all__ = ["Diagnosis", "Finding", "Pair", "diagnose"]


def __dir__() -> list[str]:
    return __all__
