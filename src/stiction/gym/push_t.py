"""`stiction/PushT-v0`: push a T to its place, by a round pusher in the plane."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from stiction.gym.task import Array, Task

SPEED = 0.3
"""Largest of the pusher, along each axis [m/s]."""
NEAR, ALIGNED = 0.005, np.radians(5.0)
"""How far from the goal counts as there [m, rad]."""
AWAY = 0.35
"""How far from the goal the T may be pushed [m]."""
LEVER = 0.1
"""Length by which an angle counts as a distance [m/rad]."""
CLEAR = 0.16
"""Distance of the pusher from the T at the start [m]."""


class PushT(Task):
    """A T lies on a table with friction 0.4; a pusher 24 mm across moves it to the goal.

    What the T does when it is pushed is friction alone, under it and at the pusher: nothing else
    holds it or lets it coast.

    Action, Box(-1, 1, (2,)): velocity of the pusher along x and y, up to 0.3 m/s. For 0.04 s.

    Observation, Box(-inf, inf, (12,)): place (2) [m] and velocity (2) [m/s] of the pusher; place of
    the T (2) [m], cosine and sine of its angle, its velocity (2) [m/s] and turning [rad/s]; angle
    left to turn [rad].

    Reward: minus (distance of the T from the goal + 0.1 m times the angle left to turn) over 0.1 m;
    10 more on success.

    Terminated: the T is within 5 mm and 5 degrees of the goal (success), or 0.35 m away. Truncated
    after 300 steps (12 s). `info` has `distance` [m], `angle` [rad], `success`, `certificate`.

    reset(options={"pose": (x, y, angle), "pusher": (x, y)}) sets the start; without it, the T is
    within 0.1 m of the goal, turned at random, and the pusher 0.16 m from it.
    """

    model_file = "push_t.xml"
    frames = 10
    actions = 2
    observations = 12
    asks: ClassVar[dict[str, tuple[tuple[int, ...], float]]] = {
        "pose": ((3,), -np.inf), "pusher": ((2,), -np.inf),
    }  # fmt: skip
    camera: ClassVar[dict[str, Any]] = {
        "distance": 0.9, "azimuth": 90.0, "elevation": -60.0, "lookat": np.array([0, 0, 0]),
    }  # fmt: skip

    def drive(self, action: Array) -> Array:
        """Velocity of the pusher [m/s]."""
        return SPEED * action

    def reset_model(self) -> Array:
        """Draws the pose of the T and the place of the pusher."""
        random = self.np_random
        pose = np.append(random.uniform(-0.07, 0.07, 2), random.uniform(-np.pi, np.pi))
        pose = np.asarray(self.asked.get("pose", pose), np.float64)
        turn = random.uniform(-np.pi, np.pi)
        pusher = pose[:2] + CLEAR * np.array([np.cos(turn), np.sin(turn)])
        qpos = self.init_qpos.copy()
        qpos[:2] = self.asked.get("pusher", pusher)
        qpos[2:4] = pose[:2]
        qpos[5:] = np.cos(0.5 * pose[2]), 0.0, 0.0, np.sin(0.5 * pose[2])
        self.set_state(qpos, self.init_qvel)
        return self.observe()

    @property
    def angle(self) -> float:
        """Of the T, from -pi to pi [rad]."""
        turned = self.data.body("tee").xmat.reshape(3, 3)
        return float(np.arctan2(turned[1, 0], turned[0, 0]))

    def observe(self) -> Array:
        """As the class says."""
        qpos, qvel, angle = self.data.qpos, self.data.qvel, self.angle
        turned = [np.cos(angle), np.sin(angle)]
        return np.concatenate(
            [qpos[:2], qvel[:2], qpos[2:4], turned, qvel[2:4], [qvel[7]], [-angle]]
        )

    def score(self) -> tuple[float, bool, dict[str, Any]]:
        """As the class says."""
        distance, angle = float(np.linalg.norm(self.data.qpos[2:4])), abs(self.angle)
        success = bool(distance < NEAR and angle < ALIGNED)
        reward = -(distance + LEVER * angle) / LEVER + (10.0 if success else 0.0)
        info = {"distance": distance, "angle": angle, "success": success}
        return reward, success or distance > AWAY, info
