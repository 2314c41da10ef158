"""How far derivatives of a step are from differences of whole steps, for a folder of models.

    python benchmarks/derivative_agreement.py DIR [--scene unitree_g1/scene.xml ...]

DIR is a copy of mujoco_menagerie, or any folder with a folder for each robot: its files scene*.xml
are taken, those that load, up to 60 degrees of freedom. Each robot settles from its first keyframe,
then is pushed twice at random, and steered by small random controls. From each of these states it
is moved by 1e-5, at random: what rests just touches, which is a border, and is either pressed or
apart then.

Every column of J.A and J.B is compared with central differences of our own step, at two widths, of
which the better counts. Where they are off by more than 1e-5 of the largest entry, and those of
either side differ, the column has a border of modes within the width. The table has, for each
state, how many contacts bear, J.margin, the largest error of all other columns, how many
columns have a border, and how far the nearer side is from J there. A margin of zero without borders
says that friction leaves the velocity undetermined: the step has taken one of several. The last
line counts the states that are no such border, and whose J is off.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import mujoco
import numpy as np
from derivatives import STATE, Differences

import stiction

WIDTHS = (3e-7, 3e-8)
TOLERANCE = 1e-5
AT_BORDER = 1e-8
"""Margin below which a step is at a border: answers are no more exact."""
MOST_FREEDOM = 60
SETTLES, MOVES, PUSHES = 300, 25, 2
"""Steps before the first state, and before each of so many others."""
PUSH, STEER, NUDGE = 0.3, 0.02, 1e-5
"""Random changes: of velocities [m/s, rad/s], of controls over their range, of positions."""


def states(model, sim, rng):
    """(name, state) of a robot that settles, and is pushed."""
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    ctrl = data.ctrl.copy()
    span = np.where(model.actuator_ctrllimited, np.ptp(model.actuator_ctrlrange, axis=1), 1.0)
    for turn in range(1 + PUSHES):
        if turn > 0:
            data.qvel[:] += PUSH * rng.standard_normal(model.nv)
        for _ in range(MOVES if turn > 0 else SETTLES):
            if turn > 0:
                data.ctrl[:] = ctrl + STEER * span * rng.standard_normal(model.nu)
            sim.step(data)
        moved = mujoco.MjData(model)
        state = np.empty(mujoco.mj_stateSize(model, STATE))
        mujoco.mj_getState(model, data, state, STATE)
        mujoco.mj_setState(model, moved, state, STATE)
        mujoco.mj_integratePos(model, moved.qpos, NUDGE * rng.standard_normal(model.nv), 1.0)
        moved.qvel[:] += 1e2 * NUDGE * rng.standard_normal(model.nv)
        yield ("pushed" if turn > 0 else "settled"), moved


def sides(sim, data, width):
    """Differences of our own step: ahead, behind, central."""
    m = sim.model
    start = np.empty(mujoco.mj_stateSize(m, STATE))
    mujoco.mj_getState(m, data, start, STATE)
    steps = Differences(sim, start)
    out = np.zeros((3, 2 * m.nv + m.na, 2 * m.nv + m.na + m.nu))
    place = np.zeros(m.nv)
    middle = steps.end(0, 0.0)
    for k in range(out.shape[2]):
        sim.forget()
        ahead = steps.end(k, width)
        sim.forget()
        behind = steps.end(k, -width)
        ends = ((middle, ahead, width), (behind, middle, width), (behind, ahead, 2.0 * width))
        for which, (first, last, far) in enumerate(ends):
            mujoco.mj_differentiatePos(m, place, far, first[0], last[0])
            out[which, :, k] = np.concatenate([place, (last[1] - first[1]) / far])
    return out


def compare(sim, data):
    """(derivatives, error, borders, error of the nearer side)."""
    sim.forget()
    found = sim.derivatives(data)
    have = np.concatenate([found.A, found.B], axis=1)
    errors, kinks, nearer = [], [], []
    for width in WIDTHS:
        ahead, behind, central = sides(sim, data, width)
        size = max(1.0, np.abs(central).max())
        ahead_off, behind_off, off = (
            np.abs(each - have).max(axis=0) / size for each in (ahead, behind, central)
        )
        errors.append(off)
        kinks.append(np.abs(ahead - behind).max(axis=0) / size)
        nearer.append(np.minimum(ahead_off, behind_off))
    error = np.min(errors, axis=0)
    border = (error > TOLERANCE) & (np.min(kinks, axis=0) > TOLERANCE)
    one_side = np.min(nearer, axis=0)[border].max(initial=0.0)
    return found, error[~border].max(initial=0.0), int(border.sum()), one_side


def measure(path, name):
    """Prints the lines of one robot; (states in contact, those whose J is off)."""
    model = mujoco.MjModel.from_xml_path(str(path))
    if not 0 < model.nv <= MOST_FREEDOM:
        return 0, 0
    sim, probe = stiction.Simulator(model), stiction.Simulator(model)
    bearing, off = 0, 0
    for kind, data in states(model, sim, np.random.default_rng(1)):
        found, error, borders, one_side = compare(probe, data)
        bears = sum(mode.name != "SEPARATE" for mode in found.modes)
        way = "closed form" if found.is_compiled else "differences"
        side = f"{one_side:9.0e}" if borders else ""
        print(
            f"{name:34} {kind:8} {model.nv:3} {way:12} {bears:5} {found.margin:8.0e}"
            f" {error:7.0e} {borders:8} {side}",
            flush=True,
        )
        bearing += bears > 0
        off += error > TOLERANCE and found.margin > AT_BORDER
    return bearing, off


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--scene", nargs="+", help="of the folder's scenes, these alone")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", stiction.OverlapWarning)
    scenes = arguments.scene or sorted(
        str(path.relative_to(arguments.folder)) for path in arguments.folder.glob("*/scene*.xml")
    )
    print(f"{'robot':34} {'':8} {'nv':>3} {'':12} bears   margin   error  borders  one side")
    robots, states_in_contact, off = set(), 0, 0
    for name in scenes:
        try:
            bearing, wrong = measure(arguments.folder / name, name.removesuffix(".xml"))
        except (ValueError, stiction.StictionError) as error:
            print(f"{name.removesuffix('.xml'):34} {str(error).splitlines()[0][:60]}")
            continue
        if bearing:
            robots.add(Path(name).parts[0])
        states_in_contact += bearing
        off += wrong
    print(f"{len(robots)} robots in contact, {states_in_contact} states; J is off in {off}")


if __name__ == "__main__":
    main()
