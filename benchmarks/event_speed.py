"""What a step of `EventDriven` costs beside one of `TimeStepping`, on a walking robot and a grasp.

    python benchmarks/event_speed.py [--seconds 1.0]

Both steppers simulate the same time in turns of 50 ms each, so that a slow moment of the machine
falls on both alike; compilation is not counted. Given are medians over the turns, in microseconds
per step, and the median of the turns' ratios.
"""

# ruff: noqa: E402

from __future__ import annotations

import os

# Before numpy, which reads them when imported: threads gain nothing at these sizes.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
from time import perf_counter

import mujoco
import numpy as np

import stiction

TURN = 0.05

SCENES: dict[str, dict[str, float]] = {
    "quadruped": {"roughness": 0.0},
    "quadruped on hills": {},
    "pinch": {},
}
"""Options of the scenes, by name; what follows the first word is for the reader."""

STEPPERS = {
    "rk4": stiction.EventDriven(),
    "symplectic": stiction.EventDriven(integrator="symplectic"),
}


class Walk:
    """One scene under one stepper."""

    def __init__(self, scene: str, stepper: stiction.TimeStepping | stiction.EventDriven) -> None:
        self.model, self.data, self.controller = stiction.scenes.load(
            scene.split()[0], **SCENES[scene]
        )
        self.simulator = stiction.Simulator(self.model, stepper=stepper)

    def turn(self) -> float:
        """Simulates a turn; microseconds per step, without the controller's."""
        taken, steps = 0.0, round(TURN / self.model.opt.timestep)
        for _ in range(steps):
            if self.controller is not None:
                self.controller(self.model, self.data)
            began = perf_counter()
            self.simulator.step(self.data)
            taken += perf_counter() - began
        return 1e6 * taken / steps


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0)
    turns = round(parser.parse_args().seconds / TURN)
    print(f"MuJoCo {mujoco.__version__}; us per step, medians of {turns} turns")
    print("| scene | TimeStepping | " + " | ".join(f"{n}, ratio" for n in STEPPERS) + " |")
    print("|---|" + "---|" * (1 + len(STEPPERS)))
    for scene in SCENES:
        walks = [Walk(scene, s) for s in (stiction.TimeStepping(), *STEPPERS.values())]
        for walk in walks:
            walk.turn()
        taken = np.array([[walk.turn() for walk in walks] for _ in range(turns)])
        median, ratio = np.median(taken, axis=0), np.median(taken / taken[:, :1], axis=0)
        listed = " | ".join(f"{t:.0f}, {r:.1f}" for t, r in zip(median[1:], ratio[1:], strict=True))
        print(f"| {scene} | {median[0]:.0f} | {listed} |", flush=True)


if __name__ == "__main__":
    main()
