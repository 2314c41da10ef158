"""What derivatives of a step cost, beside the step and beside differences of whole steps.

    python benchmarks/derivatives.py [--scene humanoid ...] [--repeat 20]

For every scene, in microseconds of processor time, the least of so many runs: a step from a state
that it has not seen; J.A and J.B; central differences of our own step; MuJoCo's central
`mjd_transitionFD` of its own. Then how far J is from the differences of our own step, over the
largest entry, with geoms swollen a little so that what touches overlaps (where a gap is zero,
differences straddle the border of contact). "J/step" and "MuJoCo/J" are ratios of times.
"""

from __future__ import annotations

import argparse
import os
import time
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import mujoco
import numpy as np

import stiction

SCENES = ("arm", "pinch", "grasp", "quadruped", "humanoid", "ragdoll")
ARM = "gymnasium/envs/mujoco/assets/pusher_v5.xml"
"""Seven joints, and a disc on a table that is pushed."""
STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
EPS = 3e-7


def swell(model, by=1e-5):
    """Makes spheres, capsules, cylinders and boxes a little larger, and joints' ranges smaller."""
    model.jnt_range[model.jnt_limited.astype(bool)] += [by, -by]
    for g in range(model.ngeom):
        kind = mujoco.mjtGeom(int(model.geom_type[g]))
        if kind in (mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_CAPSULE):
            model.geom_size[g, 0] += by
        elif kind == mujoco.mjtGeom.mjGEOM_BOX:
            model.geom_size[g] += by
        elif kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
            model.geom_size[g, :2] += by
        if kind != mujoco.mjtGeom.mjGEOM_PLANE:
            model.geom_rbound[g] += 2.0 * by
            model.geom_aabb[g, 3:] += by


class Differences:
    """(2 nv + na, 2 nv + na + nu) central differences of the simulator's own step."""

    def __init__(self, sim, start):
        self.sim, self.start, self.data = sim, start, mujoco.MjData(sim.model)

    def _end(self, k, amount):
        m, d = self.sim.model, self.data
        mujoco.mj_setState(m, d, self.start, STATE)
        n = 2 * m.nv + m.na
        if k < m.nv:
            mujoco.mj_integratePos(m, d.qpos, np.eye(m.nv)[k], amount)
        elif k < 2 * m.nv:
            d.qvel[k - m.nv] += amount
        elif k < n:
            d.act[k - 2 * m.nv] += amount
        else:
            d.ctrl[k - n] += amount
        self.sim.step(d)
        return d.qpos.copy(), np.concatenate([d.qvel, d.act])

    def __call__(self):
        m = self.sim.model
        out = np.zeros((2 * m.nv + m.na, 2 * m.nv + m.na + m.nu))
        place = np.zeros(m.nv)
        for k in range(out.shape[1]):
            (ahead, fast), (behind, slow) = self._end(k, EPS), self._end(k, -EPS)
            mujoco.mj_differentiatePos(m, place, 2.0 * EPS, behind, ahead)
            out[:, k] = np.concatenate([place, (fast - slow) / (2.0 * EPS)])
        return out


def least(run, repeat):
    """Processor time of the quickest of so many runs [us]."""
    times = []
    for _ in range(repeat):
        began = time.process_time_ns()
        run()
        times.append(time.process_time_ns() - began)
    return min(times) / 1e3


def load(name):
    """(model, data, control) of a scene; the arm is gymnasium's."""
    if name != "arm":
        return stiction.scenes.load(name)
    place = Path(find_spec("gymnasium").origin).parent.parent / ARM
    model = mujoco.MjModel.from_xml_path(str(place))
    data = mujoco.MjData(model)
    data.ctrl[:] = 0.1
    return model, data, None


def measure(name, repeat):
    model, data, control = load(name)
    sim = stiction.Simulator(model)
    for _ in range(40):
        if control:
            control(model, data)
        sim.step(data)
    if control:
        control(model, data)
    swell(model)
    sim = stiction.Simulator(model)
    start = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, start, STATE)
    moved = mujoco.MjData(model)
    turn = iter(range(10**9))

    def step():
        mujoco.mj_setState(model, moved, start, STATE)
        moved.qvel[0] += 1e-13 * next(turn)
        sim.step(moved)

    def slopes():
        found = sim.derivatives(data)
        return found.A, found.B

    A = np.zeros((2 * model.nv + model.na,) * 2)
    B = np.zeros((len(A), model.nu))
    differences = Differences(sim, start)
    slopes()
    times = [
        least(step, 10 * repeat),
        least(slopes, repeat),
        least(differences, max(2, repeat // 5)),
        least(lambda: mujoco.mjd_transitionFD(model, data, 1e-6, True, A, B, None, None), repeat),
    ]
    want = differences()
    return times, np.abs(np.concatenate(slopes(), axis=1) - want).max() / max(
        1.0, np.abs(want).max()
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scene", nargs="+", default=SCENES)
    parser.add_argument("--repeat", type=int, default=20)
    arguments = parser.parse_args()
    names = f"{'scene':12} {'nv':>4} {'step':>8} {'J':>8} {'ours':>9} {'MuJoCo':>9}"
    print(f"{names}  J/step  MuJoCo/J  error")
    for name in arguments.scene:
        (step, slopes, ours, theirs), error = measure(name, arguments.repeat)
        nv = load(name)[0].nv
        print(
            f"{name:12} {nv:4} {step:8.0f} {slopes:8.0f} {ours:9.0f} {theirs:9.0f}"
            f"  {slopes / step:6.1f}  {theirs / slopes:8.1f}  {error:.0e}"
        )


if __name__ == "__main__":
    main()
