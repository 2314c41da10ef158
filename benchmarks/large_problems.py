"""Large contact problems from arrays: heaps, a Kapla tower, granular matter to 7,000 contacts.

    python benchmarks/large_problems.py [--quick]

Heaps of boxes are those of `tests/data/clutter`, the others of `stiction/reproduce/heaps.py`. Each
is solved by `Coulomb()`, exact cone, from sparse arrays; the heaps and the tower from dense ones
too; what stands after twenty steps of granular matter from its contact-space matrix as well. A time
is the processor time of one solve, certificate included; "make" is that of making, and so checking,
the `ContactProblem`. Granular matter collapses for twenty steps, which are all solved: the median
and the longest. `--quick` leaves the largest out.
"""

# ruff: noqa: E402

from __future__ import annotations

import os

# Before numpy, which reads them when imported: threads would make times depend on the load.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_array, diags_array, vstack

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from clutter import FILES, read_clutter

from stiction.contact import ContactProblem, ContactSolution, Coulomb
from stiction.reproduce.heaps import Discs, kapla

HEAPS = ("box125_s0064_c0362_hard", "box125_s0114_c0490_hard")
TOWER = 36  # layers: 568 contacts
PILES = ((20, 18), (30, 34), (53, 50))  # columns and rows of discs
STEPS = 20

T = TypeVar("T")


def timed(run: Callable[[], T]) -> tuple[T, float]:
    """What `run` returns, and its processor time [s]."""
    began = thread_time()
    return run(), thread_time() - began


def sparse_arguments(problem: ContactProblem) -> dict[str, object]:
    """The arguments of a problem with dense arrays, its matrices sparse."""
    arrays: dict[str, object] = {**problem.arrays._asdict(), "dt": problem.dt}
    for name in ("mass", "normal", "tangent", "joint", "box"):
        matrix = getattr(problem.arrays, name)
        arrays[name] = csr_array(matrix.reshape(int(np.prod(matrix.shape[:-1])), problem.nv))
    return arrays


def line(name: str, form: str, make: float, solves: list[tuple[ContactSolution, float]]) -> str:
    """A row of the table."""
    seconds = [second for _, second in solves]
    solution = max((solution for solution, _ in solves), key=lambda s: s.certificate.worst)
    problem = solution.problem
    assert problem is not None
    factorizations = np.median([solution.pivots for solution, _ in solves])
    return (
        f"| {name} | {problem.nc} | {problem.nv} | {form} | {1e3 * make:.0f} | "
        f"{factorizations:.0f} | {np.median(seconds):.2f} | {max(seconds):.2f} | "
        f"{solution.certificate.worst:.0e} |"
    )


def granular(columns: int, rows: int) -> list[str]:
    """Steps of a pile of discs that collapses, and the last one in contact space."""
    discs, model = Discs(columns, rows), Coulomb()
    makes, solves = [], []
    for _ in range(STEPS):
        problem, make = timed(discs.problem)
        makes.append(make)
        solves.append(timed(lambda problem=problem: model.solve(problem)))
        discs.advance(solves[-1][0].velocity)
    name = f"{columns * rows} discs"
    whole = line(name, "sparse", float(np.median(makes)), solves)
    made, make = timed(lambda: in_contact_space(problem))
    return [whole, line(name, "sparse W", make, [timed(lambda: model.solve(made))])]


def in_contact_space(problem: ContactProblem) -> ContactProblem:
    """A planar problem with a diagonal mass by its Delassus matrix."""
    contact = np.arange(problem.nc)
    each = np.column_stack([contact, problem.nc + 2 * contact]).ravel()
    rows = csr_array(vstack([problem.normal, problem.tangent]))[each]
    W = rows @ diags_array(1.0 / problem.mass.diagonal()) @ rows.T
    options = {"friction": problem.friction, "bound": problem.bound, "dimension": 2}
    return ContactProblem.from_delassus(W, rows @ problem.free_velocity, **options)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave the largest out")
    quick = parser.parse_args().quick
    model = Coulomb()
    for example in (Discs(20, 20).problem(), ContactProblem(**kapla(12)).dense()):
        model.solve(example)  # compiles
    model.solve(in_contact_space(Discs(20, 20).problem()))
    print("| problem | contacts | nv | arrays | make, ms | factorizations | s | longest | worst |")
    print("|---|---|---|---|---|---|---|---|---|")
    posed: list[tuple[str, ContactProblem]] = [
        (f"heap {path.stem.split('_')[0]}", read_clutter(path)[0])
        for path in FILES
        if path.stem in HEAPS
    ]
    posed.append(("Kapla tower", ContactProblem(**kapla(TOWER)).dense()))
    for name, problem in posed:
        for form, given in (
            ("dense", {**problem.arrays._asdict(), "dt": problem.dt}),
            ("sparse", sparse_arguments(problem)),
        ):
            made, make = timed(lambda given=given: ContactProblem(**given))
            solves = [timed(lambda made=made: model.solve(made)) for _ in range(3)]
            print(line(name, form, make, solves), flush=True)
    for columns, rows in PILES[: 2 if quick else None]:
        print(*granular(columns, rows), sep="\n", flush=True)


if __name__ == "__main__":
    main()
