"""How long the slowest steps take of what is jointed or falls apart: chains, ragdolls, an arch.

    python benchmarks/tails.py [--seeds 4] [--seconds 2] [--scene chain:20 ragdoll]
    python benchmarks/tails.py --scene g1 --menagerie DIR    DIR: a copy of mujoco_menagerie

    chain:N[:friction]   N capsules on ball joints, let fall upright on one end
    ragdoll              the scene of that name, thrown
    rubble               the arch that lost a foot
    g1                   menagerie's Unitree G1 with hands, its servos off, thrown

For every scene, over all seeds, which draw the first velocities: steps, milliseconds of processor
time of a step (median of those with contacts, p99, worst), steps over 20 ms, failures, the worst
certificate, how many steps missed 1e-8, and what answered.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import mujoco
import numpy as np
from compiled import compile_all

import stiction

SCENES = ("chain:20", "chain:50", "ragdoll", "rubble")
SLOW = 20.0
"""Of a step [ms]: those that take longer are counted."""


def chain(links, friction=1.0):
    """A model of so many capsules of 0.1 kg, joined every 0.1 m by ball joints, upright but for 10
    degrees, its lower end above the floor."""
    spec = mujoco.MjSpec()
    spec.option.timestep, spec.memory = 0.002, 500 * 2**20
    spec.default.geom.friction = [friction, 0.0, 0.0]
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.1])
    parent, place = spec.worldbody, [0.0, 0.0, 0.1 * links + 0.3]
    half = np.radians(80.0) / 2
    turn = [np.cos(half), 0.0, np.sin(half), 0.0]
    for link in range(links):
        parent = parent.add_body(pos=place, quat=turn)
        if link == 0:
            parent.add_freejoint()
        else:
            parent.add_joint(type=mujoco.mjtJoint.mjJNT_BALL, pos=[-0.05, 0, 0], damping=1e-3)
        parent.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CAPSULE,
            size=[0.02, 0.028, 0.0],
            quat=[np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0],
            mass=0.1,
        )
        place, turn = [0.1, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
    return spec.compile()


def g1(menagerie):
    """The robot with hands on its floor, without its servos."""
    path = Path(menagerie) / "unitree_g1" / "scene_with_hands.xml"
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    return model


def start(name, seed, menagerie):
    """Model and state of a scene, with the first velocities of that seed."""
    rng = np.random.default_rng(seed)
    kind, *rest = name.split(":")
    if kind == "chain":
        model = chain(int(rest[0]), *map(float, rest[1:]))
        data = mujoco.MjData(model)
        data.qvel[3:] = 0.1 * rng.normal(size=model.nv - 3)
        return model, data
    if kind == "g1":
        model = g1(menagerie)
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
    else:
        model, data, _ = stiction.scenes.load(kind)
    if kind == "rubble":
        data.qvel[:] = 0.01 * rng.normal(size=model.nv)
    else:
        data.qvel[:] += rng.normal(size=model.nv)
    return model, data


def run(name, seed, seconds, menagerie):
    """(milliseconds, contacts, certificates, rungs, failures) of the steps of one seed; a run ends
    with its first failure."""
    model, data = start(name, seed, menagerie)
    sim = stiction.Simulator(model)
    sim.step(mujoco.MjData(model))
    sim.forget()
    times, contacts, worst, rungs = [], [], [], Counter()
    for _ in range(round(seconds / model.opt.timestep)):
        before = time.thread_time()
        try:
            report = sim.step(data)
        except stiction.SolveFailed:
            return times, contacts, worst, rungs, 1
        times.append(1e3 * (time.thread_time() - before))
        contacts.append(data.ncon)
        worst.append(report.certificate.worst)
        rungs[report.rung] += 1
    return times, contacts, worst, rungs, 0


def summarize(name, seeds, seconds, menagerie):
    """Prints the line of one scene."""
    times, contacts, worst, rungs, failures = [], [], [], Counter(), 0
    for seed in range(seeds):
        spent, touching, certificates, answered, failed = run(name, seed, seconds, menagerie)
        times += spent
        contacts += touching
        worst += certificates
        rungs += answered
        failures += failed
    spent, touching = np.array(times), np.array(contacts) > 0
    print(
        f"{name}: {len(times)} steps, {max(contacts)} contacts at most, median "
        f"{np.median(spent[touching]):.2f} p99 {np.percentile(spent, 99):.2f} worst "
        f"{spent.max():.1f} ms, {sum(spent > SLOW)} over {SLOW:g} ms, {failures} failures, "
        f"certificate worst {max(worst):.1e}, {sum(w > 1e-8 for w in worst)} above 1e-8, "
        f"{dict(rungs)}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scene", nargs="+", default=SCENES)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--menagerie", help="a copy of google-deepmind/mujoco_menagerie, for g1")
    given = parser.parse_args()
    compile_all()
    for name in given.scene:
        summarize(name, given.seeds, given.seconds, given.menagerie)


if __name__ == "__main__":
    main()
