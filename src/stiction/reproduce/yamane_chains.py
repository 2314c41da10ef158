"""Yamane and Nakamura, Table III: a hoist, rings and a net, long and closed chains in contact."""

from __future__ import annotations

import numpy as np

from stiction.reproduce.chain_runs import (
    CASES,
    EXACT,
    HEAVY,
    LIGHT,
    MODELS,
    MUJOCO,
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

SAMPLES = 500
"""Of a curve in the plot."""


def run(quick: bool, progress: Progress) -> Result:
    """Failures, contacts and times of the chains."""
    return run_sized(0.12 if quick else 1.0, quick, progress)


def run_sized(share: float, quick: bool, progress: Progress) -> Result:
    """As `run`, for a share of each case's time."""
    pairs = [(case, name) for case in CASES for name in (*MODELS, *MUJOCO)]
    ran = []
    for index, (case, name) in enumerate(pairs):
        progress(index / len(pairs), f"{case.name}, {name}")
        ran.append(simulate(case, name, max(share * case.seconds, 0.05)))
    heavy = [simulate(HEAVY, name, max(share * HEAVY.seconds, 0.05)) for name in (EXACT, *MUJOCO)]
    ours = [r for r in ran if r.model in MODELS]
    exact = {r.case.name: r for r in ours if r.model == EXACT}
    return Result(
        name="yamane-chains",
        title="Yamane and Nakamura: hoist, ring and net",
        paper="Yamane and Nakamura, A Numerically Robust LCP Solver, Table III and Figure 4",
        quick=quick,
        tables=(_table(ours), _times(ours), _ratios(exact), _quality(ran + heavy)),
        plots=tuple(_plot(scene, ran) for scene in ("hoist", "ring", "net")),
        pictures=tuple(
            Picture(f"The {name} at the end", r.case.scene, r.qpos, dict(r.case.options))
            for name, r in exact.items()
            if "light" not in name
        ),
        claims=_claims(ours, exact, heavy[0]),
        notes=_notes(ours),
        counts={
            "solves": sum(r.frames for r in ours),
            "failures": sum(bool(r.stopped) for r in ours),
        },
    )


NOTHING = (None, None, None, None, None)
"""His figures of a case that he does not have."""


def _table(ours: list[Ran]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for r in ours:
        contacts, active, frames, _, _ = r.case.his or NOTHING
        rows.append(
            (
                r.case.name,
                r.model,
                contacts,
                r.contacts,
                active,
                r.active,
                frames,
                r.frames,
                None if r.case.his is None else 0,
                int(bool(r.stopped)),
            )
        )
    return Table(
        "Table III: contacts and failures",
        (
            "scene",
            "friction",
            "his contacts",
            "contacts",
            "his active",
            "active",
            "his frames",
            "frames",
            "his failures",
            "failures",
        ),
        tuple(rows),
        "Frames are those with contact.",
    )


def _times(ours: list[Ran]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for r in ours:
        _, _, _, solve, step = r.case.his or NOTHING
        rows.append((r.case.name, r.model, solve, 1e3 * r.solve, step, 1e3 * r.step))
    return Table(
        "Table III: times, ms",
        ("scene", "friction", "his LCP", "solve", "his step", "step"),
        tuple(rows),
        "A solve is all that is neither kinematics, collision nor integration.",
    )


def _ratios(exact: dict[str, Ran]) -> Table:
    fine, coarse = exact["hoist, light load"], exact["hoist, light load, 10 ms"]
    rows: list[tuple[Cell, ...]] = [
        ("time to simulate the hoist, 1 ms over 10 ms", "about 4.5", _shorter(exact)),
        ("time of a step of the hoist, 10 ms over 1 ms", 187.0 / 120.0, coarse.step / fine.step),
    ]
    for name, his in (("hoist", 62.0 / 120.0), ("ring", 35.0 / 80.6), ("net", 9.72 / 62.5)):
        r = exact[name]
        rows.append((f"share of a step that solving takes, {name}", his, r.solve / r.step))
    return Table("Ratios", ("", "his", "ours, exact cone"), tuple(rows))


def _shorter(exact: dict[str, Ran]) -> float:
    """How many times less a second of the hoist takes with steps of 10 ms."""
    fine, coarse = exact["hoist, light load"], exact["hoist, light load, 10 ms"]
    return 10.0 * fine.step / coarse.step


def _quality(ran: list[Ran]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            r.case.name,
            r.model,
            r.did,
            1e3 * r.overlap,
            r.worst,
            None if np.isnan(r.handed_on) else f"{r.handed_on:.1%}",
            1e3 * r.step,
        )
        for r in ran
    ]
    return Table(
        "What came of it, beside MuJoCo",
        (
            "scene",
            "simulator",
            "what it did",
            "deepest overlap, mm",
            "worst violation",
            "steps by the ladder",
            "step, ms",
        ),
        tuple(rows),
        "Steps by the ladder are those that the compiled Newton method handed on to pivoting.",
    )


def _plot(scene: str, ran: list[Ran]) -> Plot:
    lines = []
    for r in ran:
        if r.case.scene == scene and r.model in (EXACT, "MuJoCo"):
            thin = max(1, len(r.times) // SAMPLES)
            lines.append(
                Line(f"{r.case.name}, {r.model}", tuple(r.times[::thin]),
                     tuple(r.heights[::thin]), dashed=r.model == "MuJoCo")
            )  # fmt: skip
    what = {"hoist": "the load", "ring": "the last wire's end", "net": "the first cylinder"}[scene]
    return Plot(f"Height of {what}", "s", "m", tuple(lines))


def _apart(exact: dict[str, Ran]) -> float:
    """Largest difference of the load's heights between steps of 1 and of 10 ms [m]."""
    fine, coarse = exact["hoist, light load"], exact["hoist, light load, 10 ms"]
    shared = min(len(fine.times) // 10, len(coarse.times))
    return max(
        (abs(fine.heights[10 * k + 9] - coarse.heights[k]) for k in range(shared)), default=0.0
    )


def _claims(ours: list[Ran], exact: dict[str, Ran], heavy: Ran) -> tuple[Claim, ...]:
    failures = sum(bool(r.stopped) for r in ours)
    caught = [r.did for r in ours if r.case.scene == "net"]
    shorter, apart = _shorter(exact), _apart(exact)
    return (
        Claim(
            "hoist, ring and net are solved without failure",
            "0 of 16036 frames",
            f"{failures} of {sum(r.frames for r in ours)} frames",
            verdict(failures == 0),
        ),
        Claim(
            "the net catches the cylinders",
            "5 (pictures)",
            "; ".join(caught),
            verdict(all(did.startswith("5 of 5") for did in caught)),
        ),
        Claim(
            "steps of 10 ms give a similar hoist",
            "similar",
            f"heights differ by {1e3 * apart:.0f} mm at most with a load of {LIGHT:g} kg; with 1 "
            f"kg it is {heavy.did}",
            "in part" if heavy.did.startswith("unstable") else "yes",
        ),
        Claim(
            "they take less time",
            "4.5 times",
            f"{shorter:.0f} times",
            verdict(shorter > 1.0),
        ),
    )


def _notes(ours: list[Ran]) -> tuple[str, ...]:
    notes = [
        "Steps of 10 ms are unstable with 1 kg, in MuJoCo as well: a taut rope of 20 g links "
        "vibrates faster than a semi-implicit step can follow; the paper integrates by "
        "Runge-Kutta, and does not give its masses. That row is no failure of a solver.",
        "Contacts are fewer than his on hoist and ring: links are capsules that touch in points, "
        "his are polygon meshes.",
        "Overlap comes about where a body that another one has flung meets a third within the same "
        "step, and where links turn far in a long step; it is taken back in the next.",
    ]
    notes += [f"{r.case.name}, {r.model}: {r.stopped}" for r in ours if r.stopped]
    return tuple(notes)
