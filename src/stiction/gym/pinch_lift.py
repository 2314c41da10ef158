"""`stiction/PinchLift-v0`: lift a part between two pads without losing it."""

from __future__ import annotations

from typing import Any, ClassVar

import mujoco
import numpy as np

from stiction.gym.task import Array, Task

GOAL = 0.1
"""Height above the table to which the part is to be lifted [m]."""
NEAR = 0.005
"""How far from it counts as there [m]."""
LOST = 0.01
"""How far a part that is in the air may hang below the pads' middle [m]."""
AIRBORNE = 0.005
"""Height from which a part counts as in the air [m]."""
FORCE, SPEED = 10.0, 0.1
"""Largest force of a pad [N] and speed of the carriage [m/s]."""
EFFORT = 0.2
"""What the largest grip costs, where being at the goal pays 1."""


class PinchLift(Task):
    """Two pads close on a cube of 20 mm and a carriage lifts them.

    Mass (0.05 to 0.2 kg) and friction (0.3 to 0.8) are drawn at each reset and are not seen: who
    grips too little loses the part, who grips hard pays for it. The least force of a pad that holds
    is m g / (2 mu), 0.3 to 3.3 N.

    Action, Box(-1, 1, (2,)): grip, force of both pads from 0 to 10 N; speed of the carriage, -0.1
    to 0.1 m/s. For 0.02 s.

    Observation, Box(-inf, inf, (12,)): height of the carriage [m] and its speed [m/s]; way of the
    two pads inward [m] and their speeds [m/s]; the part's place from the pads' middle (3) [m] and
    its velocity (3) [m/s].

    Reward: height of the part over 0.1 m, at most 1 and less above that, minus 0.2 times the grip
    (0 to 1) squared.

    Terminated: the part, in the air, is 10 mm below the pads' middle: it is lost. Truncated after
    200 steps (4 s). `info` has `height` [m], `lost`, `success` (within 5 mm of the goal), `grip`
    [N] and `certificate`.

    reset(options={"mass": ..., "friction": ...}) sets them.
    """

    model_file = "pinch_lift.xml"
    frames = 10
    actions = 2
    observations = 12
    asks: ClassVar[dict[str, tuple[tuple[int, ...], float]]] = {
        "mass": ((), 1e-6), "friction": ((), 0.0),
    }  # fmt: skip
    camera: ClassVar[dict[str, Any]] = {
        "distance": 0.35, "azimuth": 115.0, "elevation": -15.0, "lookat": np.array([0, 0, 0.06]),
    }  # fmt: skip

    def drive(self, action: Array) -> Array:
        """Force of each pad [N], speed of the carriage [m/s]."""
        grip = 0.5 * (action[0] + 1.0) * FORCE
        return np.array([grip, grip, action[1] * SPEED])

    def reset_model(self) -> Array:
        """Draws the part and puts it between the open pads, up to 2 mm beside their middle."""
        drawn = {"mass": self.np_random.uniform(0.05, 0.2)}
        drawn["friction"] = self.np_random.uniform(0.3, 0.8)
        drawn |= self.asked
        part = self.model.body("part").id
        self.model.body_inertia[part] *= drawn["mass"] / self.model.body_mass[part]
        self.model.body_mass[part] = drawn["mass"]
        self.model.geom_friction[:, 0] = drawn["friction"]
        mujoco.mj_setConst(self.model, self.data)
        qpos = self.init_qpos.copy()
        at = self.model.joint("part").qposadr[0]
        qpos[at : at + 2] += self.np_random.uniform(-0.002, 0.002, 2)
        self.set_state(qpos, self.init_qvel)
        return self.observe()

    @property
    def lifted(self) -> float:
        """Of the part above where it lies on the table [m]."""
        return float(self.data.body("part").xpos[2] - self.init_qpos[5])

    def observe(self) -> Array:
        """As the class says."""
        data = self.data
        joints = [
            value
            for name in ("lift", "left", "right")
            for value in (data.joint(name).qpos[0], data.joint(name).qvel[0])
        ]
        away = data.body("part").xpos - data.body("carriage").xpos
        return np.concatenate([joints, away, data.joint("part").qvel[:3]])

    def score(self) -> tuple[float, bool, dict[str, Any]]:
        """As the class says."""
        height = self.lifted
        below = self.data.body("carriage").xpos[2] - self.data.body("part").xpos[2]
        lost = bool(height > AIRBORNE and below > LOST)
        grip = float(self.data.ctrl[0])
        reward = 1.0 - abs(GOAL - height) / GOAL - EFFORT * (grip / FORCE) ** 2
        info = {
            "height": height, "lost": lost, "success": abs(height - GOAL) < NEAR,
            "grip": grip,
        }  # fmt: skip
        return float(reward), lost, info
