"""Baraff's claim: contact forces for about the price of one or two Gaussian eliminations.

    python benchmarks/baraff_timing.py [--quick]

His section 7: without friction, n up to 150, "two to three times longer than it would take to
solve the linear system Ax = b, using Gaussian elimination". Here both are compiled loops in the
same style, one thread, double precision: the elimination has partial pivoting, the method is
`stiction.lcp`'s Dantzig, scaling and the residual check included. LAPACK's solver is there for
reference. Two kinds of A: of random rows, where about half the contacts press; and of stacked
blocks under their weight and a random wrench, n contacts, singular (elimination gets A + 1,
which costs it the same). Then his static friction, on the stacks, against one elimination of
the size of all its rows, 3 n.

Each time is the least of several, each over enough calls to last a few milliseconds; ratios are
medians over problems.
"""

# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
from collections.abc import Callable
from time import perf_counter

import numpy as np

from stiction.contact.models.baraff import Baraff
from stiction.contact.problem.cones import build_cones
from stiction.contact.solvers.baraff.driving import solve_driving
from stiction.kernels import kernel
from stiction.lcp.drivers import solve_dantzig
from stiction.reproduce.contact_lcps import frictionless
from stiction.reproduce.families import stack
from stiction.status import Code

SIZES = (8, 16, 32, 64, 100, 148)
NOTHING = np.empty(0)
COLD = np.empty(0, np.int8)
LONG = 100_000


@kernel
def eliminate(A, b):
    """x with A x = b, by Gaussian elimination with partial pivoting; A and b are copied."""
    A = A.copy()
    x = b.copy()
    n = b.shape[0]
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        if best != k:
            for j in range(k, n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
            x[k], x[best] = x[best], x[k]
        above = A[k]
        for i in range(k + 1, n):
            row = A[i]
            factor = row[k] / above[k]
            for j in range(k + 1, n):
                row[j] -= factor * above[j]
            x[i] -= factor * x[k]
    for k in range(n - 1, -1, -1):
        row = A[k]
        total = x[k]
        for j in range(k + 1, n):
            total -= row[j] * x[j]
        x[k] = total / row[k]
    return x


def seconds(repeats: int, call: Callable[..., object], *arguments: object) -> float:
    """Least time of a call [s]."""
    call(*arguments)
    began = perf_counter()
    call(*arguments)
    inner = max(1, int(3e-3 / max(perf_counter() - began, 1e-7)))
    best = np.inf
    for _ in range(repeats):
        began = perf_counter()
        for _ in range(inner):
            call(*arguments)
        best = min(best, (perf_counter() - began) / inner)
    return best


def random_problem(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, n)) / np.sqrt(n)
    return rows @ rows.T, rng.standard_normal(n)


def stack_problem(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return frictionless(stack(n // 4, None, np.random.default_rng(seed)))


def without_friction(name: str, make: Callable[..., tuple], sizes, problems: int, repeats: int):
    print(f"\n### Without friction, {name}\n")
    print("| n | pivots | Dantzig | elimination | LAPACK | Dantzig / elimination |")
    print("|---|---|---|---|---|---|")
    for n in sizes:
        rows = []
        for seed in range(problems):
            A, b = make(n, seed)
            arguments = (A, b, NOTHING, NOTHING, COLD, LONG)
            solved = solve_dantzig(*arguments)
            assert solved[3] == Code.SOLVED, (name, n, seed)
            assert solved[5] < 1e-8, (name, n, seed)
            regular = A + np.eye(n)
            times = (
                seconds(repeats, solve_dantzig, *arguments),
                seconds(repeats, eliminate, regular, b),
                seconds(repeats, np.linalg.solve, regular, b),
            )
            rows.append((solved[4], *times, times[0] / times[1]))
        pivots, ours, elimination, lapack, ratio = np.median(rows, axis=0)
        print(
            f"| {n} | {pivots:.0f} | {1e6 * ours:.1f} us | {1e6 * elimination:.1f} us "
            f"| {1e6 * lapack:.1f} us | {ratio:.2f} |"
        )


def with_friction(sizes, problems: int, repeats: int) -> None:
    print("\n### Static friction in 3D, stacks (first-order world)\n")
    print("| contacts | rows | solved | steps | driving | elimination of all rows | ratio |")
    print("|---|---|---|---|---|---|---|")
    for n in sizes:
        rows, passed = [], 0
        for seed in range(problems):
            problem = stack(n // 4, None, np.random.default_rng(seed)).problem()
            passed += Baraff().solve(problem).certificate.passed
            cones, _ = build_cones(problem.whitened, problem.arrays)
            units = len(cones.mu)
            start = np.empty(0), np.empty((0, 2))
            fixed = np.zeros(units, np.bool_), np.zeros((units, 2))
            arguments = (cones, *fixed, *start, LONG, 30, 6)
            A, b = random_problem(3 * n, seed)
            driving = seconds(repeats, solve_driving, *arguments)
            elimination = seconds(repeats, eliminate, A, b)
            steps = solve_driving(*arguments)[3]
            rows.append((steps, driving, elimination, driving / elimination))
        steps, driving, elimination, ratio = np.median(rows, axis=0)
        print(
            f"| {n} | {3 * n} | {passed}/{problems} | {steps:.0f} | {1e6 * driving:.0f} us "
            f"| {1e6 * elimination:.0f} us | {ratio:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer problems and repeats")
    quick = parser.parse_args().quick
    problems, repeats = (3, 2) if quick else (7, 5)
    print("## Baraff's timing claim: two to three Gaussian eliminations, n up to 150")
    without_friction("random rows", random_problem, SIZES, problems, repeats)
    without_friction("stacks", stack_problem, SIZES, problems, repeats)
    with_friction((4, 8, 16, 32), problems, repeats)


if __name__ == "__main__":
    main()
