"""Whole steps beside MuJoCo's: default `mj_step`, tuned for friction (A, C), and ours by stage.

All are measured in turns within one run, on the same states' motion, by calls of many steps, in
processor time:

    python benchmarks/simulator_speed.py            the table of the scenes
    python benchmarks/simulator_speed.py --growth   islands 1 to 64 and stacks 1 to 40
    python benchmarks/simulator_speed.py --menagerie DIR   robots of a copy of mujoco_menagerie
    ... --moving            the same with controls that swing by 2 %, new in every call of one step

A = elliptic cone, impratio 100, solref "2dt 1", solimp ".99 .9999 1e-4"; C = A and noslip 20,
what a MuJoCo user sets who wants nothing to slip. `floor` is `mj_fwdPosition` alone.
"""

from __future__ import annotations

import argparse
import copy
import signal
import warnings
from importlib.util import find_spec
from pathlib import Path
from time import thread_time

import mujoco
import numpy as np

import stiction
from stiction import scenes
from stiction.record import tuned

ROUNDS, STEPS = 15, 200
ROBOTS = {
    "ANYmal C": "anybotics_anymal_c/scene.xml",
    "Unitree G1": "unitree_g1/scene.xml",
    "Robotiq 2F-85": "robotiq_2f85/scene.xml",
    "Panda": "franka_emika_panda/scene.xml",
    "Allegro hand": "wonik_allegro/scene_right.xml",
}
"""Of menagerie, with their floors."""


def package_file(package, *parts):
    spec = find_spec(package)
    if spec is None:
        return None
    path = Path(spec.submodule_search_locations[0], *parts)
    return path if path.exists() else None


def standing(path, stiffness):
    """A robot of dm_control on its feet, joints held where they are by servos."""
    spec = mujoco.MjSpec.from_file(str(path))
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_HINGE:
            joint.damping[0] = max(joint.damping[0], 0.05 * stiffness)
            spec.add_actuator(
                name=f"hold_{joint.name}", target=joint.name,
                trntype=mujoco.mjtTrn.mjTRN_JOINT, ctrllimited=0,
                gainprm=[stiffness] + 9 * [0.0], biastype=mujoco.mjtBias.mjBIAS_AFFINE,
                biasprm=[0.0, -stiffness] + 8 * [0.0],
            )  # fmt: skip
    return spec.compile()


def settle(model, data, seconds=1.5):
    """Lets a robot come down on the floor under our own steps."""
    lift_onto_floor(model, data)
    stiction.Simulator(model).step(data, int(seconds / model.opt.timestep))


def lift_onto_floor(model, data):
    data.qpos[2] += 1.0
    mujoco.mj_forward(model, data)
    floor = next(g for g in range(model.ngeom) if model.geom_type[g] == mujoco.mjtGeom.mjGEOM_PLANE)
    gap = min(
        mujoco.mj_geomDistance(model, data, floor, g, 10.0, None)
        for g in range(model.ngeom)
        if model.geom_bodyid[g] > 0 and model.geom_contype[g] | model.geom_conaffinity[g]
    )
    data.qpos[2] -= gap


def cases():
    """(name, model, data) of every scene that is at hand."""
    for name, options in (
        ("pinch", {}),
        ("grasp", {"boxes": 2}),
        ("grasp", {"boxes": 4}),
        ("grasp", {"boxes": 8}),
        ("stack", {}),
    ):
        model, data, _ = scenes.load(name, **options)
        yield " ".join([name, *map(str, options.values())]), model, data
    for name, stiffness in (("quadruped", 300.0), ("humanoid", 300.0)):
        path = package_file("dm_control", "suite", f"{name}.xml")
        if path is None:
            print(f"{name}: dm_control is not installed, left out")
            continue
        model = standing(path, stiffness)
        data = mujoco.MjData(model)
        settle(model, data)
        yield f"standing {name}", model, data
    path = package_file("gymnasium_robotics", "envs", "assets", "hand", "manipulate_block.xml")
    if path is None:
        print("hand: gymnasium-robotics is not installed, left out")
    else:
        model = mujoco.MjModel.from_xml_path(str(path))
        data = mujoco.MjData(model)
        settle_hand(model, data)
        yield "hand with a block", model, data


def robots(folder):
    """(name, model, data) of menagerie's robots, a second after their keyframes, servos at work.

    Hands and grippers, which have no keyframe or an open one, close halfway.
    """
    for name, scene in ROBOTS.items():
        path = Path(folder, scene)
        if not path.exists():
            print(f"{name}: no {path}, left out")
            continue
        model = mujoco.MjModel.from_xml_path(str(path))
        data = mujoco.MjData(model)
        if model.nkey:
            mujoco.mj_resetDataKeyframe(model, data, 0)
        else:
            data.ctrl[:] = model.actuator_ctrlrange.mean(axis=1)
        stiction.Simulator(model).step(data, round(1.0 / model.opt.timestep))
        yield name, model, data


def settle_hand(model, data):
    """Closes the hand on the block that lies in its palm."""
    data.ctrl[:] = model.actuator_ctrlrange.mean(axis=1)
    stiction.Simulator(model).step(data, 500)


class Runner:
    """Steps a copy of the data, and times calls of many steps."""

    def __init__(self, model, data, simulator=None):
        self.model, self.simulator = model, simulator
        self.data = copy.copy(data)
        self.times = []

    def run(self, steps):
        begun = thread_time()
        if self.simulator is None:
            mujoco.mj_step(self.model, self.data, steps)
        else:
            self.simulator.step(self.data, steps)
        self.times.append((thread_time() - begun) / steps * 1e6)

    @property
    def median(self):
        return float(np.median(self.times))


def floor_of(model, data, steps=300):
    data = copy.copy(data)
    mujoco.mj_fwdPosition(model, data)
    begun = thread_time()
    for _ in range(steps):
        mujoco.mj_fwdPosition(model, data)
    return (thread_time() - begun) / steps * 1e6


def measure(model, data):
    simulator = stiction.Simulator(model)
    runners = {
        "default": Runner(model, data),
        "A": Runner(tuned(model, 0), data),
        "C": Runner(tuned(model, 20), data),
        "ours": Runner(model, data, simulator),
    }
    for runner in runners.values():
        runner.run(STEPS)
        runner.times.clear()
    simulator.reset_statistics()
    floors = []
    for _ in range(ROUNDS):
        for runner in runners.values():
            runner.run(STEPS)
        floors.append(floor_of(model, runners["ours"].data, 50))
    return {name: runner.median for name, runner in runners.items()}, floors, simulator.statistics


def table(chosen):
    print("us per step, medians; ratio: C over ours, default over ours (above 1: ours is faster)\n")
    header = f"{'scene':<20}{'nv':>4}{'blocks':>7} {'default':>8}{'A':>8}{'C':>8}{'ours':>8}"
    print(header + f"{'C/ours':>8}{'def/ours':>9}{'ours/floor':>11}   by stage, %", flush=True)
    for name, model, data in chosen:
        times, floors, statistics = measure(model, data)
        total = sum(statistics.seconds.values())
        stages = " ".join(
            f"{stage} {100 * part / total:.0f}" for stage, part in statistics.seconds.items()
        )
        ours = times["ours"]
        print(
            f"{name:<20}{model.nv:>4}{statistics.contacts:>7.1f} {times['default']:>8.1f}"
            f"{times['A']:>8.1f}{times['C']:>8.1f}{ours:>8.1f}{times['C'] / ours:>8.2f}"
            f"{times['default'] / ours:>9.2f}{ours / np.median(floors):>11.2f}   {stages}"
            f"   worst {statistics.worst:.0e}",
            flush=True,
        )


def moving(chosen):
    print("us per call of one step with new controls, medians\n", flush=True)
    for name, model, data in chosen:
        if model.nu == 0:
            continue
        simulator, own, other = stiction.Simulator(model), copy.copy(data), copy.copy(data)
        base, times = data.ctrl.copy(), []
        swing = 0.02 * np.maximum(np.abs(base), 0.5) * np.cos(np.arange(model.nu))
        for k in range(ROUNDS):
            phase = 2.0 * np.pi * model.opt.timestep * np.arange(k * STEPS, (k + 1) * STEPS)
            controls = base + np.sin(phase)[:, None] * swing
            begun = thread_time()
            for own.ctrl[:] in controls:
                simulator.step(own)
            between = thread_time()
            for other.ctrl[:] in controls:
                mujoco.mj_step(model, other)
            times.append((thread_time() - between, between - begun))
        default, ours = np.median(times[2:], axis=0) / STEPS * 1e6
        ratio = default / ours
        print(f"{name:<20} default {default:8.1f} ours {ours:8.1f} {ratio:6.2f}", flush=True)


def growth():
    for title, option, sizes in (
        ("separate boxes", "islands", (1, 2, 4, 8, 16, 32, 64)),
        ("stack of boxes", "stack", (1, 2, 5, 10, 20, 40)),
    ):
        print(f"\n{title}: us per step", flush=True)
        previous = None
        for n in sizes:
            model = boxes(n, option)
            data = mujoco.MjData(model)
            ours, theirs = Runner(model, data, stiction.Simulator(model)), Runner(model, data)
            for runner in (ours, theirs):
                runner.run(100)
                runner.times.clear()
            for _ in range(7):
                ours.run(100)
                theirs.run(100)
            slope = (
                "" if previous is None else f"  exponent {exponent(previous, (n, ours.median)):.2f}"
            )
            print(
                f"  {n:>3}: ours {ours.median:8.1f}  default mj_step {theirs.median:8.1f}{slope}",
                flush=True,
            )
            previous = (n, ours.median)


def exponent(before, after):
    return np.log(after[1] / before[1]) / np.log(after[0] / before[0])


def boxes(n, option):
    """n boxes of 0.1 m, side by side or on top of each other."""
    bodies = "".join(
        f"<body pos='{0.3 * k if option == 'islands' else 0} 0 "
        f"{0.05 if option == 'islands' else 0.05 + 0.1 * k}'><freejoint/>"
        "<geom type='box' size='.05 .05 .05' density='1000'/></body>"
        for k in range(n)
    )
    return mujoco.MjModel.from_xml_string(
        "<mujoco><option timestep='0.001'/><worldbody><geom type='plane' size='50 50 1'/>"
        f"{bodies}</worldbody></mujoco>"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--menagerie", metavar="DIR", help="its robots instead of the scenes")
    parser.add_argument("--moving", action="store_true", help="controls that swing")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if hasattr(signal, "SIGPIPE"):  # into `head`: ends quietly when the reader has had enough
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if arguments.growth:
        growth()
    else:
        chosen = robots(arguments.menagerie) if arguments.menagerie else cases()
        (moving if arguments.moving else table)(chosen)
