"""Runs that are kept: trajectories, time series, reports, comparisons, diagnoses.

Reports are drawn with plotly and written with jinja2, which are imported only when one is written:
`stiction.record.page`.
"""

from stiction.contact.models.registry import contact_name, parse_contact
from stiction.record.comparison import Comparison, Outcome, compare, tuned
from stiction.record.diagnosis import Diagnosis, Finding, diagnose
from stiction.record.motion import Motion, motion
from stiction.record.recording import Progress, Recording, record
from stiction.record.render.film import Camera, Film, Look, shoot
from stiction.record.trajectory import Trajectory

__all__ = [
    "Camera",
    "Comparison",
    "Diagnosis",
    "Film",
    "Finding",
    "Look",
    "Motion",
    "Outcome",
    "Progress",
    "Recording",
    "Trajectory",
    "compare",
    "contact_name",
    "diagnose",
    "motion",
    "parse_contact",
    "record",
    "shoot",
    "tuned",
]


def __dir__() -> list[str]:
    return __all__
