"""What derivatives of a step cost, beside the step and beside differences of whole steps.

    python benchmarks/derivatives.py [--scene humanoid ...] [--repeat 20] [--menagerie DIR]

For every scene, in microseconds of processor time, the least of so many runs: a step from a state
that it has not seen; J.A and J.B; central differences of our own step; MuJoCo's central
`mjd_transitionFD` of its own. Then how far J is from the differences of our own step, over the
largest entry, with geoms swollen a little so that what touches overlaps (where a gap is zero,
differences straddle the border of contact). "J/step" and "MuJoCo/J" are ratios of times.

A second table has the same of a batch on one thread, for each of its simulations: a step, A and B,
and the products with one vector each, forward (jvp) and back (vjp), of which none makes A and B.
The third has what else a step's derivatives offer: by the masses of all bodies, by the friction of
all geoms, and smoothed A and B with their step.

The arm needs gymnasium; the hand with a block gymnasium-robotics, or else a copy of
mujoco_menagerie, whose Allegro hand it is then; Panda, an arm that holds a block, needs that copy.
What is not installed is left out.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import mujoco
import numpy as np
from simulator_speed import package_file, settle_hand

import stiction

SCENES = ("arm", "pinch", "grasp", "quadruped", "humanoid", "ragdoll", "hand", "panda")
ARM = ("gymnasium", "envs", "mujoco", "assets", "pusher_v5.xml")
"""Seven joints, and a disc on a table that is pushed."""
HAND = ("gymnasium_robotics", "envs", "assets", "hand", "manipulate_block.xml")
ALLEGRO = "wonik_allegro/scene_right.xml"
PANDA = "franka_emika_panda/scene.xml"
NSIM = 16
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

    def end(self, k, amount):
        """Positions, and the rest of the state, after a step with variable k moved."""
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
            (ahead, fast), (behind, slow) = self.end(k, EPS), self.end(k, -EPS)
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


def hold_block(path):
    """(model, data) of the Panda at its keyframe, a block between its fingers, as it sets off."""
    spec = mujoco.MjSpec.from_file(str(path))
    bare = spec.compile()
    home = mujoco.MjData(bare)
    mujoco.mj_resetDataKeyframe(bare, home, 0)
    mujoco.mj_forward(bare, home)
    fingers = [home.body(f"{side}_finger").xpos for side in ("left", "right")]
    hand = home.body("hand")
    place = np.mean(fingers, axis=0) + 0.045 * hand.xmat.reshape(3, 3)[:, 2]
    for key in list(spec.keys):
        spec.delete(key)
    block = spec.worldbody.add_body(pos=place, quat=hand.xquat)
    block.add_freejoint()
    block.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.02, 0.03, 0.02], density=500)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[: bare.nq], data.ctrl[:] = home.qpos, home.ctrl
    data.ctrl[-1] = 0.0
    stiction.Simulator(model).step(data, 300)
    data.ctrl[:7] += 0.05
    return model, data


def load(name, menagerie=None):
    """(model, data, control) of a scene, or None where what it needs is not installed."""
    if name == "panda":
        path = Path(menagerie or "", PANDA)
        return (*hold_block(path), None) if path.exists() else None
    if name not in ("arm", "hand"):
        return stiction.scenes.load(name)
    path = package_file(*(ARM if name == "arm" else HAND))
    if path is None and name == "hand" and menagerie is not None:
        path = Path(menagerie) / ALLEGRO
    if path is None:
        return None
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    if name == "hand":  # which opens a little: at rest, contacts are at borders of their modes
        settle_hand(model, data)
        data.ctrl[:] -= 0.05 * np.ptp(model.actuator_ctrlrange, axis=1)
    else:
        data.ctrl[:] = 0.1
    return model, data, None


def prepare(model, data, control):
    """(simulator, state) after a few steps, with geoms swollen."""
    sim = stiction.Simulator(model)
    for _ in range(40):
        if control:
            control(model, data)
        sim.step(data)
    if control:
        control(model, data)
    swell(model)
    start = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, start, STATE)
    return stiction.Simulator(model), start


def measure(sim, start, data, repeat):
    """([us] of step, J, our differences, theirs), and the error of J."""
    model = sim.model
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
        least(differences, max(2, repeat // 10)),
        least(lambda: mujoco.mjd_transitionFD(model, data, 1e-6, True, A, B, None, None), repeat),
    ]
    want = differences()
    return times, np.abs(np.concatenate(slopes(), axis=1) - want).max() / max(
        1.0, np.abs(want).max()
    )


def measure_batch(model, start, repeat):
    """[us] of a simulation's step, A and B, jvp, vjp."""
    batch = stiction.Batch(model, NSIM, 1)
    n = 2 * model.nv + model.na
    x, u = np.ones((NSIM, n)), np.ones((NSIM, model.nu))
    turn = iter(range(10**9))

    def step():
        batch.state[:] = start
        batch.qvel[:, 0] += 1e-13 * next(turn)
        batch.step()

    runs = [step, batch.derivatives, lambda: batch.jvp(x, u), lambda: batch.vjp(x)]
    step()
    batch.state[:] = start
    batch.derivatives()
    out = [least(step, repeat)]
    batch.state[:] = start
    return [each / NSIM for each in out + [least(run, repeat) for run in runs[1:]]]


def measure_rest(sim, data, repeat):
    """[us] of derivatives by masses and by friction, and smoothed."""
    found = sim.derivatives(data)
    assert found.margin >= 0.0  # what all of them need is made once
    runs = [
        lambda: found.parameters("body_mass"),
        lambda: found.parameters("geom_friction"),
        lambda: sim.derivatives(data, smoothing=1e-3).A,
    ]
    return [least(run, max(2, repeat // 5)) for run in runs]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scene", nargs="+", default=SCENES)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--menagerie", metavar="DIR", help="a copy of it, for Panda and for a hand")
    arguments = parser.parse_args()
    names = f"{'scene':12} {'nv':>4} {'step':>8} {'J':>8} {'ours':>9} {'MuJoCo':>9}"
    print(f"{names}  J/step  MuJoCo/J  error")
    batches, rest = [], []
    for name in arguments.scene:
        loaded = load(name, arguments.menagerie)
        if loaded is None:
            print(f"{name:12} is not installed, left out")
            continue
        model, data, _ = loaded
        sim, start = prepare(*loaded)
        (step, slopes, ours, theirs), error = measure(sim, start, data, arguments.repeat)
        print(
            f"{name:12} {model.nv:4} {step:8.0f} {slopes:8.0f} {ours:9.0f} {theirs:9.0f}"
            f"  {slopes / step:6.1f}  {theirs / slopes:8.1f}  {error:.0e}"
        )
        batches.append((name, *measure_batch(model, start, arguments.repeat)))
        by = (model.nbody, model.ngeom * 3)
        rest.append((name, step, by, measure_rest(sim, data, arguments.repeat)))
    print(f"\n{'in a batch':12} {'step':>8} {'A, B':>8} {'jvp':>8} {'vjp':>8}  A, B/step  vjp/step")
    for name, step, both, forward, back in batches:
        print(
            f"{name:12} {step:8.1f} {both:8.1f} {forward:8.1f} {back:8.1f}"
            f"  {both / step:9.1f}  {back / step:8.1f}"
        )
    print(f"\n{'':12} {'masses':>16} {'friction':>16} {'smoothed':>9}  smoothed/step")
    for name, step, (masses, frictions), (by_mass, by_friction, smooth) in rest:
        print(
            f"{name:12} {by_mass:9.0f} /{masses:5} {by_friction:9.0f} /{frictions:5}"
            f" {smooth:9.0f}  {smooth / step:13.1f}"
        )


if __name__ == "__main__":
    main()
