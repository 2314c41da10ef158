"""A controller of your own on a scene that ships: the quadruped squats, and its feet stay put.

    python examples/own_controller.py [seconds]

A controller reads the state and writes `data.ctrl` before each step. This one bends and stretches
all legs once in two seconds, by a servo at each joint, on level ground.
"""

import sys

import mujoco
import numpy as np

import stiction
from stiction import scenes

STIFFNESS, DAMPING = 300.0, 6.0
"""Of the servos [N m/rad, N m s/rad]."""


class Squat:
    """Joint torques toward a stance whose hips bend by `depth` [rad] once in two seconds."""

    def __init__(self, model, depth=0.3):
        self.depth = depth
        self.joints = [model.actuator(i).trnid[0] for i in range(model.nu)]
        self.position = model.jnt_qposadr[self.joints]
        self.velocity = model.jnt_dofadr[self.joints]
        self.stance = model.key_qpos[0][self.position]
        names = [model.joint(joint).name for joint in self.joints]
        bend = {"abduction": 0.0, "hip": 1.0, "knee": -2.0}  # the foot stays below its hip
        self.bend = np.array([bend[name.rsplit("_", 1)[1]] for name in names])

    def __call__(self, model, data):
        """Writes data.ctrl for the state in data."""
        share = 0.5 * (1.0 - np.cos(np.pi * data.time))
        wanted = self.stance + self.depth * share * self.bend
        error = wanted - data.qpos[self.position]
        data.ctrl[:] = STIFFNESS * error - DAMPING * data.qvel[self.velocity]


def main(seconds=2.0):
    model, data, _ = scenes.load("quadruped", roughness=0.0)
    controller = Squat(model)
    simulator = stiction.Simulator(model)
    feet = [i for i in range(model.ngeom) if model.geom(i).name.endswith("_foot")]
    mujoco.mj_kinematics(model, data)
    start = data.geom_xpos[feet].copy()
    lowest, fastest = data.qpos[2], 0.0
    while data.time < float(seconds):
        controller(model, data)
        report = simulator.step(data)
        lowest = min(lowest, data.qpos[2])
        slips = [np.hypot(*c.slip) for c in report.contacts if c.mode != stiction.Mode.SEPARATE]
        fastest = max([fastest, *slips])
    mujoco.mj_kinematics(model, data)
    moved = np.linalg.norm(data.geom_xpos[feet] - start, axis=1).max()
    print(f"the trunk went down to {lowest:.3f} m from {model.key_qpos[0][2]:.3f} m")
    print(f"fastest slip of a foot {fastest:.0e} m/s; feet moved by {1e3 * moved:.2f} mm, rolling")
    print(
        f"worst certificate of {simulator.statistics.steps} steps {simulator.statistics.worst:.0e}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
