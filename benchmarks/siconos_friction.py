"""The friction problems of the Siconos collection, exact cone: `Coulomb`, and its last rung alone.

    python benchmarks/siconos_friction.py [--clarabel] [--repeats N]

The problems are those of `tests/data/siconos/friction`. A time is the wall time of one solve,
certificate included, with the problem's own factorization done before; the median of the repeats.
First the model as users call it, with the rung that answered; then the conic rung alone, on the
whole problem, with the steps of its path and of Newton's method together.

`--clarabel` adds the known alternative: Clarabel on the convex program that De Saxce's change of
variable leaves when mu |u_t| is held fixed, in a fixed point on it with Anderson's acceleration, at
most 60 programs; then the same Newton steps on the modes. It takes minutes.
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
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from siconos import FRICTION_FILES, read_friction

from stiction.contact import ContactProblem, Coulomb
from stiction.contact.certificate.certificate import certify
from stiction.contact.problem.scaled import ScaledProblem
from stiction.contact.solvers.attempt import Options
from stiction.contact.solvers.conic.solve import Best, Blocked
from stiction.contact.solvers.table import SOLVERS

PROGRAMS = 60  # convex programs in the fixed point, at most
MEMORY = 6  # of Anderson's acceleration

T = TypeVar("T")


def load(path: Path) -> ContactProblem:
    """The problem in `path`, factorized."""
    data = read_friction(path)
    problem = ContactProblem.from_delassus(
        data.W, data.q, friction=data.mu, dimension=data.dimension
    )
    _ = problem.whitened, problem.scales
    return problem


def ours(problem: ContactProblem) -> tuple[int, float]:
    """Steps and the worst entry of the certificate."""
    scaled = ScaledProblem(problem)
    attempt = SOLVERS["conic"](scaled, None, Options())
    impulses = scaled.unscale(attempt.impulses)
    return attempt.steps, certify(problem, problem.velocity_from(*impulses), *impulses).worst


def fixed_point(problem: ContactProblem) -> tuple[int, float]:
    """Convex programs solved and the worst entry of the certificate, by Clarabel."""
    import clarabel
    from scipy import sparse

    blocked = Blocked(ScaledProblem(problem))
    best, blocks = Best(blocked), blocked.blocks
    m, _, r = blocks.rows.shape
    size = np.ones((m, 3))
    size[:, 0] = 1.0 / blocks.steep
    size[:, 1:] = np.where(blocks.mu > 0.0, blocks.mu, 1.0)[:, None]
    rows, free = (size[:, :, None] * blocks.rows).reshape(3 * m, r), size * blocks.free
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    slip, history = np.zeros(m), []
    while len(history) < PROGRAMS:
        right = free.copy()
        right[:, 0] += slip
        found = clarabel.DefaultSolver(
            sparse.identity(r, format="csc"), np.zeros(r), sparse.csc_matrix(-rows),
            right.ravel(), [clarabel.SecondOrderConeT(3)] * m, settings,
        ).solve()  # fmt: skip
        f = np.array(found.z).reshape(m, 3) * size
        f[:, 0] *= blocks.steep
        velocity = (rows @ np.array(found.x)).reshape(m, 3) + free
        history.append((slip, np.hypot(velocity[:, 1], velocity[:, 2])))
        if best.take(f) or np.abs(history[-1][1] - slip).max() < 1e-11:
            break
        slip = accelerated(history[-MEMORY:])
    best.improve(f)
    return len(history), best.certificate.worst


def accelerated(history: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Anderson's next argument from pairs of arguments and values, not negative."""
    value = np.array([after for _, after in history]).T
    change = value - np.array([before for before, _ in history]).T
    if len(history) == 1:
        return value[:, 0]
    mix = np.linalg.lstsq(np.diff(change, axis=1), change[:, -1], rcond=1e-10)[0]
    return np.maximum(value[:, -1] - np.diff(value, axis=1) @ mix, 0.0)


def timed(solve: Callable[[], T], repeats: int) -> tuple[T, str]:
    """What `solve` returns, and its median time [ms] as text."""
    times = []
    for _ in range(repeats):
        began = perf_counter()
        answer = solve()
        times.append(1e3 * (perf_counter() - began))
    return answer, f"{np.median(times):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--clarabel", action="store_true", help="the fixed point beside it")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    for path in FRICTION_FILES:  # compile what any rung needs
        problem = load(path)
        if problem.nc < 50:
            ours(problem), Coulomb().solve(problem)

    titles = ["problem", "contacts", "Coulomb by", "ms", "worst", "conic steps", "ms", "worst"]
    if options.clarabel:
        titles += ["convex programs", "ms", "worst"]
    print("| " + " | ".join(titles) + " |")
    print("|" + "---|" * len(titles))
    for path in FRICTION_FILES:
        problem = load(path)
        solution, spent = timed(partial(Coulomb().solve, problem), options.repeats)
        cells = [path.stem, problem.nc, solution.rungs[-1], spent]
        cells.append(f"{solution.certificate.worst:.1e}")
        (steps, worst), spent = timed(partial(ours, problem), options.repeats)
        cells += [steps, spent, f"{worst:.1e}"]
        if options.clarabel:
            (programs, worst), spent = timed(partial(fixed_point, problem), 1)
            cells += [programs, spent, f"{worst:.1e}"]
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
