"""Friction from arrays to certified impulses, beside LCP solvers that get their matrix for free.

    python benchmarks/contact_solvers.py [--quick]

Ours is what users call: `Coulomb().solve(problem)` of a problem that was not seen before, from its
arrays (mass, rows, forces) to a graded certificate; with and without making, and so checking, the
`ContactProblem`. A peer's clock runs only while it solves the assembled LCP with eight facets. All
are interleaved in one run; each time is the median over wrenches of the least of several repeats.
Then growth
with the number of contacts on one body, every solver of the exact cone by name, called alike on
the scaled problem, and what a warm start costs on an unchanged active set, beside one Cholesky
solve of the size of its system.
"""

# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
from collections.abc import Callable
from functools import partial
from time import perf_counter_ns
from typing import Any

import numpy as np
from lcp_peers import FRICTION, TUNED, UNREVISED, Case, Prepare, available, drake, quantecon, table

from stiction.contact import ContactProblem, Coulomb, certify
from stiction.contact.problem.cones import build_cones
from stiction.contact.problem.scaled import ScaledProblem
from stiction.contact.solvers.attempt import Options
from stiction.contact.solvers.coulomb.newton import newton
from stiction.contact.solvers.table import SOLVERS
from stiction.kernels import kernel, linear
from stiction.reproduce.families import peg

FACETS = 8
PEERS: dict[str, Callable[[], Prepare]] = {
    "quantecon": lambda: quantecon(False),
    TUNED: lambda: quantecon(True),
    UNREVISED: lambda: drake("UnrevisedLemkeSolver"),
}
SIZES = (8, 16, 32, 64, 128, 256)


MINE = {"reduced": Coulomb(FACETS), "exact": Coulomb()}


def least(
    call: Callable[..., object], repeats: int, prepare: Callable[[], Any] | None = None
) -> float:
    """Least time of a call [us]; `prepare` makes its argument anew each time, off the clock."""
    best = np.inf
    for _ in range(repeats):
        arguments = () if prepare is None else (prepare(),)
        began = perf_counter_ns()
        call(*arguments)
        best = min(best, perf_counter_ns() - began)
    return best / 1e3


def time_mine(make: Callable[[], ContactProblem], repeats: int) -> tuple[dict[str, float], float]:
    """Times of our models [us], without and with making the problem, and the worst entry of any
    certificate."""
    times, worst = {}, 0.0
    for name, model in MINE.items():
        worst = max(worst, model.solve(make()).certificate.worst)
        times[name] = least(model.solve, repeats, make)
        times[f"{name}, made"] = least(lambda model=model: model.solve(make()), repeats)
    return times, worst


def against_peers(count: int, repeats: int) -> str:
    """The table beside the peers."""
    peers, missing = available(PEERS)
    rows = []
    for family in FRICTION:
        if family.facets != FACETS:
            continue
        times: dict[str, list[float]] = {}
        worst = 0.0
        for case in family.cases(count):
            ours, off = time_mine(case.arrays.problem, repeats)
            worst = max(worst, off)
            for name, spent in ours.items():
                times.setdefault(name, []).append(spent)
            for name, prepare in peers.items():
                solve = prepare(Case(case.M, case.q, case.arrays))
                times.setdefault(name, []).append(least(solve, max(2, repeats // 3)))
        median = {name: float(np.median(t)) for name, t in times.items()}
        fastest = min((median[name] for name in peers), default=np.nan)
        rows.append(
            [family.name]
            + [f"{median[name]:.0f}" for name in (*ours, *peers)]
            + [f"{fastest / median['reduced']:.0f}", f"{median['exact'] / median['reduced']:.2f}"]
            + [f"{worst:.0e}"]
        )
    header = ["us", *ours, *peers, "fastest peer / reduced", "exact / reduced", "worst"]
    absent = f"\n\nAbsent: {', '.join(missing)}." if missing else ""
    return table(header, rows) + absent


def growth(count: int, repeats: int) -> str:
    """Times on pegs of growing numbers of contacts, and the exponents."""
    medians: dict[str, list[float]] = {"reduced": [], "exact": []}
    for size in SIZES:
        times: dict[str, list[float]] = {"reduced": [], "exact": []}
        for seed in range(count):
            make = peg(size, np.random.default_rng(seed)).problem
            for name, spent in times.items():
                MINE[name].solve(make())
                spent.append(least(MINE[name].solve, repeats, make))
        for name, spent in times.items():
            medians[name].append(float(np.median(spent)))
    rows = []
    for name, values in medians.items():
        exponent = np.polyfit(np.log(SIZES), np.log(values), 1)[0]
        rows.append([name, *[f"{v:.0f}" for v in values], f"{exponent:.2f}"])
    return table(["us, peg", *[str(s) for s in SIZES], "exponent"], rows)


def by_name(count: int, repeats: int) -> str:
    """Times of all solvers of the exact cone on scaled problems, and what share of them passed."""
    names = ("reduced", "structural", "standard", "search", "conic", "driving")
    rows = []
    for family in FRICTION:
        if family.facets != FACETS:
            continue
        times: dict[str, list[float]] = {name: [] for name in names}
        passed: dict[str, list[bool]] = {name: [] for name in names}
        for case in family.cases(count):
            problem = case.arrays.problem()
            scaled = ScaledProblem(problem)
            for name in names:
                solve = partial(SOLVERS[name], scaled, None, Options())
                impulses = scaled.unscale(solve().impulses)
                velocity = problem.velocity_from(*impulses)
                passed[name].append(certify(problem, velocity, *impulses).passed)
                times[name].append(least(solve, max(2, repeats // 3)))
        cells = [f"{np.median(times[name]):.0f} ({np.mean(passed[name]):.0%})" for name in names]
        rows.append([family.name, *cells])
    return table(["us (passed)", *names], rows)


@kernel
def warm_loop(cones, theta, phi, turn, repeats):
    """Newton's method from the answer itself: what a warm start costs beside the scaling."""
    taken = 0
    for _ in range(repeats):
        a, b = theta.copy(), phi.copy()
        taken += newton(cones, a, b, 60, turn, np.int64(0), 1.0)[1]
    return taken


@kernel
def cholesky_loop(A, rhs, repeats):
    """Factor and solve A x = rhs, row by row."""
    n = A.shape[0]
    L, y, x = np.empty((n, n)), np.empty(n), np.empty(n)
    for _ in range(repeats):
        for k in range(n):
            for j in range(k):
                y[j] = A[k, j]
            linear.forward(L, k, y)
            pivot = A[k, k]
            for j in range(k):
                pivot -= y[j] * y[j]
            linear.append(L, k, y, pivot)
        x[:] = rhs
        linear.forward(L, n, x)
        linear.backward(L, n, x)
    return x[0]


def warm_start() -> str:
    """Time of a warm start on an unchanged and on a slightly changed problem."""
    rows = []
    for family in FRICTION:
        if family.facets != FACETS:
            continue
        ratios, same, kept = [], [], []
        for case in family.cases(5):
            problem = case.arrays.problem()
            answer = Coulomb().solve(problem)
            cones, _ = build_cones(problem.whitened, problem.arrays)
            theta = answer.normal * cones.length_normal / cones.load
            phi = (answer.tangent * (cones.length / cones.load)[:, None])[problem.friction > 0]
            moved = cones._replace(
                free_normal=cones.free_normal * (1 + 1e-4), free=cones.free * (1 + 1e-4)
            )
            turn = np.zeros(len(phi))
            size = max(3 * int((theta > 0).sum()), 1)
            A = np.eye(size) + 0.1
            spent = least(partial(warm_loop, moved, theta, phi, turn, 100), 5) / 100
            one = least(partial(cholesky_loop, A, np.ones(size), 100), 5) / 100
            ratios.append(spent / one)
            again = least(partial(warm_loop, cones, theta, phi, turn, 100), 5) / 100
            same.append(again / one)
            kept.append(warm_loop(moved, theta, phi, turn, 1))
        rows.append(
            [
                family.name,
                f"{one:.1f}",
                f"{again:.1f}",
                f"{np.median(same):.1f}",
                f"{np.median(kept):.0f}",
                f"{spent:.1f}",
                f"{np.median(ratios):.1f}",
            ]
        )
    header = ["warm start", "Cholesky solve, us", "same load, us", "ratio"]
    return table([*header, "other load, Newton steps", "us", "ratio"], rows)


def main() -> None:
    """Prints the four tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer wrenches and repeats")
    quick = parser.parse_args().quick
    count, repeats = (5, 5) if quick else (20, 15)
    print("## Friction, eight facets and the exact cone\n")
    print(against_peers(count, repeats), flush=True)
    print("\n## Growth\n")
    print(growth(count, repeats), flush=True)
    print("\n## The exact cone, solver by solver\n")
    print(by_name(count, repeats), flush=True)
    print("\n## Warm start\n")
    print(warm_start())


if __name__ == "__main__":
    main()
