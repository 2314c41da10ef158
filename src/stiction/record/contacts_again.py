"""The contacts of a trajectory's samples, found again.

A trajectory holds states and no forces. They are found by one step of the trajectory's contact
model from the sample's state, or by `mj_forward` where MuJoCo recorded it.
"""

from __future__ import annotations

import mujoco

from stiction.contact.models.registry import parse_contact
from stiction.record import contacts as shown
from stiction.record.comparison import NOSLIP, quiet
from stiction.record.contacts import Contacts
from stiction.record.trajectory import Trajectory
from stiction.simulate.simulator import Simulator


class ContactsAgain:
    """Finds the contacts of any sample, on data of its own.

    Raises StictionError where the trajectory was recorded under a contact model that has no name
    here; `find` does where a step has no answer.
    """

    def __init__(self, trajectory: Trajectory) -> None:
        self._trajectory = trajectory
        self._model = trajectory.model()
        self._data = mujoco.MjData(self._model)
        self._simulator: Simulator | None = None
        if trajectory.contact not in NOSLIP:
            self._simulator = Simulator(self._model, parse_contact(trajectory.contact))

    def find(self, sample: int) -> tuple[Contacts, float]:
        """Contacts of the step that starts at the sample, and the worst violation of any law (0 for
        MuJoCo, which has no certificate)."""
        model, data = self._model, self._data
        self._trajectory.put(data, sample)
        if self._simulator is None:
            with quiet():
                mujoco.mj_forward(model, data)
            return shown.as_arrays(shown.mujoco_contacts(model, data), model, data), 0.0
        report = self._simulator.step(data)
        return shown.as_arrays(report.contacts, model, data), report.certificate.worst
