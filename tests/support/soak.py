"""Long runs of many models under random loads: how many steps, how many failures.

    python tests/support/soak.py [--seconds 600] [--seed 0] [--failures DIRECTORY] [FOLDER ...]

Models: those that gymnasium and dm_control bring, ragdolls, drops of heavy bodies on light ones,
jumbles and chains; and every scene*.xml below FOLDER, such as a copy of mujoco_menagerie. Each is
run in episodes, one model after another, until the time is over: controls drawn anew every 25 steps
over their whole range, or forces on bodies where there are none. Prints a table by family. Problems
that no solver answered are saved to DIRECTORY.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np

import stiction

EPISODE = 400
"""Steps between two resets."""

HOLD = 25
"""Steps that a control is kept."""

TURNS = 0.05
"""Speed of free bodies and joints that an episode starts with at most, over size [1/s]."""


def drop(ratio, seed):
    """A heavy box falls on a light one that lies on the floor."""
    rng = np.random.default_rng(seed)
    tilt = " ".join(f"{x:.3f}" for x in rng.uniform(-40.0, 40.0, 3))
    return f"""
<mujoco><worldbody><geom type="plane" size="9 9 1"/>
  <body pos="0 0 .051"><freejoint/><geom type="box" size=".05 .05 .05" mass="1"/></body>
  <body pos="{rng.uniform(-0.05, 0.05):.3f} 0 .5" euler="{tilt}"><freejoint/>
    <geom type="box" size=".08 .08 .08" mass="{ratio:g}"/></body>
</worldbody></mujoco>"""


def jumble(count, seed):
    """Bodies of all shapes that fall onto each other."""
    rng = np.random.default_rng(seed)
    shapes = (
        'type="box" size=".06 .04 .03"', 'type="sphere" size=".05"',
        'type="capsule" size=".03 .05"', 'type="cylinder" size=".04 .03"',
        'type="ellipsoid" size=".06 .04 .03"',
    )  # fmt: skip
    bodies = ""
    for k in range(count):
        x, y = rng.uniform(-0.1, 0.1, 2)
        euler = " ".join(f"{angle:.2f}" for angle in rng.uniform(0.0, 360.0, 3))
        bodies += (
            f'<body pos="{x:.3f} {y:.3f} {0.1 + 0.12 * k:.3f}" euler="{euler}"><freejoint/>'
            f'<geom {shapes[k % len(shapes)]} mass="{10.0 ** rng.uniform(-1, 1):.3g}"/></body>'
        )
    return (
        '<mujoco><option timestep="0.002"/><size memory="50M"/><worldbody>'
        f'<geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>'
    )


def chain(links, seed):
    """A chain of capsules on the floor, one end hung up."""
    rng = np.random.default_rng(seed)
    text = ""
    for k in range(links):
        place = 'pos="0 0 .6"' if k == 0 else 'pos=".1 0 0"'
        text += (
            f'<body {place}><joint type="ball" damping="{rng.uniform(0.0, 0.01):.4f}"/>'
            '<geom type="capsule" fromto="0 0 0 .1 0 0" size=".02" mass=".1"/>'
        )
    return (
        '<mujoco><worldbody><geom type="plane" size="9 9 1"/>'
        f"{text}{'</body>' * links}</worldbody></mujoco>"
    )


def packaged(package, folder) -> Iterator[tuple[str, mujoco.MjModel]]:
    """Models that a package brings."""
    found = find_spec(package)
    if found is None or found.origin is None:
        return
    for path in sorted((Path(found.origin).parent / folder).glob("*.xml")):
        try:
            yield path.stem, mujoco.MjModel.from_xml_path(str(path))
        except ValueError:
            continue  # a part of others


def families(folders=()) -> dict[str, list[tuple[str, mujoco.MjModel]]]:
    """Models by family."""
    text = mujoco.MjModel.from_xml_string
    found = {
        "gymnasium": list(packaged("gymnasium", "envs/mujoco/assets")),
        "dm_control": list(packaged("dm_control", "suite")),
        "ragdoll": [("ragdoll", stiction.scenes.load("ragdoll")[0])],
        "drop": [(f"drop {r:g}", text(drop(r, 0))) for r in (1, 1e2, 1e3, 1e4, 1e5, 1e6)],
        "jumble": [(f"jumble {n}", text(jumble(n, n))) for n in (3, 6, 10, 15)],
        "chain": [(f"chain {n}", text(chain(n, n))) for n in (3, 6, 10)],
    }
    for folder in folders:
        models = []
        for path in sorted(Path(folder).glob("**/scene*.xml")):
            try:
                models.append(
                    (f"{path.parent.name}/{path.stem}", mujoco.MjModel.from_xml_path(str(path)))
                )
            except ValueError as error:
                print(f"not loaded: {path}: {str(error).splitlines()[0]}", file=sys.stderr)
        found[Path(folder).name] = models
    return {name: models for name, models in found.items() if models}


class Runner:
    """One model's episodes."""

    def __init__(self, name: str, model: mujoco.MjModel, seed: int, failures: str | None) -> None:
        self.name, self.model = name, model
        if model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
            model.opt.timestep /= 5.0  # chosen for it; implicitfast runs away in MuJoCo as well
        self.rng = np.random.default_rng([seed, model.nv, model.ngeom])
        own = None if failures is None else Path(failures) / name.replace("/", " ")
        self.simulator = stiction.Simulator(model, failures=own)
        self.data = mujoco.MjData(model)

    def start(self) -> None:
        """A state near the model's first keyframe, or qpos0."""
        if self.model.nkey:
            mujoco.mj_resetDataKeyframe(self.model, self.data, 0)
        else:
            mujoco.mj_resetData(self.model, self.data)
        self.data.qvel[:] = TURNS * self.rng.normal(size=self.model.nv)
        self.simulator.forget()

    def drive(self) -> None:
        """Draws controls, or forces where there are none."""
        model, data, rng = self.model, self.data, self.rng
        if model.nu:
            low, high = model.actuator_ctrlrange.T
            limited = model.actuator_ctrllimited.astype(bool)
            data.ctrl[:] = np.where(
                limited, rng.uniform(low, np.maximum(high, low)), rng.normal(size=model.nu)
            )
        else:
            weight = 9.81 * model.body_mass[:, None]
            data.xfrc_applied[:, :3] = weight * rng.normal(size=(model.nbody, 3))
            data.xfrc_applied[rng.random(model.nbody) < 0.7] = 0.0

    def episode(self, steps: int, until: float) -> tuple[int, str]:
        """(steps taken, error or empty)."""
        self.start()
        for done in range(0, steps, HOLD):
            self.drive()
            before = self.data.time
            try:
                self.simulator.step(self.data, HOLD)
            except stiction.StictionError as error:
                taken = round((self.data.time - before) / self.model.opt.timestep)
                return done + taken, f"{type(error).__name__}: {str(error)[:150]}"
            if time.perf_counter() > until:
                break
        return done + HOLD, ""


def soak(models, seconds, seed=0, failures=None, episode=EPISODE, say=None, rounds=None):
    """Counts (steps, errors by what they say) of episodes of the models, in turn, for that time or
    so many times."""
    runners, errors, steps = [], Counter(), 0
    until = time.perf_counter() + seconds
    for name, model in models:
        try:
            runners.append(Runner(name, model, seed, failures))
        except stiction.InvalidInput as error:
            if say is not None:
                say(f"refused: {name}: {error}")
    while runners and time.perf_counter() < until and rounds != 0:
        rounds = None if rounds is None else rounds - 1
        for runner in runners:
            taken, error = runner.episode(episode, until)
            steps += taken
            if error:
                errors[f"{runner.name}: {error}"] += 1
                if say is not None:
                    say(f"{runner.name}: {error}")
            if time.perf_counter() > until:
                break
    return steps, errors


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--failures", default=None)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", stiction.OverlapWarning)
    mujoco.set_mju_user_warning(lambda text: None)
    found = families(asked.folders)
    print(f"{'family':24} {'models':>7} {'steps':>10} {'unsolved':>9} {'diverged':>9}", flush=True)
    for name, models in found.items():
        steps, errors = soak(
            models, asked.seconds / len(found), asked.seed, asked.failures,
            say=lambda text: print(text, file=sys.stderr, flush=True),
        )  # fmt: skip
        unsolved = sum(n for text, n in errors.items() if ": SolveFailed:" in text)
        other = sum(errors.values()) - unsolved
        print(f"{name:24} {len(models):7d} {steps:10d} {unsolved:9d} {other:9d}", flush=True)


if __name__ == "__main__":
    main()
