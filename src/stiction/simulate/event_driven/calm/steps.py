"""Steps without events, compiled as a whole.

Most steps of what stands, walks or flies have no event: contacts that are held stick and go on to
stick, and nothing closes. `CalmSteps` takes such a step in one call, by the same kernels as
`trajectories.py` uses piece by piece, or says that it is not calm; then all is as before, and
the engine takes it. Not calm is a step in which

    a contact approaches, overlaps too much, slides or is about to, or a dry joint moves
    no force was found, or it misses its certificate
    integration errs by more than the tolerance
    a gap may close within it, as far as speeds tell

The forces that a step ends with are the guess of the next one's, and rates of rows, which are those
of its state, are kept for it.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.laws import Law, Table
from stiction.kernels.packing import pack
from stiction.simulate.event_driven.calm.kernel import take
from stiction.simulate.event_driven.calm.work import ROOM, Count, Number, allocate_work
from stiction.simulate.event_driven.surveyor import Outcome
from stiction.simulate.event_driven.trajectories import Motion

Array = NDArray[np.float64]


class CalmSteps:
    """The calm steps of a motion."""

    def __init__(self, motion: Motion, cone: int) -> None:
        model = motion.model
        self._motion = motion
        self.work = allocate_work(
            model.nq, model.nv, model.na, motion.limits, motion.static, motion.dynamic
        )
        self._packed = pack(self.work)
        self._address = int(self._packed.ctypes.data)
        number, count = self.work.figures, self.work.counts
        number[Number.DT], number[Number.MOST_REST] = motion.dt, motion.most_rest
        number[Number.TOLERANCE] = motion.tolerance
        count[Count.HELD] = -1
        flags = model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SENSOR
        count[Count.SENSORS] = int(bool(model.nsensor) and not flags)
        count[Count.ENERGY] = int(bool(model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_ENERGY))
        count[Count.SAME] = int(model.nmocap == 0 and model.neq == 0)
        count[Count.CONE] = cone

    def take(self, data: mujoco.MjData, time: float) -> bool:
        """Whether the step was calm and is taken; time: at its end [s]."""
        motion = self._motion
        self.work.figures[Number.TIME] = time
        done = motion.survey.call(
            data, take, motion.survey.session, data._address, motion.probe._address, self._address
        )
        return done == Outcome.DONE

    @property
    def overlap(self) -> float:
        """Deepest at the start of the last step [m, rad]."""
        return float(self.work.figures[Number.OVERLAP])

    @property
    def pivots(self) -> int:
        """Of the last step."""
        return int(self.work.counts[Count.PIVOTS])

    @property
    def contacts(self) -> int:
        """Within reach of the last step."""
        return int(self.work.counts[Count.CONTACTS])

    @property
    def worst(self) -> float:
        """Largest scaled violation by the forces at the start and at the end of the last step."""
        return max(self.work.scaled.tolist())

    @property
    def verdict(self) -> tuple[Law, Table]:
        """What the certificate of these forces is made from."""
        w = self.work
        return Law.COULOMB, Table(w.value.copy(), w.scaled.copy(), w.where.copy())

    @property
    def record(self) -> Array:
        """(nc, RECORDS) of the last step."""
        return self.work.record[: self.work.counts[Count.RECORDS]].copy()

    @property
    def memory(self) -> tuple[Array, ...] | None:
        """The forces that the last step ended with, or None."""
        w, (nh, nb) = self.work, self.work.counts[: Count.BOX + 1]
        if nh < 0:
            return None
        return w.normal[:nh].copy(), w.tangent[:nh].copy(), w.box[:nb].copy()

    @memory.setter
    def memory(self, forces: tuple[Array, ...] | None) -> None:
        w = self.work
        w.counts[Count.HELD] = -1
        w.qpos[:] = np.nan  # rates are to be found anew
        if forces is not None:
            normal, tangent, box = forces
            nh, nb = len(normal), len(box)
            if nh > ROOM or nb > ROOM:
                return  # no calm step follows
            w.counts[Count.HELD], w.counts[Count.BOX] = nh, nb
            w.normal[:nh], w.tangent[:nh], w.box[:nb] = normal, tangent, box
