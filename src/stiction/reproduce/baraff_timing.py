"""Baraff, section 7: contact forces for the price of two or three Gaussian eliminations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgesv

from stiction.kernels.block import divide_block, factor_block
from stiction.lcp.drivers import solve_dantzig
from stiction.reproduce.contact_lcps import frictionless
from stiction.reproduce.families import stack
from stiction.reproduce.result import (
    Cell,
    Claim,
    Line,
    Plot,
    Progress,
    Result,
    Table,
    clock,
    exponent,
)
from stiction.status import Code

Array = NDArray[np.float64]
Make = Callable[[int, int], tuple[Array, Array]]
Qp = Callable[[Array, Array], Callable[[], Array]]

SIZES = (8, 16, 32, 64, 100, 148)
LONG = 100_000
NONE, COLD = np.empty(0), np.empty(0, np.int8)
TOLERANCE = 1e-8
NUDGE = 1e-9
"""Share of the diagonal by which QP solvers' matrices are made definite: stacks' are singular."""


def random_rows(n: int, seed: int) -> tuple[Array, Array]:
    """A of random rows: about half of the contacts press."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, n)) / np.sqrt(n)
    return rows @ rows.T, rng.standard_normal(n)


def stacks(n: int, seed: int) -> tuple[Array, Array]:
    """A of n / 4 blocks on each other, with a random wrench on the top one; singular."""
    return frictionless(stack(n // 4, None, np.random.default_rng(seed)))


KINDS: dict[str, Make] = {"random rows": random_rows, "stacks": stacks}


def run(quick: bool, progress: Progress) -> Result:
    """Times of Dantzig's method beside elimination and QP solvers."""
    return run_sized((8, 32, 100) if quick else SIZES, 3 if quick else 7, 2 if quick else 5, quick,
                   progress)  # fmt: skip


def run_sized(
    sizes: tuple[int, ...], problems: int, repeats: int, quick: bool, progress: Progress
) -> Result:
    """As `run`, for these sizes, so many problems of each and repeats."""
    solvers = qp_solvers()
    tables, plots = [], []
    failures = 0
    ratios: dict[str, list[tuple[float, float, float]]] = {}
    for index, (kind, make) in enumerate(KINDS.items()):
        rows: list[tuple[Cell, ...]] = []
        times: dict[str, list[float]] = {}
        for place, n in enumerate(sizes):
            progress((index + place / len(sizes)) / len(KINDS), f"{kind}, n = {n}")
            line, failed = _time_size(make, n, problems, repeats, solvers)
            failures += failed
            for name, value in line.items():
                times.setdefault(name, []).append(value)
            ours, elimination, lapack = line["Dantzig"], line["elimination"], line["LAPACK"]
            others = [line[name] for name in solvers]
            best = min(others, default=float("nan"))
            ratios.setdefault(kind, []).append((ours / elimination, ours / lapack, best / ours))
            rows.append(
                (n, line["pivots"], 1e6 * ours, 1e6 * elimination, 1e6 * lapack,
                 *[1e6 * other for other in others], ours / elimination, ours / lapack,
                 best / ours if others else None)
            )  # fmt: skip
        tables.append(
            Table(
                f"Without friction, {kind}: us",
                ("n", "pivots", "Dantzig", "elimination", "LAPACK", *solvers,
                 "Dantzig / elimination", "Dantzig / LAPACK", "fastest QP / Dantzig"),
                tuple(rows),
                "His: Dantzig over elimination 2 to 3, QP over Dantzig 5 to 10.",
            )
        )  # fmt: skip
        x = tuple(float(n) for n in sizes)
        drawn = tuple(
            Line(f"{name}, n^{exponent(x, y):.1f}", x, tuple(1e6 * value for value in y))
            for name, y in times.items()
            if name != "pivots"
        )
        plots.append(Plot(f"Time over n, {kind}", "n", "us", drawn, log=True))
    return Result(
        name="baraff-timing",
        title="Baraff: contact forces against Gaussian elimination and QP",
        paper="Baraff, Fast Contact Force Computation for Nonpenetrating Rigid Bodies, section 7",
        quick=quick,
        tables=tuple(tables),
        plots=tuple(plots),
        claims=_claims(ratios, sizes, bool(solvers)),
        notes=_notes(solvers),
        counts={"solves": len(KINDS) * len(sizes) * problems, "failures": failures},
        seeds=tuple(range(problems)),
    )


def _time_size(
    make: Make, n: int, problems: int, repeats: int, solvers: dict[str, Qp]
) -> tuple[dict[str, float], int]:
    """Median times [s] and pivots at one size, and failures of ours."""
    found: dict[str, list[float]] = {}
    failures = 0
    for seed in range(problems):
        matrix, free = make(n, seed)

        def ours(m: Array = matrix, q: Array = free) -> Any:
            return solve_dantzig(m, q, NONE, NONE, COLD, LONG)

        answer = ours()
        failures += not (answer[3] == Code.SOLVED and answer[5] <= TOLERANCE)
        # A dense matrix of that size, never singular: elimination of the stacks' zeros is cheaper.
        regular = random_rows(n, seed)[0] + np.eye(n)
        definite = matrix + NUDGE * np.diag(np.diagonal(matrix))
        exchanged = np.zeros(n, np.int64)

        def eliminate(m: Array = regular, q: Array = free, w: Any = exchanged) -> None:
            factors, y = m.ravel().copy(), q.copy()
            factor_block(factors, 0, len(y), w, 0)
            divide_block(factors, 0, len(y), w, 0, y, 0, 1)

        calls: dict[str, Callable[[], object]] = {
            "Dantzig": ours,
            "elimination": eliminate,
            "LAPACK": partial(dgesv, regular, free),
        }
        calls |= {name: prepare(definite, free) for name, prepare in solvers.items()}
        for name, call in calls.items():
            found.setdefault(name, []).append(seconds(call, repeats))
        found.setdefault("pivots", []).append(float(answer[4]))
    return {name: float(np.median(values)) for name, values in found.items()}, failures


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Least time of a call [s], each over enough calls to last about a millisecond."""
    call()
    began = clock()
    call()
    inner = max(1, int(1e-3 / max(clock() - began, 1e-7)))
    best = np.inf
    for _ in range(repeats):
        began = clock()
        for _ in range(inner):
            call()
        best = min(best, (clock() - began) / inner)
    return float(best)


def qp_solvers() -> dict[str, Qp]:
    """min 1/2 f'A f + b'f over f >= 0, by those solvers that are installed."""
    known = {"daqp": _daqp, "quadprog": _quadprog}
    return {name: make for name, make in known.items() if find_spec(name) is not None}


def _daqp(matrix: Array, free: Array) -> Callable[[], Array]:
    daqp = import_module("daqp")
    n = len(free)
    rows, upper, lower = np.eye(n), np.full(n, 1e30), np.zeros(n)
    sense = np.zeros(n, np.int32)
    return lambda: daqp.solve(matrix, free, rows, upper, lower, sense)[0]


def _quadprog(matrix: Array, free: Array) -> Callable[[], Array]:
    quadprog = import_module("quadprog")
    rows, lower = np.eye(len(free)), np.zeros(len(free))
    return lambda: quadprog.solve_qp(matrix, -free, rows, lower)[0]


def _claims(
    ratios: dict[str, list[tuple[float, float, float]]], sizes: tuple[int, ...], qp: bool
) -> tuple[Claim, ...]:
    claims = []
    for kind, lines in ratios.items():
        most = max(line[0] for line in lines)
        last = lines[-1]
        claims.append(
            Claim(
                f"without friction, contact forces cost two to three eliminations ({kind})",
                "2 to 3 times",
                f"{lines[0][0]:.1f} times at n = {sizes[0]}, {last[0]:.1f} at {sizes[-1]}; of "
                f"LAPACK's {lines[0][1]:.1f} and {last[1]:.1f}",
                "yes" if most <= 3.0 else "in part" if last[0] <= 3.0 else "no",
            )
        )
        if not qp:
            continue
        better = [line[2] for line in lines]
        claims.append(
            Claim(
                f"QP solvers take five to ten times as long, to n = 150 ({kind})",
                "5 to 10 times",
                f"{min(better):.1f} to {max(better):.1f} times (daqp, quadprog)",
                "yes" if min(better) >= 5.0 else "in part" if max(better) > 1.0 else "no",
            )
        )
    return tuple(claims)


def _notes(solvers: dict[str, Qp]) -> tuple[str, ...]:
    notes = [
        "Ours includes scaling and the check of the residual. The elimination is a compiled loop "
        "without pivoting, which these matrices do not need; LAPACK's is blocked and vectorized.",
        "His five to ten was against solvers of 1994, without an active-set method of this kind.",
    ]
    if not solvers:
        notes.append("Neither daqp nor quadprog is installed: no row of QP solvers.")
    return tuple(notes)
