"""What follows from the samples: a finding needs its evidence, or it is not made."""

from __future__ import annotations

from collections.abc import Iterable

import mujoco
import numpy as np

from stiction.record.comparison import Outcome
from stiction.record.diagnosis.finding import Finding
from stiction.record.diagnosis.pairs import Key, Pair, Seen
from stiction.record.motion import body_id
from stiction.record.recording import Recording
from stiction.record.words import length, speed

HELD_BELOW = 1e-6
"""Speed below which a watched body counts as held [m/s]."""
CREEPS = 1e-5
"""Speed above which MuJoCo's creep is worth a word [m/s]."""
FASTER = 10.0
"""Times by which MuJoCo's figure must exceed ours before it is called its own."""
LOADED_SIDEWAYS = 1e-3
"""Share of its friction from which a contact is loaded sideways: below, nothing makes it creep."""
SINKS = 1e-5
"""Overlap under MuJoCo from which bodies sink [m]."""
ABOUT_TO_SLIDE = 0.9
"""Share of its friction above which a contact is about to slide."""
BEYOND = 100.0
"""Times the coefficient above which what would be needed says that bodies jam, not how much."""
LIGHT = 10.0
"""Times by which one body of a pair must be lighter at the contact than the other."""


def of_pair(pair: Pair) -> list[Finding]:
    """What a pair does on the exact cone."""
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
        if pair.use < ABOUT_TO_SLIDE:
            return []
        return [
            Finding(
                "near the cone", where,
                f"holds, but with {100 * pair.use:.0f} % of the friction that mu "
                f"{pair.friction:.3g} allows.",
                "more friction or normal force, if it is to hold under any more load", cause=False,
            )
        ]  # fmt: skip
    return [_sliding(pair, where)]


def _sliding(pair: Pair, where: str) -> Finding:
    share = 100.0 * pair.sliding / pair.samples
    slides = (
        f"slides {share:.0f} % of the time, up to {speed(max(pair.slip))}: at the cone's edge, "
        f"friction is mu f_n = {pair.friction:.3g} x {np.median(pair.normal):.3g} N."
    )
    if 2 * pair.sliding < pair.samples and pair.use < ABOUT_TO_SLIDE:
        return Finding(
            "moving", where,
            f"{slides} The rest of the time it holds, with {100 * pair.use:.0f} % of its friction.",
            "it slides while it is moved or hit; that is no lack of friction for good",
        )  # fmt: skip
    if np.isnan(pair.needed):
        return Finding("too little friction", where, slides, "more friction or normal force")
    if pair.needed <= pair.friction:
        return Finding(
            "moving", where,
            f"{slides} At rest it would hold: that needs mu {pair.needed:.2g}.",
            "it slides because it is moved, or started moving; that is no lack of friction",
        )  # fmt: skip
    factor = pair.needed / pair.friction
    if not np.isfinite(factor) or factor > BEYOND:
        text = (
            f"{slides} No friction of use would hold it: without slip its forces grow without end."
        )
        return Finding("too little friction", where, text, "less load, or contacts that do not jam")
    short = f"{factor:.2g} times"
    return Finding(
        "too little friction", where,
        f"{slides} Holding takes {pair.needed_force:.3g} N of friction, mu {pair.needed:.2g}.",
        f"{short} the normal force, or the coefficient; or less load",
    )  # fmt: skip


def of_actuators(seen: Seen, pairs: list[Pair]) -> list[Finding]:
    """Actuators that pushed with all they have for half of the run or more; a cause where what they
    move slides."""
    model = seen.model
    findings = []
    sliding = {body_id(model, body) for pair in pairs if pair.slides for body in pair.bodies}
    for actuator in np.flatnonzero(2 * seen.at_limit >= max(seen.samples, 1)):
        low, high = model.actuator_forcerange[actuator]
        name = model.actuator(actuator).name or f"actuator {actuator}"
        share = 100.0 * seen.at_limit[actuator] / seen.samples
        findings.append(
            Finding(
                "actuator at its limit", name,
                f"{share:.0f} % of the time it pushes with all that its forcerange ({low:g}, "
                f"{high:g}) allows: a higher control grips no harder.", "a wider forcerange",
                cause=bool(sliding & _moved_by(model, int(actuator))),
            )
        )  # fmt: skip
    return findings


def _moved_by(model: mujoco.MjModel, actuator: int) -> set[int]:
    """Bodies that the actuator's joint or body carries; all where it acts through a tendon."""
    kind, target = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
    transmission = mujoco.mjtTrn
    if kind in (transmission.mjTRN_JOINT, transmission.mjTRN_JOINTINPARENT):
        top = int(model.jnt_bodyid[target])
    elif kind == transmission.mjTRN_BODY:
        top = target
    else:
        return set(range(model.nbody))
    moved = {top}
    for body in range(top + 1, model.nbody):  # parents come first
        if int(model.body_parentid[body]) in moved:
            moved.add(body)
    return moved


def of_mujoco(
    seen: Seen, soft: Seen, recording: Recording, outcome: Outcome, *, overlapping: bool
) -> list[Finding]:
    """What MuJoCo lets happen that the exact cone does not: creep of loaded contacts, sinking."""
    creeping = creeping_pairs(seen.pairs, soft.pairs)
    if creeping:
        return [_soft_friction(creeping), *_light_bodies(seen.model, creeping, recording)]
    ours, theirs = recording.motion.net_speed(recording.time), outcome.net_speed
    depth = max((float(np.median(pair.depth)) for pair in soft.pairs.values()), default=0.0)
    exact = max((float(np.median(pair.depth)) for pair in seen.pairs.values()), default=0.0)
    moves = theirs > CREEPS and theirs > FASTER * ours
    if overlapping or not moves or depth < max(SINKS, FASTER * exact):
        return []
    deepest = max(soft.pairs.values(), key=lambda pair: float(np.median(pair.depth)))
    fastest = max(pair.creep for pair in soft.pairs.values())
    return [
        Finding(
            "sinking", " and ".join(deepest.bodies),
            f"under mj_step the scene moves at {speed(theirs)}, on the exact cone at "
            f"{speed(ours)}, yet no contact creeps faster than {speed(fastest)}: it is not "
            f"friction. MuJoCo's contacts are springs, these two overlap by {length(depth)}.",
            "step with stiction; in MuJoCo, stiffer contacts: a smaller solref, solimp near 1",
        )
    ]  # fmt: skip


Creeping = tuple[Pair, Pair]
"""The same pair on the exact cone and under MuJoCo."""


def creeping_pairs(exact: dict[Key, Pair], soft: dict[Key, Pair]) -> list[Creeping]:
    """Pairs that creep under MuJoCo, loaded sideways, and hold on the exact cone; the fastest
    first. At the cone's edge MuJoCo slides as anything would: that is another motion, no creep."""
    both = [(pair, soft[key]) for key, pair in exact.items() if key in soft]
    found = [
        (held, pair)
        for held, pair in both
        if not held.slides
        and held.condim > 1
        and min(held.use, pair.use) > LOADED_SIDEWAYS
        and pair.use < ABOUT_TO_SLIDE
        and pair.creep > CREEPS
        and pair.creep > FASTER * held.creep
    ]
    return sorted(found, key=lambda both: -both[1].creep)


def _soft_friction(creeping: list[Creeping]) -> Finding:
    held, pair = creeping[0]
    more = f", and others ({len(creeping)} pairs)" if len(creeping) > 1 else ""
    return Finding(
        "soft friction", " and ".join(pair.bodies) + more,
        f"under mj_step they slip on each other at {speed(pair.creep)}, steadily, although only "
        f"{100 * pair.use:.2g} % of their friction is in use; on the exact cone at "
        f"{speed(held.creep)}. MuJoCo's friction is regularized, it yields to any load.",
        "step with stiction; in MuJoCo, a smaller yield: cone elliptic, impratio 10 to 100, "
        "noslip_iterations 10",
    )  # fmt: skip


def _light_bodies(
    model: mujoco.MjModel, creeping: Iterable[Creeping], recording: Recording
) -> list[Finding]:
    """Bodies beside the watched ones that are far lighter at a contact that creeps: MuJoCo makes
    friction as soft as the sum of both bodies' inverse weights (`body_invweight0`)."""
    findings: dict[str, Finding] = {}
    for _, pair in creeping:
        ids = [body_id(model, name) for name in pair.bodies]
        ease = model.body_invweight0[ids, 0]
        light = int(np.argmax(ease))
        name = pair.bodies[light]
        weighs = ease[1 - light] > 0.0 and ease[light] > LIGHT * ease[1 - light]
        if not weighs or name in recording.trajectory.watch or name in findings:
            continue
        share = 100.0 * ease[light] / ease.sum()
        findings[name] = Finding(
            "light body", name,
            f"{share:.0f} % of that yield comes from {name}, which weighs "
            f"{1e3 / ease[light]:.3g} g at the contact, {pair.bodies[1 - light]} "
            f"{1e3 / ease[1 - light]:.3g} g: MuJoCo makes "
            "friction as soft as the lighter of the two.",
            "armature on its joint, or more mass",
        )  # fmt: skip
    return list(findings.values())


def of_run(recording: Recording, pairs: list[Pair]) -> list[Finding]:
    """What the run as a whole tells."""
    moved = recording.motion.net_speed(recording.time)
    bodies = ", ".join(recording.trajectory.watch) or "the scene"
    findings = []
    if recording.failure:
        findings.append(Finding("stopped", bodies, recording.failure))
    if not pairs:
        text = "nothing pressed on anything during the run."
        advice = "contype and conaffinity, <exclude>, a longer --time"
        return [*findings, Finding("no contact", bodies, text, advice)]
    if moved < HELD_BELOW:
        rough = [pair for pair in pairs if pair.friction > 0.0]
        used = max((pair.use for pair in rough), default=0.0)
        text = f"held: moves at {speed(moved)}; contacts use at most {100 * used:.0f} % of their "
        findings.append(Finding("holds", bodies, text + "friction.", cause=False))
    return findings
