"""How fast time stepping tends to the event-driven motion as its step gets shorter, and what
event-driven steps cost.

    python benchmarks/event_agreement.py [--walk]

Four scenes with impacts, sliding, sticking and rolling. Each is run once by `EventDriven`, and by
`TimeStepping` at halved steps; the table has the largest difference of positions (m, and parts of a
quaternion) at the end, and the order that a line through the logarithms has: one is that of
time stepping, whose impacts are late by up to a step. `EventDriven` at half its own step
tells how far the reference itself can be trusted.

Then the shipped quadruped trots over its hills and over a plane, at 1 ms: processor time of a step
by either stepper, several runs in turn, and their ratio. `--walk` does this alone.
"""

from __future__ import annotations

import argparse
import time

import mujoco
import numpy as np
from numpy.typing import NDArray

import stiction

Array = NDArray[np.float64]

SECONDS = 0.4
STEPS = (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4)
REFERENCE = 1e-3

WAITS, WALKS, TURNS = 400, 800, 5
"""Steps before the walk is timed, steps that are, and runs of each stepper."""

SCENES = {
    "box slides and stops": ('type="box" size=".1 .1 .05"', "0 0 .05", (1.0, 0.5, 0, 0, 0, 0)),
    "ball falls, slides, rolls": ('size=".1"', "0 0 .3", (1.0, 0, 0, 0, -3.0, 0)),
    "box falls on its edge": (
        'type="box" size=".1 .05 .05" euler="0 10 0"', "0 0 .12", (0.5, 0, 0, 0, 0, 0),
    ),
    "rod falls on its end": (
        'type="capsule" size=".02 .15" euler="0 60 0"', "0 0 .2", (0, 0, 0, 0, 0, 0),
    ),
}  # fmt: skip
"""Geom, where its body starts, and its velocity."""


def load(geom: str, at: str) -> mujoco.MjModel:
    """A geom on a free body above a floor, mu = 0.4."""
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><worldbody><geom type="plane" size="5 5 .1" friction=".4"/>
        <body pos="{at}"><freejoint/><geom {geom} friction=".4"/></body></worldbody></mujoco>"""
    )


def end(model: mujoco.MjModel, velocity: tuple[float, ...], dt: float, events: bool) -> Array:
    """qpos after SECONDS."""
    model.opt.timestep = dt
    data = mujoco.MjData(model)
    data.qvel[:] = velocity
    stepper = stiction.EventDriven() if events else stiction.TimeStepping()
    simulator = stiction.Simulator(model, stiction.Coulomb(), stepper=stepper)
    simulator.step(data, nstep=round(SECONDS / dt))
    return data.qpos.copy()


def walk(stepper: stiction.TimeStepping | stiction.EventDriven, roughness: float) -> float:
    """Processor time of a step while the quadruped trots [s], without its controller's."""
    model, data, control = stiction.scenes.load("quadruped", roughness=roughness)
    assert control is not None
    simulator = stiction.Simulator(model)
    for _ in range(WAITS):
        control(model, data)
        simulator.step(data)
    simulator, spent = stiction.Simulator(model, stepper=stepper), 0.0
    for _ in range(WALKS):
        control(model, data)
        began = time.thread_time()
        simulator.step(data)
        spent += time.thread_time() - began
    return spent / WALKS


def print_walks() -> None:
    """Prints what steps of a robot that walks cost."""
    print("| ground | TimeStepping | EventDriven | ratio |\n|---|---|---|---|")
    for name, roughness in (("hills", 0.03), ("plane", 0.0)):
        steppers = (stiction.TimeStepping(), stiction.EventDriven())
        runs = np.array([[walk(each, roughness) for each in steppers] for _ in range(TURNS + 1)])
        ours, events = np.median(runs[1:], axis=0)  # the first one loads what is compiled
        ratio = np.median(runs[1:, 1] / runs[1:, 0])
        print(f"| {name} | {1e6 * ours:.0f} us | {1e6 * events:.0f} us | {ratio:.1f} |", flush=True)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--walk", action="store_true", help="only what steps cost")
    if not parser.parse_args().walk:
        print_orders()
        print()
    print_walks()


def print_orders() -> None:
    """Prints the orders of convergence."""
    print("| scene | " + " | ".join(f"{dt * 1e3:g} ms" for dt in STEPS) + " | order | events |")
    print("|---|" + "---|" * (len(STEPS) + 2))
    for name, (geom, at, velocity) in SCENES.items():
        model = load(geom, at)
        exact = end(model, velocity, REFERENCE, True)
        finer = end(model, velocity, 0.5 * REFERENCE, True)
        errors = [np.abs(end(model, velocity, dt, False) - exact).max() for dt in STEPS]
        order = np.polyfit(np.log(STEPS), np.log(errors), 1)[0]
        listed = " | ".join(f"{error:.1e}" for error in errors)
        print(
            f"| {name} | {listed} | {order:.2f} | {np.abs(finer - exact).max():.0e} |", flush=True
        )


if __name__ == "__main__":
    main()
