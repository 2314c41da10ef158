"""Speed of `Frictionless` and `NoSlip` beside daqp, from the arrays to the solution.

    python benchmarks/contact_normals.py [--quick]

daqp solves min 1/2 v'M v - k'v over N v >= b, and T v = 0 for no-slip; its time is that of its
Python call, which factorizes M. Ours is measured twice: the Python call on a problem given,
certificate and all, and the compiled call from the problem's own arrays to velocity and impulses,
which factorizes M as well and is what a simulator pays. `warm` is that call with the last active
set; beside it stands one Cholesky factorization and solve of the size of that set, compiled.

Solvers take turns on each problem, and this is repeated, so that a slow moment of the machine falls
on all of them alike; each timed batch follows an untimed one. Given are medians, in microseconds;
a ratio is the median of the ratios of the turns. Growth: the grasp's corners given more often, at
the same bodies.
"""

# ruff: noqa: E402

from __future__ import annotations

import os

# Before numpy, which reads them when imported: threads gain nothing at these sizes.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
from collections.abc import Callable
from time import perf_counter_ns

import numpy as np

from stiction.contact import ContactProblem, Frictionless, NoSlip
from stiction.contact.solvers.drumwright.columns import scatter_tangents, solve_arrays, warm_states
from stiction.contact.solvers.drumwright.no_slip import sticking_contacts
from stiction.kernels import kernel
from stiction.kernels.linear import factorize, solve
from stiction.reproduce.families import grasp, single_body, stack
from stiction.reproduce.grasping import daqp_arguments

try:
    import daqp
except ImportError:
    daqp = None

BATCH = 5e5  # ns; calls are timed in batches of about this length


@kernel
def repeat_arrays(arrays, dt, sticking, state, count):
    """`count` compiled solves; returns something that depends on all of them."""
    total = 0.0
    for _ in range(count):
        velocity, answer = solve_arrays(arrays, dt, sticking, state)
        total += velocity[0] + answer.pivots
    return total


@kernel
def repeat_cholesky(matrix, right, count):
    """`count` Cholesky factorizations and solves of a dense matrix."""
    n = matrix.shape[0]
    upper, last = np.empty((n, n)), np.empty(n, np.int64)
    total = 0.0
    for _ in range(count):
        y = right.copy()
        factorize(matrix, upper, last, 0.0)
        solve(upper, last, y)
        total += y[0]
    return total


def times(call: Callable[[], object], count: int) -> Callable[[int], object]:
    """A function of a number of calls, for Python callables."""

    def run(calls: int) -> None:
        for _ in range(calls):
            call()

    run(count)
    return run


def take_turns(runs: dict[str, Callable[[int], object]], turns: int) -> dict[str, np.ndarray]:
    """Time per call [us] of each run in each turn."""
    counts = {}
    for label, run in runs.items():
        run(1)
        began = perf_counter_ns()
        run(1)
        counts[label] = max(1, int(BATCH / max(1, perf_counter_ns() - began)))
    result: dict[str, list[float]] = {label: [] for label in runs}
    for _ in range(turns):
        for label, run in runs.items():
            run(max(1, counts[label] // 4))
            began = perf_counter_ns()
            run(counts[label])
            result[label].append((perf_counter_ns() - began) / counts[label] / 1e3)
    return {label: np.array(values) for label, values in result.items()}


def daqp_call(problem: ContactProblem, sticking: np.ndarray) -> Callable[[], object] | None:
    """daqp on the velocities of the problem; checks once that it finds ours."""
    if daqp is None:
        return None
    arguments = daqp_arguments(problem, sticking != 0)

    def call() -> object:
        return daqp.solve(*arguments)

    return call


def measure(problem: ContactProblem, sticks: bool, turns: int) -> dict[str, np.ndarray | float]:
    """Times of all ways on one problem."""
    arrays, dt = problem.arrays, problem.dt
    model = NoSlip() if sticks else Frictionless()
    sticking = sticking_contacts(arrays.friction, arrays.bound)
    if not sticks:
        sticking[:] = 0
    cold = np.empty(0, np.int8)
    velocity, answer = solve_arrays(arrays, dt, sticking, cold)
    tangent = scatter_tangents(answer.equal, 0, sticking)
    none = np.empty(0)
    warm = warm_states(answer.normal, tangent, none, none, none, sticking)
    size = int((warm != 0).sum())
    root = np.random.default_rng(0).standard_normal((size, size))
    matrix, right = root @ root.T + size * np.eye(size), np.ones(size)
    runs: dict[str, Callable[[int], object]] = {
        "compiled": lambda count: repeat_arrays(arrays, dt, sticking, cold, count),
        "warm": lambda count: repeat_arrays(arrays, dt, sticking, warm, count),
        "python": times(lambda: model.solve(problem), 2),
    }
    if size:
        runs["cholesky"] = lambda count: repeat_cholesky(matrix, right, count)
    call = daqp_call(problem, sticking)
    off = np.nan
    if call is not None:
        runs["daqp"] = times(call, 2)
        off = np.abs(call()[0] - velocity).max() / max(np.abs(problem.free_velocity).max(), 1e-300)
    return {**take_turns(runs, turns), "pivots": answer.pivots, "size": size, "off": off}


def line(label: str, law: str, result: dict) -> str:
    """One row of the table."""
    median = {key: np.median(result[key]) if key in result else np.nan for key in COLUMNS}
    ratio = np.median(result["daqp"] / result["compiled"]) if "daqp" in result else np.nan
    cells = [f"{median[key]:.1f}" for key in COLUMNS]
    return (
        f"| {label} | {law} | {result['pivots']} | {result['size']} | "
        + " | ".join(cells)
        + f" | {ratio:.1f} | {result['off']:.0e} |"
    )


COLUMNS = ("compiled", "warm", "cholesky", "python", "daqp")
HEAD = (
    "| problem | model | pivots | active | compiled | warm | Cholesky | Python | daqp "
    "| daqp / compiled | difference |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def main() -> None:
    """Prints two tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer turns, up to 1,000 contacts")
    quick = parser.parse_args().quick
    turns = 15 if quick else 101
    rng = np.random.default_rng(1)
    problems = {
        "corner 12": single_body("block in corner", rng).problem(),
        "stack 5/32": stack(5, 32, rng).problem(),
        "grasp 36": grasp(2, rng).problem(),
    }
    print(f"Microseconds, medians of {turns} turns.\n\n{HEAD}")
    for label, problem in problems.items():
        for sticks, law in ((False, "frictionless"), (True, "no-slip")):
            print(line(label, law, measure(problem, sticks, turns)), flush=True)

    print(f"\nGrowth at fixed bodies: the grasp, its 12 corners repeated.\n\n{HEAD}")
    copies = (3, 10, 30, 84) if quick else (3, 10, 30, 84, 278, 834)
    for sticks, law in ((False, "frictionless"), (True, "no-slip")):
        spent, counts = [], []
        for duplicates in copies:
            problem = grasp(2, np.random.default_rng(1), duplicates=duplicates).problem()
            result = measure(problem, sticks, max(5, turns // 5))
            spent.append(np.median(result["compiled"]))
            counts.append(problem.nc)
            print(line(f"grasp {problem.nc}", law, result), flush=True)
        exponent = np.polyfit(np.log(counts), np.log(spent), 1)[0]
        print(f"\n{law}: exponent {exponent:.2f} from {counts[0]} to {counts[-1]} contacts.\n")


if __name__ == "__main__":
    main()
