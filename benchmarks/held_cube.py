"""A cube that an Allegro hand holds: how fast it creeps, by stiction and by MuJoCo.

    python benchmarks/held_cube.py MENAGERIE      a copy of google-deepmind/mujoco_menagerie

The hand of wonik_allegro closes with its own servos on a cube of 5 cm and 100 g, mu = 0.7, that
falls into it. After 4 s the cube's motion over the next 10 s is measured, from the same state for
all: by time steps of three lengths, and by MuJoCo as the model is, with impratio 1000, and with
noslip. The last column is the part of the weight that forces within the cones of the contacts that
touch cannot balance at rest, at the end of the run (a linear program; facets of 64).
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import mujoco
import numpy as np
from scipy.optimize import linprog

import stiction
from stiction.contact.problem.block_problem import to_problem
from stiction.simulate.time_stepping.workspace import Count

GRASPS = {"base": (0.08, 0.3), "finger": (0.06, 0.3), "palm": (0.06, 0.45)}
"""Where the cube starts before the wrist [m], and how far the fingers close."""

THUMB = {"tha0": 0.9, "tha1": 0.4, "tha2": 0.45, "tha3": 0.5}
SETTLE, SECONDS = 4.0, 10.0


def build(folder: Path, start: float, dt: float = 2e-3) -> mujoco.MjModel:
    """The hand with the cube."""
    spec = mujoco.MjSpec.from_file(str(folder / "wonik_allegro" / "scene_right.xml"))
    spec.delete(spec.body("object"))
    cube = spec.worldbody.add_body(name="cube", pos=[start, 0.0, 0.08])
    cube.add_freejoint()
    box = mujoco.mjtGeom.mjGEOM_BOX
    cube.add_geom(type=box, size=[0.025] * 3, mass=0.1, friction=[0.7, 0, 0], priority=1, condim=3)
    spec.option.timestep = dt
    return spec.compile()


def grip(model: mujoco.MjModel, close: float) -> np.ndarray:
    """Targets of the servos."""
    low, high = model.actuator_ctrlrange.T
    names = [model.actuator(i).name for i in range(model.nu)]
    share = np.array([THUMB.get(name, close) for name in names])
    target = low + share * (high - low)
    target[[name[:2] != "th" and name.endswith("0") for name in names]] = 0.0
    return target


def unbalanced(model: mujoco.MjModel, state: mujoco.MjData) -> float:
    """See the head [share of the cube's weight]."""
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = state.qpos, state.ctrl
    simulator = stiction.Simulator(model, stepper=stiction.TimeStepping(push_out=False))
    simulator.step(data)
    work = simulator._work
    problem = to_problem(
        work.blocks, int(work.step.counts[Count.BLOCKS]), float(model.opt.timestep)
    )
    angle = 2.0 * np.pi * np.arange(64) / 64
    circle = np.stack([np.cos(angle), np.sin(angle)])
    rays = np.concatenate(
        [
            problem.normal[i] + problem.friction[i] * (circle.T @ problem.tangent[i])
            for i in np.flatnonzero(problem.bound >= 0.0)
        ]
    ).T
    dry, limit = problem.box.T, problem.box_limit / problem.dt
    both, one = np.hstack([rays, dry]), np.ones((model.nv, 1))
    found = linprog(
        np.append(np.zeros(both.shape[1]), 1.0),
        A_ub=np.block([[both, -one], [-both, -one]]),
        b_ub=np.concatenate([-problem.force, problem.force]),
        bounds=[(0, None)] * rays.shape[1] + [(-x, x) for x in limit] + [(0, None)],
    )
    return float(found.fun) / (0.1 * 9.81)


def creep(model: mujoco.MjModel, state: mujoco.MjData, ours: bool) -> tuple[float, mujoco.MjData]:
    """Speed of the cube over the second half of the run [um/s], and the state at its end."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = state.qpos, state.qvel, state.ctrl
    simulator = stiction.Simulator(model) if ours else None
    places = []
    for _ in range(2):
        steps = round(0.5 * SECONDS / model.opt.timestep)
        if simulator is None:
            mujoco.mj_step(model, data, steps)
        else:
            simulator.step(data, steps)
        mujoco.mj_kinematics(model, data)
        places.append(data.body("cube").xpos.copy())
    return 1e6 * float(np.linalg.norm(places[1] - places[0])) / (0.5 * SECONDS), data


def main() -> None:
    """The table."""
    warnings.simplefilter("ignore", stiction.OverlapWarning)
    folder = Path(sys.argv[1])
    print(f"{'grasp':8} {'engine':24} {'creep um/s':>10} {'unbalanced':>11}")
    for name, (start, close) in GRASPS.items():
        model = build(folder, start)
        state = mujoco.MjData(model)
        state.ctrl[:] = grip(model, close)
        stiction.Simulator(model).step(state, round(SETTLE / model.opt.timestep))
        for dt in (2e-3, 1e-3, 5e-4):
            other = build(folder, start, dt)
            speed, end = creep(other, state, True)
            left, label = unbalanced(other, end), f"stiction {1e3 * dt:g} ms"
            print(f"{name:8} {label:24} {speed:10.2g} {left:11.1e}", flush=True)
        for label, impratio, noslip in (
            ("MuJoCo", 10, 0),
            ("impratio 1000", 1000, 0),
            ("noslip", 10, 20),
        ):
            other = build(folder, start)
            other.opt.impratio, other.opt.noslip_iterations = impratio, noslip
            speed, end = creep(other, state, False)
            print(f"{name:8} {label:24} {speed:10.2g} {unbalanced(other, end):11.1e}", flush=True)


if __name__ == "__main__":
    main()
