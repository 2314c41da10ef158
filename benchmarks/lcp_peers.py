"""Speed and success of `stiction.lcp` beside its peers, on the papers' contact problems.

    python benchmarks/lcp_peers.py [--quick] [--json PATH]

One run, one machine: on each problem the solvers take turns, and this is repeated, so that
a slow moment of the machine falls on all of them alike. An untimed call of the same solver
goes before each timed one, so that nobody pays for the caches that another has emptied.
A time is the wall time of the Python call, arrays in, z out; building the matrices is not
counted, nor is what a peer lets one prepare (Drake's program, the QP's matrices). Given are
medians: over the repeats of a problem, then over the problems; a ratio is the median of the
ratios of the problems.

Solved means max|min(z, w)| <= 1e-6 max|q| with w = M z + q recomputed, for everyone,
whatever the solver says of itself. A solver that fails is timed all the same.
"""

# ruff: noqa: E402

from __future__ import annotations

import os

# Before numpy, which reads them when imported. Threads gain nothing at these sizes, and would
# make the times of all depend on the load.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter_ns

import numpy as np

from stiction.reproduce.contact_lcps import frictionless, stewart_trinkle
from stiction.reproduce.families import ContactArrays, grasp, peg, single_body, stack

TOLERANCE = 1e-6  # of max|q|
REPEATS = 7
SLOW = 20e6  # ns; a solve this long is not repeated, its relative noise is small
PEER_PIVOTS = 20_000  # a bound for peers that cycle; the longest success takes some 300

TUNED = "quantecon, tuned"
DAQP = "daqp, velocities"
PACKAGES = ("numpy", "numba", "quantecon", "drake", "daqp", "quadprog")


@dataclass(frozen=True)
class Case:
    """One LCP, and the contact arrays that it came from."""

    M: np.ndarray
    q: np.ndarray
    arrays: ContactArrays


Solve = Callable[[], tuple[np.ndarray | None, int | None]]
"""Returns z, None where the solver refused, and the pivots where it tells them."""

Prepare = Callable[[Case], Solve]


@dataclass(frozen=True)
class Family:
    name: str
    make: Callable[[np.random.Generator], ContactArrays]
    facets: int | None  # None: the frictionless LCP
    skip: tuple[str, ...] = ()  # solvers that take seconds or more per problem here

    def cases(self, count: int) -> list[Case]:
        cases = []
        for seed in range(count):
            arrays = self.make(np.random.default_rng(seed))
            lcp = stewart_trinkle(arrays, self.facets) if self.facets else frictionless(arrays)
            cases.append(Case(*lcp, arrays))
        return cases


MOBY, UNREVISED = "Drake Moby", "Drake Unrevised Lemke"
FRICTION = (
    Family("peg, 8 contacts", lambda rng: peg(8, rng), 8),
    Family("peg, 16", lambda rng: peg(16, rng), 8),
    Family("peg, 32", lambda rng: peg(32, rng), 8),
    Family("block in corner, 12", lambda rng: single_body("block in corner", rng), 8),
    Family("stack of 5, 20", lambda rng: stack(5, 20, rng), 8, skip=(MOBY,)),
    Family("stack of 5, 32", lambda rng: stack(5, 32, rng), 8, skip=(MOBY,)),
    Family("grasp of 2, 36", lambda rng: grasp(2, rng), 4),
)
FRICTIONLESS = (
    Family("peg, 12 contacts", lambda rng: peg(12, rng), None),
    Family("peg, 32", lambda rng: peg(32, rng), None),
    Family("peg, 64", lambda rng: peg(64, rng), None),
    Family("block in corner, 12", lambda rng: single_body("block in corner", rng), None),
    Family("stack of 5, 20", lambda rng: stack(5, 20, rng), None),
    Family("stack of 5, 32", lambda rng: stack(5, 32, rng), None),
    Family("grasp of 2, 36", lambda rng: grasp(2, rng), None),
    Family("grasp of 4, 60", lambda rng: grasp(4, rng), None),
)


# --- The solvers: each prepares a case, then solves it under the clock -------------------


def ours(method: str) -> Prepare:
    from stiction import lcp

    def prepare(case: Case) -> Solve:
        def solve() -> tuple[np.ndarray, int]:
            result = lcp.solve(case.M, case.q, method=method)
            return result.z, result.pivots

        return solve

    return prepare


def quantecon(tuned: bool) -> Prepare:
    from quantecon.optimize import lcp_lemke
    from quantecon.optimize.linprog_simplex import PivOptions

    options = PivOptions(1e-6, 1e-9, 1e-10) if tuned else PivOptions()

    def prepare(case: Case) -> Solve:
        def solve() -> tuple[np.ndarray, int]:
            answer = lcp_lemke(case.M, case.q, max_iter=PEER_PIVOTS, piv_options=options)
            return answer.z, answer.num_iter

        return solve

    return prepare


def drake(name: str) -> Prepare:
    from pydrake import solvers

    # A new solver for each call (it costs 1 us): Drake's Lemke keeps the last basis, and would
    # be handed the answer when the same problem comes again.
    solver = getattr(solvers, name)

    def prepare(case: Case) -> Solve:
        program = solvers.MathematicalProgram()
        variables = program.NewContinuousVariables(len(case.q))
        program.AddLinearComplementarityConstraint(case.M, case.q, variables)
        return lambda: (solver().Solve(program).get_x_val(), None)

    return prepare


def daqp_velocities() -> Prepare:
    """Least kinetic-energy distance over N v >= b; z are its multipliers."""
    import daqp

    def prepare(case: Case) -> Solve:
        a = case.arrays
        H, f = a.mass, -(a.mass @ a.velocity + a.dt * a.force)
        A, upper = -a.normal, -a.bound

        def solve() -> tuple[np.ndarray, int]:
            _, _, _, info = daqp.solve(H, f, A, upper)
            return np.asarray(info["lam"]), info["iterations"]

        return solve

    return prepare


def daqp_impulses() -> Prepare:
    """Least z'Mz/2 + q'z over z >= 0; M is singular, daqp regularizes by itself."""
    import daqp

    def prepare(case: Case) -> Solve:
        n = len(case.q)
        A, lower, upper = np.zeros((0, n)), np.zeros(n), np.full(n, 1e30)

        def solve() -> tuple[np.ndarray, int]:
            z, _, _, info = daqp.solve(case.M, case.q, A, upper, lower, eps_prox=-1.0)
            return np.asarray(z), info["iterations"]

        return solve

    return prepare


def quadprog_velocities() -> Prepare:
    import quadprog

    def prepare(case: Case) -> Solve:
        a = case.arrays
        momentum = a.mass @ a.velocity + a.dt * a.force
        C = np.asfortranarray(a.normal.T)

        def solve() -> tuple[np.ndarray, int]:
            answer = quadprog.solve_qp(a.mass, momentum, C, a.bound)
            return answer[4], int(answer[3][0])

        return solve

    return prepare


def quadprog_impulses() -> Prepare:
    """quadprog takes no singular M, so 1e-9 of it is added to the diagonal."""
    import quadprog

    def prepare(case: Case) -> Solve:
        n = len(case.q)
        G = case.M + 1e-9 * case.M.diagonal().max() * np.eye(n)
        a, C, b = -case.q, np.eye(n), np.zeros(n)

        def solve() -> tuple[np.ndarray, int]:
            answer = quadprog.solve_qp(G, a, C, b)
            return answer[0], int(answer[3][0])

        return solve

    return prepare


OURS_FRICTION = ("lemke", "lexicographic", "search", "auto")
OURS_FRICTIONLESS = ("dantzig", "auto")
FRICTION_SOLVERS: dict[str, Callable[[], Prepare]] = {
    "quantecon": lambda: quantecon(tuned=False),
    "lemke": lambda: ours("lemke"),
    TUNED: lambda: quantecon(tuned=True),
    "lexicographic": lambda: ours("lexicographic"),
    UNREVISED: lambda: drake("UnrevisedLemkeSolver"),
    "search": lambda: ours("search"),
    MOBY: lambda: drake("MobyLcpSolver"),
    "auto": lambda: ours("auto"),
}
FRICTIONLESS_SOLVERS: dict[str, Callable[[], Prepare]] = {
    DAQP: daqp_velocities,
    "dantzig": lambda: ours("dantzig"),
    "daqp, impulses": daqp_impulses,
    "auto": lambda: ours("auto"),
    "quadprog, velocities": quadprog_velocities,
    "quadprog, impulses": quadprog_impulses,
}


# --- Measuring -----------------------------------------------------------------------------


@dataclass
class Tally:
    """What one solver did on one family: a time [us] and a verdict per problem."""

    times: list[float] = field(default_factory=list)
    solved: int = 0
    pivots: list[int] = field(default_factory=list)

    @property
    def median(self) -> float:
        return float(np.median(self.times))


Tallies = dict[str, Tally]


def available(solvers: dict[str, Callable[[], Prepare]]) -> tuple[dict[str, Prepare], list[str]]:
    """The solvers whose packages are installed, and the names of the others."""
    ready, absent = {}, []
    for name, make in solvers.items():
        try:
            ready[name] = make()
        except ImportError:
            absent.append(name)
    return ready, absent


def attempt(solve: Solve) -> tuple[int, np.ndarray | None, int | None]:
    """Nanoseconds, z, pivots of one call; z is None if the solver raised."""
    began = perf_counter_ns()
    try:
        z, pivots = solve()
    except (ValueError, ArithmeticError, RuntimeError):
        z, pivots = None, None
    return perf_counter_ns() - began, z, pivots


def is_solution(case: Case, z: np.ndarray | None) -> bool:
    if z is None or z.shape != case.q.shape or not np.isfinite(z).all():
        return False
    residual = np.abs(np.minimum(z, case.M @ z + case.q)).max()
    return bool(residual <= TOLERANCE * np.abs(case.q).max())


def measure(family: Family, solvers: dict[str, Prepare], count: int, repeats: int) -> Tallies:
    """All solvers on all problems of a family, taking turns within each repeat."""
    cases = family.cases(count)
    names = [name for name in solvers if name not in family.skip]
    for name in names:  # compilation, caches
        attempt(solvers[name](cases[0]))
    tallies = {name: Tally() for name in names}
    for case in cases:
        calls = {name: solvers[name](case) for name in names}
        times: dict[str, list[int]] = {name: [] for name in names}
        for _ in range(repeats):
            for name, solve in calls.items():
                if times[name] and times[name][0] > SLOW:
                    continue
                elapsed, z, pivots = attempt(solve)
                if not times[name]:
                    tallies[name].solved += is_solution(case, z)
                    if pivots is not None:
                        tallies[name].pivots.append(pivots)
                if elapsed <= SLOW:
                    elapsed, _, _ = attempt(solve)
                times[name].append(elapsed)
        for name in names:
            tallies[name].times.append(float(np.median(times[name])) / 1e3)
    return tallies


# --- Reporting -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    family: Family
    size: int
    tallies: Tallies

    def ratio(self, peer: str, name: str) -> float | None:
        """How many times faster than the peer, or None if one of them is missing."""
        if peer not in self.tallies or name not in self.tallies:
            return None
        pairs = zip(self.tallies[peer].times, self.tallies[name].times, strict=True)
        return float(np.median([theirs / mine for theirs, mine in pairs]))


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def time_table(rows: list[Row], names: list[str]) -> str:
    def cell(tally: Tally | None) -> str:
        if tally is None:
            return "-"
        digits = 1 if tally.median < 100 else 0
        return f"{tally.median:.{digits}f} ({tally.solved})"

    body = [
        [row.family.name, str(row.size), *(cell(row.tallies.get(name)) for name in names)]
        for row in rows
    ]
    return table(["", "n", *names], body)


def ratio_table(rows: list[Row], peer: str, mine: tuple[str, ...]) -> str:
    def cell(ratio: float | None) -> str:
        return "-" if ratio is None else f"{ratio:.2f}"

    body = [[row.family.name, *(cell(row.ratio(peer, name)) for name in mine)] for row in rows]
    return table(["", *mine], body)


def pivot_table(rows: list[Row], names: list[str]) -> str:
    def cell(tally: Tally | None) -> str:
        if tally is None or not tally.pivots:
            return "-"
        return f"{np.median(tally.pivots):.0f} ({max(tally.pivots)})"

    body = [[row.family.name, *(cell(row.tallies.get(name)) for name in names)] for row in rows]
    return table(["", *names], body)


def growth(rows: list[Row]) -> dict[str, float]:
    """Exponent of each solver's time in n over the peg's sizes, by least squares in logs."""
    pegs = [row for row in rows if row.family.name.startswith("peg")]
    sizes = np.log([row.size for row in pegs])
    exponents = {}
    for name in pegs[0].tallies:
        if all(name in row.tallies for row in pegs):
            times = np.log([row.tallies[name].median for row in pegs])
            exponents[name] = float(np.polyfit(sizes, times, 1)[0])
    return exponents


def report(
    title: str, rows: list[Row], names: list[str], peer: str, mine: tuple[str, ...], count: int
) -> Iterator[str]:
    exponents = growth(rows)
    counting = [n for n in names if any(n in r.tallies and r.tallies[n].pivots for r in rows)]
    yield f"## {title}"
    yield f"us per solve (solved of {count}):"
    yield time_table(rows, names)
    yield f"Times faster than {peer}:"
    yield ratio_table(rows, peer, mine)
    yield "Pivots, median (largest):"
    yield pivot_table(rows, counting)
    yield "Growth on the peg, exponent of n:"
    yield table(list(exponents), [[f"{value:.2f}" for value in exponents.values()]])


def as_json(title: str, rows: list[Row], peer: str, mine: tuple[str, ...]) -> dict[str, object]:
    return {
        "title": title,
        "growth": growth(rows),
        "families": [
            {
                "family": row.family.name,
                "size": row.size,
                "ratios": {"peer": peer, **{name: row.ratio(peer, name) for name in mine}},
                "solvers": {
                    name: {
                        "microseconds": tally.median,
                        "solved": tally.solved,
                        "problems": len(tally.times),
                        "pivots": float(np.median(tally.pivots)) if tally.pivots else None,
                    }
                    for name, tally in row.tallies.items()
                },
            }
            for row in rows
        ],
    }


def machine() -> dict[str, str]:
    found = {"python": platform.python_version(), "cores": str(os.cpu_count())}
    found["machine"] = f"{platform.system()} {platform.machine()}"
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="4 loads each instead of 20")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures there too")
    arguments = parser.parse_args()
    count, repeats = (4, 3) if arguments.quick else (20, REPEATS)

    parts = (
        ("Friction", FRICTION, FRICTION_SOLVERS, TUNED, OURS_FRICTION),
        ("Frictionless", FRICTIONLESS, FRICTIONLESS_SOLVERS, DAQP, OURS_FRICTIONLESS),
    )
    found = machine()
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    results = []
    for title, families, solvers, peer, mine in parts:
        ready, absent = available(solvers)
        rows = []
        for family in families:
            tallies = measure(family, ready, count, repeats)
            rows.append(Row(family, len(family.cases(1)[0].q), tallies))
        for text in report(title, rows, list(ready), peer, mine, count):
            print(f"\n{text}", flush=True)
        for name in absent:
            print(f"\nSkipped, not installed: {name}")
        for family in families:
            for name in set(family.skip) & set(ready):
                print(f"\nSkipped on {family.name}, seconds per solve: {name}")
        results.append(as_json(title, rows, peer, mine))
    if arguments.json:
        text = json.dumps({"machine": found, "parts": results}, indent=2)
        arguments.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
