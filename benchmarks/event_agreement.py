"""How fast time stepping tends to the event-driven motion as its step gets shorter.

    python benchmarks/event_agreement.py

Four scenes with impacts, sliding, sticking and rolling. Each is run once by `EventDriven`, and by
`TimeStepping` at halved steps; the table has the largest difference of positions (m, and parts of a
quaternion) at the end, and the order that a line through the logarithms has: one is that of
time stepping, whose impacts are late by up to a step. `EventDriven` at half its own step
tells how far the reference itself can be trusted.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

import stiction

Array = NDArray[np.float64]

SECONDS = 0.4
STEPS = (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4)
REFERENCE = 1e-3

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


def main() -> None:
    """Prints the table."""
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
