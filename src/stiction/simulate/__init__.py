"""Steppers: MuJoCo's kinematics and collisions, our contact, and the state after the step."""

from stiction.simulate.event_driven.engine import EventDriven as EventDriven
from stiction.simulate.report import Contact as Contact
from stiction.simulate.report import Report as Report
from stiction.simulate.report import Statistics as Statistics
from stiction.simulate.simulator import Simulator as Simulator
from stiction.simulate.simulator import step as step
from stiction.simulate.steppers import TimeStepping as TimeStepping
