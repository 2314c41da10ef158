"""`stiction solve`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import tyro

if TYPE_CHECKING:
    from stiction.contact import ContactModel, ContactProblem

T = TypeVar("T")

HDF5 = (".hdf5", ".h5", ".hdf")
"""Endings of FCLIB's files."""
LCP = ("M", "q", "lo", "hi")
"""Arrays of a linear complementarity problem; the first two must be there."""
WIDE = 100_000
"""Columns of the table at most: a terminal may break a line, but no number is cut."""


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    file: str
    size: str
    solver: str
    status: str
    worst: float
    seconds: float


def command(
    files: Annotated[
        tuple[Path, ...],
        tyro.conf.arg(
            metavar="FILE ...",
            help="contact problems (.npz of ContactProblem.save, FCLIB's .hdf5) and LCPs (.npz "
            "with M and q)",
            help_behavior_hint="(required)",
        ),
    ],
    /,
    *,
    solver: Annotated[
        tuple[str, ...],
        tyro.conf.arg(
            metavar="NAME ...",
            help="each by itself; of contact problems: newton, reduced, structural, standard, "
            "search, interior-point, conic, driving, lagrangian, polygon; of LCPs: auto, lemke, "
            "lexicographic, search, dantzig, principal",
            help_behavior_hint="(default: Coulomb's ladder; auto)",
        ),
    ] = (),
    facets: Annotated[
        int | None,
        tyro.conf.arg(
            metavar="NUMBER",
            help="sides of the friction polygon",
            help_behavior_hint="(default: the circular cone)",
        ),
    ] = None,
) -> int:
    """Solve problems from files; print solver, status, worst violation and time of each."""
    from stiction.cli import DONE, FAILED
    from stiction.cli.progress import patience
    from stiction.errors import InvalidInput

    if not files:
        raise InvalidInput("files", "none is named")
    names = _check_solvers(solver, facets)
    lines: list[Line | None] = []  # None for what could not be read or was refused
    try:
        for path in files:
            with patience(f"solving {path.name}"):
                tasks = _attempt(path, partial(_plan, path, names, facets))
                if tasks is None:
                    lines.append(None)
                for task in tasks or ():
                    lines.append(_attempt(path, task))
    finally:  # stopped with Ctrl-C, what is done is shown
        _print([line for line in lines if line])
    return DONE if all(line and line.status == "solved" for line in lines) else FAILED


def _attempt(path: Path, task: Callable[[], T]) -> T | None:
    """What the task returns; where it raises, a line on standard error and None."""
    from stiction.errors import StictionError

    try:
        return task()
    except (StictionError, OSError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        said = " ".join(said.split())
        place = "" if str(path) in said else f"{path}: "
        print(f"stiction: {place}{said}", file=sys.stderr)
        return None


def _check_solvers(given: tuple[str, ...], facets: int | None) -> tuple[str, ...]:
    """The solvers as their tables name them; InvalidInput for one that is in none, or that has no
    place for the facets."""
    from stiction.contact import Coulomb
    from stiction.contact.models.single_solver import by_solver
    from stiction.contact.solvers.table import SOLVERS
    from stiction.errors import InvalidInput, unknown
    from stiction.lcp import METHODS

    if facets is not None:
        Coulomb(facets)  # refuses what is no polygon
    names = tuple(name.strip().lower().replace("-", " ") for name in given)
    for name in names:
        if name in SOLVERS:
            by_solver(name, facets)
        elif name not in METHODS:
            known = dict.fromkeys([*SOLVERS, *METHODS])
            raise InvalidInput("--solver", unknown(name, known))
    return names


def _plan(path: Path, names: tuple[str, ...], facets: int | None) -> list[Callable[[], Line]]:
    """Reads the file; returns a task for each line that it will have in the table."""
    from stiction import lcp
    from stiction.contact import ContactProblem, Coulomb, fclib
    from stiction.contact.models.single_solver import by_solver
    from stiction.contact.problem.files import read_npz
    from stiction.contact.solvers.table import SOLVERS

    if path.suffix.lower() in HDF5:
        problem = fclib.read(path)
    else:
        arrays = read_npz(path, "contact problem or LCP")
        if all(name in arrays for name in LCP[:2]):
            given = {name: arrays[name] for name in LCP if name in arrays}
            methods = _suitable(names, lcp.METHODS) if names else [""]
            return [partial(_solve_lcp, path, given, method) for method in methods]
        problem = ContactProblem.load(path)
    if not names:
        return [partial(_solve_contact, path, problem, Coulomb(facets), "")]
    return [
        partial(_solve_contact, path, problem, by_solver(name, facets), name)
        for name in _suitable(names, SOLVERS)
    ]


def _solve_contact(path: Path, problem: ContactProblem, model: ContactModel, name: str) -> Line:
    """Without a name the model is a ladder, and the rung that answered is told."""
    solution = _second(model.solve, problem)
    return Line(
        str(path),
        str(problem.nc),
        name or ", ".join([model.notation, *solution.rungs[-1:]]),
        str(solution.status),
        solution.certificate.worst,
        solution.seconds,
    )


def _solve_lcp(path: Path, arrays: dict[str, Any], method: str) -> Line:
    """Without a method the ladder, likewise."""
    from stiction import lcp

    result = _second(lcp.solve, method=method or "auto", **arrays)
    return Line(
        str(path),
        f"n = {len(result.z)}",
        method or f"auto, {result.method}",
        str(result.status),
        result.residual,
        result.seconds,
    )


def _suitable(names: tuple[str, ...], known: Any) -> list[str]:
    """Those of the solvers that there are for a kind of problem."""
    from stiction.errors import InvalidInput

    found = [name for name in names if name in known]
    if not found:
        raise InvalidInput("--solver", f"none of {', '.join(names)} is for such a problem")
    return found


def _second(solve: Callable[..., Any], *problem: Any, **options: Any) -> Any:
    """What the second solve returns: the first of a process loads compiled code. Each has a copy of
    the problem, as one keeps what was once derived from it."""
    solve(*map(copy, problem), **options)
    return solve(*map(copy, problem), **options)


def _print(lines: list[Line]) -> None:
    if not lines:
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("file", "contacts", "solver", "status", "worst", "time ms"):
        is_number = column in ("contacts", "worst", "time ms")
        table.add_column(column, justify="right" if is_number else "left", no_wrap=True)
    for line in lines:
        table.add_row(
            escape(line.file),
            line.size,
            line.solver,
            line.status,
            f"{line.worst:.1e}",
            _milliseconds(line.seconds),
        )
    Console(highlight=False, width=WIDE).print(table)


def _milliseconds(seconds: float) -> str:
    value = 1e3 * seconds
    return f"{value:.3g}" if value < 1e3 else f"{value:.0f}"
