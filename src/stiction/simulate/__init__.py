"""Steppers: MuJoCo's kinematics and collisions, our contact, and the state after the step."""

from stiction.simulate.batch.batch import Batch, SimulationError
from stiction.simulate.batch.rollout import Rollout, rollout
from stiction.simulate.derivatives.step_derivatives import StepDerivatives
from stiction.simulate.event_driven.engine import EventDriven
from stiction.simulate.report import Contact, Report, Statistics
from stiction.simulate.simulator import Simulator, State, step
from stiction.simulate.steppers import TimeStepping

__all__ = [
    "Batch",
    "Contact",
    "EventDriven",
    "Report",
    "Rollout",
    "SimulationError",
    "Simulator",
    "State",
    "Statistics",
    "StepDerivatives",
    "TimeStepping",
    "rollout",
    "step",
]


def __dir__() -> list[str]:
    return __all__
