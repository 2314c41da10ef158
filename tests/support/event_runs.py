"""Event-driven runs of small models that keep what every run must obey."""

import mujoco
import numpy as np

from stiction.contact import Coulomb
from stiction.simulate.event_driven.engine import EventDriven, EventEngine

GRAVITY = 9.81
TOLERANCE = 1e-7
FLOOR = '<geom type="plane" size="5 5 .1" friction=".1"/>'


def load(body, floor=FLOOR, option=""):
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><option {option}><flag energy='enable'/></option>"
        f"<worldbody>{floor}{body}</worldbody></mujoco>"
    )


def free(geom, at="0 0 1"):
    return f'<body name="thing" pos="{at}"><freejoint/><geom {geom}/></body>'


BALL = load(free('size=".1"', "0 0 1.1"))
BOX = load(free('type="box" size=".1 .1 .1" friction=".5"', "0 0 .1"))


def name(contact):
    return type(contact).__name__


class Run:
    """Steps a model and keeps what every run must obey."""

    def __init__(self, model, contact=None, **options):
        self.model, self.data = model, mujoco.MjData(model)
        self.engine = EventEngine(model, contact or Coulomb(), EventDriven(**options))
        self.overlap, self.rise, self.worst = 0.0, 0.0, 0.0

    def step(self, count=1, watch=lambda: None):
        seen = []
        mujoco.mj_forward(self.model, self.data)
        energy = self.data.energy.sum()
        for _ in range(count):
            self.report = self.engine.step(self.data)
            self.rise = max(self.rise, self.data.energy.sum() - energy)
            energy = self.data.energy.sum()
            self.overlap = max(self.overlap, *(-c.gap for c in self.report.contacts), 0.0)
            self.worst = max(self.worst, self.report.certificate.worst)
            seen.append(watch())
        return seen

    def until_rest(self, longest, speed=1e-6):
        """Steps until nothing moves; whether it came to that before `longest` [s]."""
        while self.data.time < longest:
            self.step()
            if np.abs(self.data.qvel).max() < speed:
                self.step()
                if np.abs(self.data.qvel).max() < speed:
                    return True
        return False
