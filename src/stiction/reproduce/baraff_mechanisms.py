"""Baraff, Figures 1 and 2: the block feeder and the double-action jack, at interactive rates."""

from __future__ import annotations

from stiction.reproduce.mechanism_runs import (
    BARAFF,
    COLD,
    EXACT,
    RIGID,
    WATCHED,
    Method,
    Ran,
    simulate,
)
from stiction.reproduce.result import (
    Cell,
    Claim,
    Line,
    Picture,
    Plot,
    Progress,
    Result,
    Table,
    verdict,
)
from stiction.status import Status

SAMPLES = 500
"""Of a curve in the plot."""


def run(quick: bool, progress: Progress) -> Result:
    """Frame rates, failures, and what the mechanisms do."""
    return run_sized({"block-feeder": 2.0 if quick else 8.0, "jack": 2.0 if quick else 6.0}, quick,
                   progress)  # fmt: skip


def run_sized(seconds: dict[str, float], quick: bool, progress: Progress) -> Result:
    """As `run`, for so long each."""
    kinds = (EXACT, RIGID, BARAFF, COLD, "MuJoCo", "MuJoCo, tuned")
    ran: list[Ran] = []
    methods: dict[tuple[str, str], Method] = {}
    cases = [(scene, kind) for scene in seconds for kind in kinds]
    for index, (scene, kind) in enumerate(cases):
        progress(index / len(cases), f"{scene}, {kind}")
        found, method = simulate(scene, kind, seconds[scene])
        ran.append(found)
        if method is not None:
            methods[scene, kind] = method
    ours = [r for r in ran if r.simulator.startswith("exact")]
    return Result(
        name="baraff-mechanisms",
        title="Baraff: block feeder and double-action jack",
        paper="Baraff, Fast Contact Force Computation for Nonpenetrating Rigid Bodies, "
        "Figures 1 and 2",
        quick=quick,
        tables=(_rates(ran), _did(ran), _method_table(methods)),
        plots=(_plot(ran),),
        pictures=tuple(
            Picture(f"The {r.scene.replace('-', ' ')} at the end", r.scene, tuple(r.qpos))
            for r in ran
            if r.simulator == EXACT
        ),
        claims=_claims(ran, methods),
        notes=NOTES,
        counts={
            "solves": sum(r.steps for r in ours),
            "failures": sum(r.failures for r in ours),
        },
    )


def _rates(ran: list[Ran]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            r.scene,
            r.simulator,
            r.contacts,
            r.steps_per_second,
            r.rate,
            "20 to 30" if r.simulator in (BARAFF, COLD) else None,
        )
        for r in ran
    ]
    return Table(
        "Frames of 1/25 s that are computed in a second, 40 steps of 1 ms each",
        ("scene", "simulator", "contacts", "steps per second", "frames per second", "his"),
        tuple(rows),
        "His rate is of the whole program with its drawing, on an R4400. Contacts of ours include "
        "those within reach of the step.",
    )


def _did(ran: list[Ran]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            r.scene,
            r.simulator,
            r.achieved,
            r.steps,
            None if "MuJoCo" in r.simulator else r.failures,
            r.worst,
            1e6 * r.overlap,
        )
        for r in ran
    ]
    return Table(
        "What the mechanisms did",
        (
            "scene",
            "simulator",
            "what it did",
            "steps",
            "failures",
            "worst violation",
            "deepest overlap, um",
        ),
        tuple(rows),
    )


def _method_table(methods: dict[tuple[str, str], Method]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (scene, kind), method in methods.items():
        start = ", no warm start" if kind == COLD else ""
        for level, counts in (
            (f"impulses, static friction{start}", method.steps),
            ("forces, static and dynamic friction", method.forces),
        ):
            total = sum(counts.values())
            solved = counts[Status.SOLVED]
            rays = counts[Status.RAY]
            if total:
                rows.append((scene, level, total, solved, rays, total - solved - rays))
    return Table(
        "Baraff's own method on their contacts",
        ("scene", "level", "problems", "solved", "ray: an impulse is due", "stopped short"),
        tuple(rows),
        "Of the impulses every step, of the forces one state in twenty, outside the time measured. "
        "What stops short is solved by the exact cone in the simulation.",
    )


def _plot(ran: list[Ran]) -> Plot:
    lines = []
    for r in ran:
        if r.simulator in (EXACT, "MuJoCo"):
            thin = max(1, len(r.times) // SAMPLES)
            lines.append(
                Line(f"{WATCHED[r.scene][0]}, {r.simulator}", tuple(r.times[::thin]),
                     tuple(r.heights[::thin]), dashed=r.simulator != EXACT)
            )  # fmt: skip
    return Plot("Place of the ram (along) and of the rack (up)", "s", "m", tuple(lines))


def _claims(ran: list[Ran], methods: dict[tuple[str, str], Method]) -> tuple[Claim, ...]:
    def slowest(kind: str) -> Ran:
        return min((r for r in ran if r.simulator == kind), key=lambda r: r.rate)

    exact, own, cold = slowest(EXACT), slowest(BARAFF), slowest(COLD)
    counts = [counted for method in methods.values() for counted in (method.steps, method.forces)]
    total = sum(sum(counted.values()) for counted in counts)
    solved = sum(counted[Status.SOLVED] for counted in counts)
    return (
        Claim(
            "both mechanisms run at interactive rates",
            "20 to 30 frames per second",
            f"{exact.rate:.0f} or more by the exact cone, 40 steps to a frame",
            verdict(exact.rate >= 20.0),
        ),
        Claim(
            "so they do by his method",
            "20 to 30 frames per second",
            f"{own.rate:.0f} or more, {cold.rate:.0f} without warm start, 40 steps to a frame",
            "yes" if cold.rate >= 20.0 else "in part" if own.rate >= 20.0 else "no",
        ),
        Claim(
            "his method is robust",
            "robustly",
            f"{solved} of {total} problems solved",
            verdict(solved == total),
        ),
    )


NOTES = (
    "How many steps a frame of his has, the paper does not say.",
    "Boxes touch in four corners here instead of two: contacts are more redundant than his.",
    "Mechanisms are drawn after his pictures; their sizes, speeds and loads are ours. They "
    "move in a plane of a simulator that is spatial.",
)
"""What explains the figures."""
