"""Long runs of many models under random loads: how many steps, how many failures.

    python tests/support/soak.py [--seconds 600] [--seed 0] [--failures DIRECTORY] [FOLDER ...]
        [--only FAMILY ...] [--again NAME EPISODE]

Models: those that gymnasium and dm_control bring, ragdolls, drops of heavy bodies on light ones,
jumbles and chains; and every scene*.xml below FOLDER, such as a copy of mujoco_menagerie. Each is
run in episodes, one model after another, and families take turns of the same processor time until
the time is over, or Ctrl-C comes: controls drawn anew every 25 steps over their whole range, or
forces on bodies where there are none. Prints a table by family. Problems that no solver answered
are saved to DIRECTORY, and named with the episode, which `--again` runs alone. An episode that
diverges is taken by `mj_step`, too: some models run away by themselves when their servos are thrown
about at the model's own time step.
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

TURN = 20.0
"""Processor time of a family's turn [s]."""

SPEED = 0.05
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


_BAD = tuple(getattr(mujoco.mjtWarning, f"mjWARN_BADQ{name}") for name in ("POS", "VEL", "ACC"))
"""What `mj_step` warns of before it starts a simulation anew."""

UNSOLVED, NOT_TAKEN, RAN_AWAY = ": unsolved: ", ": not taken: ", ": mj_step diverges too: "
"""What a line that tells of an episode has in it."""


class Runner:
    """One model's episodes, each drawn from a seed of its own."""

    def __init__(self, name: str, model: mujoco.MjModel, seed: int, failures: str | None) -> None:
        self.name, self.model, self.seed, self.episodes = name, model, seed, 0
        if model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
            model.opt.timestep /= 5.0  # chosen for it; implicitfast runs away in MuJoCo as well
        own = None if failures is None else Path(failures) / name.replace("/", " ")
        self.simulator = stiction.Simulator(model, failures=own)
        self.data = mujoco.MjData(model)

    def start(self) -> None:
        """A state near the model's first keyframe, or qpos0."""
        model = self.model
        self.rng = np.random.default_rng([self.seed, model.nv, model.ngeom, self.episodes])
        self.episodes += 1
        if model.nkey:
            mujoco.mj_resetDataKeyframe(model, self.data, 0)
        else:
            mujoco.mj_resetData(model, self.data)
        self.data.qvel[:] = SPEED * self.rng.normal(size=model.nv)
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
                taken = done + round((self.data.time - before) / self.model.opt.timestep)
                kind = UNSOLVED
                if not isinstance(error, stiction.SolveFailed):
                    runs_away = "diverges" in str(error) and self.mujoco_diverges(steps)
                    kind = RAN_AWAY if runs_away else NOT_TAKEN
                return taken, f"{self.name}, episode {self.episodes - 1}{kind}{str(error)[:150]}"
            if time.process_time() > until:
                break
        return done + HOLD, ""

    def mujoco_diverges(self, steps: int) -> bool:
        """Whether the last episode, taken by `mj_step`, ends in a warning."""
        self.episodes -= 1
        self.start()
        for _ in range(0, steps, HOLD):
            self.drive()
            mujoco.mj_step(self.model, self.data, HOLD)
        return any(self.data.warning[kind].number for kind in _BAD)


class Soak:
    """Models in turn, and what came of their episodes."""

    def __init__(self, models, seed=0, failures=None, say=lambda text: None) -> None:
        self.steps, self.errors, self.say = 0, Counter(), say
        self._runners, self._next = [], 0
        for name, model in models:
            try:
                self._runners.append(Runner(name, model, seed, failures))
            except stiction.InvalidInput as error:
                say(f"refused: {name}: {error}")

    def run(self, seconds=np.inf, episode=EPISODE, rounds=None) -> None:
        """Episodes for so much processor time, or so many of each model."""
        until = time.process_time() + seconds
        left = np.inf if rounds is None else rounds * len(self._runners)
        while self._runners and left > 0 and time.process_time() < until:
            taken, error = self._runners[self._next].episode(episode, until)
            self._next = (self._next + 1) % len(self._runners)
            self.steps, left = self.steps + taken, left - 1
            if error:
                self.errors[error] += 1
                self.say(error)


def table(soaks: dict[str, Soak], count: dict[str, int]) -> Iterator[str]:
    """Lines that say what came of families."""
    titles = ("unsolved", "diverged", "mj_step too")
    yield f"{'family':24} {'models':>7} {'steps':>10}" + "".join(f"{title:>12}" for title in titles)
    for name, found in soaks.items():
        counts = (
            sum(n for text, n in found.errors.items() if kind in text)
            for kind in (UNSOLVED, NOT_TAKEN, RAN_AWAY)
        )
        told = "".join(f"{n:12d}" for n in counts)
        yield f"{name:24} {count[name]:7d} {found.steps:10d}{told}"


def again(found, name: str, episode: int, seed: int, failures: str | None) -> str:
    """One episode once more; what came of it."""
    models = dict(pair for models in found.values() for pair in models)
    runner = Runner(name, models[name], seed, failures)
    runner.episodes = episode
    steps, error = runner.episode(EPISODE, np.inf)
    return error or f"{name}, episode {episode}: {steps} steps, all solved"


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--failures", default=None)
    parser.add_argument("--only", nargs="+", metavar="FAMILY", help="instead of all")
    parser.add_argument("--again", nargs=2, metavar=("NAME", "EPISODE"))
    asked = parser.parse_args()
    warnings.simplefilter("ignore", stiction.OverlapWarning)
    mujoco.set_mju_user_warning(lambda text: None)
    found = families(asked.folders)
    unknown = [name for name in asked.only or () if name not in found]
    if unknown:
        parser.error(f"no family {unknown[0]!r} here: {', '.join(found)}")
    found = {name: found[name] for name in asked.only or found}
    if asked.again:
        name, number = asked.again
        print(again(found, name, int(number), asked.seed, asked.failures))
        return
    until = time.process_time() + asked.seconds
    soaks = {
        name: Soak(
            models, asked.seed, asked.failures,
            say=lambda text: print(text, file=sys.stderr, flush=True),
        )
        for name, models in found.items()
    }  # fmt: skip
    try:
        while (left := until - time.process_time()) > 0.0:
            for family in soaks.values():
                family.run(min(TURN, left / len(soaks)))
    except KeyboardInterrupt:
        print("ended by Ctrl-C", file=sys.stderr)
    print("\n".join(table(soaks, {name: len(models) for name, models in found.items()})))


if __name__ == "__main__":
    main()
