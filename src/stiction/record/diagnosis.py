"""`diagnose`: why does it slip? The scene is run, and what could let a body slip is looked at.

1. The exact cone, with the model's own friction: which contacts slide, with what margin.
2. If some slide, the same without slip: the friction that would hold, mu needed = |f_t| / f_n.
   Both are of the pair as a whole: how redundant contacts share a load is not unique.
3. MuJoCo's own contact: what creeps there although Coulomb's law holds it.

What no contact resists is found from geometry: for a free body with the rows of all contacts that
press (normal; tangents from condim 3; spin from 4; rolling from 6) as a matrix over its six
motions, the motions in the null space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.modes import Mode
from stiction.contact.models.no_slip import NoSlip
from stiction.record.comparison import Load, compare
from stiction.record.ignored import ignored_parameters
from stiction.record.motion import body_name
from stiction.record.recording import Progress, Recording, record
from stiction.record.words import speed
from stiction.simulate.report import Contact, Report
from stiction.simulate.simulator import Simulator

Array = NDArray[np.float64]
Tell = Callable[[str, Progress], None]

HELD_BELOW = 1e-6
"""Speed below which a watched body counts as held [m/s]."""
CREEPS = 1e-5
"""Speed above which MuJoCo's creep is worth a word [m/s]."""
TURNS = 1e-3
"""Rate of turning that counts as turning [rad/s]."""
RESISTED = 1e-4
"""Singular value over the largest below which no contact resists a motion: contact points that
collision finds twice differ by less."""
BRIEF = 0.05
"""Share of its samples below which sliding is a matter of coming to rest."""
NEAR = 0.9
"""Share of its friction above which a contact is about to slide."""


@dataclass(frozen=True)
class Finding:
    """One thing that was found: what it is, where, and what to do."""

    kind: str
    """`condim 1`, `no friction`, `too little friction`, `moving`, `near the cone`, `free to turn`,
    `actuator at its limit`, `soft friction`, `no contact`, `ignored`, `stopped`, `holds`."""
    where: str
    text: str
    advice: str = ""
    cause: bool = True
    """Whether it can be why something slips; False for what is only worth knowing."""


Key = tuple[tuple[str, str], int, float]
"""Names of two bodies, condim, mu."""


@dataclass
class Pair:
    """Contacts of two bodies with the same condim and friction, over the samples at which they
    pressed."""

    bodies: tuple[str, str]
    condim: int
    friction: float
    samples: int = 0
    sliding: int = 0
    """Samples at which one of their contacts slid."""
    number: list[int] = field(default_factory=list)
    """Contacts that pressed."""
    normal: list[float] = field(default_factory=list)
    """Force [N]."""
    tangential: list[float] = field(default_factory=list)
    """Force [N]."""
    margin: list[float] = field(default_factory=list)
    """mu f_n - |f_t| of the contact that has least of it [N]."""
    slip: list[float] = field(default_factory=list)
    """Fastest sliding [m/s]."""
    needed: float = float("nan")
    """mu that would hold; NaN where nothing slides."""
    needed_force: float = float("nan")
    """Friction that would hold [N]."""

    @property
    def key(self) -> Key:
        """What the pair is found by."""
        return self.bodies, self.condim, self.friction

    @property
    def slides(self) -> bool:
        """Whether it slid for more than a moment."""
        return self.sliding > BRIEF * self.samples

    @property
    def use(self) -> float:
        """|f_t| / (mu f_n), median; 0 without friction."""
        limit = self.friction * float(np.median(self.normal))
        return float(np.median(self.tangential)) / limit if limit > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What `diagnose` found."""

    pairs: list[Pair]
    findings: list[Finding]
    """Causes first."""
    recording: Recording
    """The run on the exact cone."""
    mujoco_creep: float
    """The same bodies' speed under MuJoCo as the model sets it [m/s]."""

    @property
    def creep(self) -> float:
        """Speed of the watched body that moves most, second half of the run [m/s]."""
        return self.recording.motion.creep(self.recording.time)


def diagnose(
    load: Load,
    seconds: float,
    *,
    watch: tuple[str, ...] = (),
    samples: int = 200,
    on_progress: Tell | None = None,
) -> Diagnosis:
    """Runs the scene for `seconds` [s] up to three times; see the module's head."""
    model, data, controller = load()
    seen = _Seen(model)

    def tell(name: str) -> Callable[[Progress], None] | None:
        return None if on_progress is None else lambda progress: on_progress(name, progress)

    recording = record(
        Simulator(model), data, seconds, controller=controller, watch=watch, samples=samples,
        on_progress=tell("coulomb"), on_sample=seen.look,
    )  # fmt: skip
    watch = recording.trajectory.watch
    pairs = sorted(
        seen.pairs.values(),
        key=lambda pair: (not set(watch) & set(pair.bodies), -max(pair.normal)),
    )
    if any(pair.slides and pair.condim > 1 for pair in pairs):
        _find_needed(load, pairs, seconds, samples, tell("no-slip"))
    (soft,) = compare(
        load, ["mujoco"], seconds, watch=watch, samples=samples, on_progress=on_progress
    )
    findings = [finding for pair in pairs for finding in _of_pair(pair)]
    findings += seen.turning()
    if any(pair.slides for pair in pairs):
        findings += _of_actuators(model, data)
    findings += _of_run(recording, pairs, soft.creep)
    findings += [
        Finding("ignored", where, text, cause=False)
        for where, text in ignored_parameters(model, seen.geoms)
    ]
    findings.sort(key=lambda finding: not finding.cause)
    return Diagnosis(pairs, findings, recording, soft.creep)


class _Seen:
    """What the samples of a run showed, pair by pair and body by body."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model
        self.pairs: dict[Key, Pair] = {}
        self.geoms: set[int] = set()
        self._axes: dict[int, list[tuple[int, Array, float, int]]] = {}

    def look(self, data: mujoco.MjData, report: Report) -> None:
        """Takes in one sample."""
        pressed = [contact for contact in report.contacts if contact.mode != Mode.SEPARATE]
        groups: dict[Key, list[Contact]] = {}
        for contact in pressed:
            condim, mu = int(data.contact.dim[contact.index]), float(contact.friction[0])
            groups.setdefault((contact.bodies, condim, mu), []).append(contact)
            self.geoms.update(int(geom) for geom in data.contact.geom[contact.index])
        for key, group in groups.items():
            self._add(key, group, data)
        for body in self._free_bodies(pressed, data):
            self._look_at_body(body, pressed, data)

    def _add(self, key: Key, group: list[Contact], data: mujoco.MjData) -> None:
        pair = self.pairs.setdefault(key, Pair(*key))
        pair.samples += 1
        pair.sliding += any(contact.mode == Mode.SLIDE for contact in group)
        normal, tangential = resultant(group, data)
        pair.number.append(len(group))
        pair.normal.append(normal)
        pair.tangential.append(tangential)
        pair.margin.append(min(contact.margin for contact in group))
        pair.slip.append(max(float(np.hypot(*contact.slip)) for contact in group))

    def _free_bodies(self, pressed: list[Contact], data: mujoco.MjData) -> set[int]:
        """Single bodies with a free joint among those that press."""
        model = self.model
        bodies: set[int] = set()
        for contact in pressed:
            bodies.update(int(model.geom_bodyid[g]) for g in data.contact.geom[contact.index])
        return {
            body
            for body in bodies
            if model.body_dofnum[body] == 6
            and model.body_parentid[body] == 0
            and not (model.body_parentid == body).any()
        }

    def _look_at_body(self, body: int, pressed: list[Contact], data: mujoco.MjData) -> None:
        """Keeps how many axes the body can turn about freely, one of them, its rate, its points."""
        model = self.model
        own = [
            contact.index
            for contact in pressed
            if body in model.geom_bodyid[data.contact.geom[contact.index]]
        ]
        geoms = np.flatnonzero(model.geom_bodyid == body)
        size = float(model.geom_rbound[geoms].max(initial=0.0)) or 1.0
        axes = free_axes(data, own, data.xipos[body], size)
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, velocity, 0)
        rate = float(np.linalg.norm(axes @ velocity[:3])) if len(axes) else 0.0
        axis = axes[0] if len(axes) else np.zeros(3)
        self._axes.setdefault(body, []).append((len(axes), axis, rate, len(own)))

    def turning(self) -> list[Finding]:
        """Bodies that can turn although they are held."""
        findings = []
        for body, looks in self._axes.items():
            often = [look for look in looks if look[0] > 0]
            if 2 * len(often) <= len(looks):
                continue
            count, axis, _, points = often[-1]
            rate = float(np.median([look[2] for look in often]))
            findings.append(_free_to_turn(body_name(self.model, body), count, axis, rate, points))
        return findings


def resultant(group: list[Contact], data: mujoco.MjData) -> tuple[float, float]:
    """Normal and tangential force of contacts together [N]."""
    frames = data.contact.frame[[contact.index for contact in group]].reshape(-1, 3, 3)
    forces = np.array([contact.force for contact in group])
    total = np.einsum("kij,ki->j", frames, forces)
    pushes = np.einsum("kj,k->j", frames[:, 0], forces[:, 0])
    push = float(np.linalg.norm(pushes))
    if push == 0.0:
        return 0.0, float(np.linalg.norm(total))
    direction = pushes / push
    along = float(total @ direction)
    return along, float(np.linalg.norm(total - along * direction))


def free_axes(data: mujoco.MjData, contacts: list[int], centre: Array, size: float) -> Array:
    """(k, 3) orthonormal axes about which a body can turn without moving any of its contacts
    against their rows; `size` [m] makes turning comparable with moving."""
    rows = []
    for index in contacts:
        frame = data.contact.frame[index].reshape(3, 3)
        arm = (data.contact.pos[index] - centre) / size
        condim = int(data.contact.dim[index])
        for direction in frame[: 1 if condim == 1 else 3]:
            rows.append(np.concatenate([direction, np.cross(arm, direction)]))
        turns = {4: frame[:1], 6: frame}.get(condim, frame[:0])
        rows += [np.concatenate([np.zeros(3), direction]) for direction in turns]
    if not rows:
        return np.eye(3)
    _, values, vectors = np.linalg.svd(np.array(rows))
    rank = int((values > RESISTED * values[0]).sum())
    turns = vectors[rank:, 3:]
    if not len(turns):
        return np.zeros((0, 3))
    _, values, axes = np.linalg.svd(turns)
    return np.asarray(axes[: len(values)][values > 1e-2])


def _free_to_turn(body: str, count: int, axis: Array, rate: float, points: int) -> Finding:
    about = {
        1: f"the axis ({axis[0]:.2f}, {axis[1]:.2f}, {axis[2]:.2f}), the line of its contacts",
        2: "two axes",
        3: "any axis",
    }[count]
    turning = rate > TURNS
    does = f"it turns at {np.degrees(rate):.3g} deg/s" if turning else "it does not turn here"
    number = "one point" if points == 1 else f"{points} points"
    return Finding(
        "free to turn",
        body,
        f"touched at {number}, where nothing resists turning about {about}: {does}. However hard "
        "the grip, points without torsional or rolling friction bear no torque there.",
        "condim 4 (torsional friction, the second number of `friction`, a length in m) or 6 "
        "(rolling too) on the geom; or geoms with flat faces, which touch at more points; keep "
        "multiccd enabled",
        cause=turning,
    )


def _find_needed(
    load: Load,
    pairs: list[Pair],
    seconds: float,
    samples: int,
    tell: Callable[[Progress], None] | None,
) -> None:
    """Fills in what would hold the pairs that slide: a run that does not let them."""
    model, data, controller = load()
    held = _Seen(model)
    record(
        Simulator(model, NoSlip()), data, seconds, controller=controller, samples=samples,
        on_progress=tell, on_sample=held.look,
    )  # fmt: skip
    for pair in pairs:
        other = held.pairs.get(pair.key)
        if pair.slides and pair.condim > 1 and other is not None:
            normal, tangential = np.array(other.normal), np.array(other.tangential)
            pair.needed_force = float(np.median(tangential))
            with np.errstate(divide="ignore", invalid="ignore"):
                pair.needed = float(np.median(tangential / np.maximum(normal, 0.0)))


def _of_pair(pair: Pair) -> list[Finding]:
    where = " and ".join(pair.bodies)
    if pair.condim == 1:
        return [
            Finding(
                "condim 1", where, "the contact is frictionless: condim is 1.",
                "condim 3 on the geom of higher priority, or on either where they are equal",
            )
        ]  # fmt: skip
    if pair.friction == 0.0:
        return [
            Finding(
                "no friction", where, "the coefficient of friction is 0.",
                "`friction` on either geom: MuJoCo takes the larger one where priorities are equal",
            )
        ]  # fmt: skip
    if not pair.slides:
        if pair.use < NEAR:
            return []
        return [
            Finding(
                "near the cone", where,
                f"holds, but with {100 * pair.use:.0f} % of the friction that mu "
                f"{pair.friction:.3g} allows.",
                "more friction or normal force, if it is to hold under any more load", cause=False,
            )
        ]  # fmt: skip
    share = 100.0 * pair.sliding / pair.samples
    slides = (
        f"slides {share:.0f} % of the time, up to {speed(max(pair.slip))}: at the cone's edge, "
        f"friction is mu f_n = {pair.friction:.3g} x {np.median(pair.normal):.3g} N."
    )
    if np.isnan(pair.needed):
        return [Finding("too little friction", where, slides, "more friction or normal force")]
    if pair.needed <= pair.friction:
        return [
            Finding(
                "moving", where,
                f"{slides} At rest it would hold: that needs mu {pair.needed:.2g}.",
                "it slides because it is moved, or started moving; that is no lack of friction",
            )
        ]  # fmt: skip
    factor = pair.needed / pair.friction
    short = "far more than" if not np.isfinite(factor) or factor > 100 else f"{factor:.2g} times"
    return [
        Finding(
            "too little friction", where,
            f"{slides} Holding takes {pair.needed_force:.3g} N of friction, mu {pair.needed:.2g}.",
            f"{short} the normal force, or the coefficient; or less load",
        )
    ]  # fmt: skip


def _of_actuators(model: mujoco.MjModel, data: mujoco.MjData) -> list[Finding]:
    findings = []
    for actuator in range(model.nu):
        if not model.actuator_forcelimited[actuator]:
            continue
        low, high = model.actuator_forcerange[actuator]
        force = float(data.actuator_force[actuator])
        if force <= low + 1e-3 * abs(low) or force >= high - 1e-3 * abs(high):
            name = model.actuator(actuator).name or f"actuator {actuator}"
            findings.append(
                Finding(
                    "actuator at its limit", name,
                    f"it pushes with {force:.3g}, the end of its forcerange ({low:g}, {high:g}): "
                    "a higher control grips no harder.", "a wider forcerange",
                )
            )  # fmt: skip
    return findings


def _of_run(recording: Recording, pairs: list[Pair], mujoco_creep: float) -> list[Finding]:
    creep = recording.motion.creep(recording.time)
    bodies = ", ".join(recording.trajectory.watch) or "the scene"
    findings = []
    if recording.failure:
        findings.append(Finding("stopped", bodies, recording.failure))
    if not pairs:
        text = "nothing pressed on anything during the run."
        advice = "contype and conaffinity, <exclude>, a longer --time"
        return [*findings, Finding("no contact", bodies, text, advice)]
    if creep < HELD_BELOW:
        rough = [pair for pair in pairs if pair.friction > 0.0]
        used = max((pair.use for pair in rough), default=0.0)
        text = f"held: moves at {speed(creep)}; contacts use at most {100 * used:.0f} % of their "
        findings.append(Finding("holds", bodies, text + "friction.", cause=False))
    if mujoco_creep > CREEPS and creep < 0.1 * mujoco_creep:
        findings.append(
            Finding(
                "soft friction", bodies,
                f"under mj_step it moves at {speed(mujoco_creep)}, on the exact cone at "
                f"{speed(creep)}: MuJoCo's friction is regularized, it yields to any load.",
                "step with stiction; in MuJoCo, a smaller yield: cone elliptic, impratio 10 to "
                "100, noslip_iterations 10",
            )
        )  # fmt: skip
    return findings
