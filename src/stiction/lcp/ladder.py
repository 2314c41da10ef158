"""The rungs that `solve` climbs: each method once for a named method, a ladder for "auto".

The ladder, climbed until a residual passes:

    dantzig        if M is symmetric with a nonnegative diagonal
    lemke          any matrix; contact problems end here
    principal      P-matrices on which Lemke's path is exponentially long
    lexicographic  degenerate problems
    search         problems on which rounding misleads the single path
    covering       lemke again, with other covering vectors
    regularized    M + eps I, eps from 1e-2 down to 1e-10; its active sets are tried on M itself
    feasibility    a linear program: if even z, w >= 0 is impossible, that is the answer
    enumeration    all complementary bases, for small n

A ray that proves infeasibility (Farkas: y >= 0, M'y <= 0, q'y < 0, checked on the data) ends
the climb.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from stiction.errors import InvalidInput
from stiction.lcp import drivers
from stiction.lcp.arguments import NONE, Array, Bounds, Mask
from stiction.lcp.bounded import to_standard
from stiction.lcp.dantzig import CLAMPED, HIGH
from stiction.status import Status
from stiction.tolerances import RESIDUAL

METHODS = ("auto", "lemke", "lexicographic", "search", "dantzig", "principal")

_STATUS = {int(status.code): status for status in Status}
NO_STATE = np.empty(0, np.int8)
NO_MASK = np.empty(0, np.bool_)

COVERS = 7
"""Other covering vectors that the ladder tries."""

ENUMERATED = 12
"""Largest order at which all 2^n bases are tried."""


class Options(NamedTuple):
    """What a rung needs beside the problem; see `solve`."""

    limit: int
    tie: float
    epsilon: float
    e_max: float
    cover: Array


class Answer:
    """A rung's outcome; the status is made from the residual, not from the kernel's word."""

    __slots__ = ("active", "dead_ends", "method", "pivots", "ray", "residual", "status", "w", "z")

    def __init__(
        self,
        method: str,
        z: Array,
        w: Array,
        active: Mask,
        code: int,
        pivots: int,
        residual: float,
        ray: Array | None = None,
        dead_ends: tuple[int, int, int] | None = None,
    ) -> None:
        self.method = method
        self.z = z
        self.w = w
        self.active = active
        self.pivots = pivots
        self.residual = residual
        self.ray = ray if ray is not None and len(ray) else None
        self.dead_ends = dead_ends
        if residual <= RESIDUAL:
            self.status = Status.SOLVED
        else:
            status = _STATUS[code]
            self.status = Status.ERROR if status is Status.SOLVED else status


def attempts(
    M: Array,
    q: Array,
    method: str,
    bounds: Bounds | None,
    warm: tuple[Mask, Mask] | None,
    options: Options,
    first: Answer | None = None,
) -> Iterator[Answer]:
    """The rungs of a method, each computed when asked for.

    warm: rows active and rows at their upper bound; first: the answer of `dantzig`, if known.
    """
    if method == "dantzig" or method == "auto":
        if first is not None or _suits_dantzig(M, method):
            answer = first or _dantzig(M, q, bounds, warm, options)
            if method == "auto" and bounds is None:
                _prove_infeasible(M, q, answer)
            yield answer
        if method == "dantzig":
            return
    if bounds is None:
        active = None if warm is None else warm[0]
        yield from _standard_attempts(M, q, method, active, options)
        return
    if len(options.cover):
        raise InvalidInput("cover", "is for problems without lo, hi and free")
    standard = to_standard(M, q, *bounds)
    active = None if warm is None else standard.start(*warm)
    for answer in _standard_attempts(standard.M, standard.q, method, active, options):
        z = np.clip(standard.recover(answer.z), *bounds)
        w, residual = drivers.residual_of(M, q, z, *bounds)
        inside = (z > bounds[0]) & (z < bounds[1])
        code = int(answer.status.code)
        yield Answer(answer.method, z, w, inside, code, answer.pivots, residual)


def _suits_dantzig(M: Array, method: str) -> bool:
    """Whether M is symmetric with a nonnegative diagonal; raises if `dantzig` was asked for."""
    i, j = drivers.is_symmetric(M)
    diagonal = M.diagonal()
    if i < 0 and diagonal.min(initial=0.0) >= 0.0:
        return True
    if method == "dantzig":
        k = int(diagonal.argmin())
        what = (
            f"entries [{i}, {j}] and [{j}, {i}] are {M[i, j]:g} and {M[j, i]:g}"
            if i >= 0
            else f"diagonal entry {k} is {diagonal[k]:g}"
        )
        raise InvalidInput(
            "M",
            f"{what}, but method 'dantzig' needs a symmetric positive semidefinite matrix: "
            "use 'lemke', 'lexicographic', 'search', 'principal' or 'auto'",
        )
    return False


def _standard_attempts(
    M: Array, q: Array, method: str, active: Mask | None, options: Options
) -> Iterator[Answer]:
    if method == "auto":
        yield from _climb(M, q, active, options)
    else:
        yield _pivot(M, q, method, active, options)


def _dantzig(
    M: Array,
    q: Array,
    bounds: Bounds | None,
    warm: tuple[Mask, Mask] | None,
    options: Options,
) -> Answer:
    state = NO_STATE
    if warm is not None:
        state = np.where(warm[0], CLAMPED, 0).astype(np.int8)
        state[warm[1]] = HIGH
    lo, hi = (NONE, NONE) if bounds is None else bounds
    z, w, state, code, pivots, residual, ray = drivers.solve_dantzig(
        M, q, lo, hi, state, options.limit
    )
    return Answer("dantzig", z, w, state == CLAMPED, code, pivots, residual, ray)


def _pivot(
    M: Array, q: Array, method: str, active: Mask | None, options: Options, turn: int = 0
) -> Answer:
    """One of the methods that take any matrix."""
    if active is None:
        active = NO_MASK
    cover, limit = options.cover, options.limit
    if method == "search":
        z, w, active, code, pivots, residual, counts = drivers.solve_search(
            M, q, active, cover, turn, options.epsilon, options.e_max, limit
        )
        dead_ends = (int(counts[0]), int(counts[1]), int(counts[2]))
        return Answer(method, z, w, active, code, pivots, residual, None, dead_ends)
    if method == "principal":
        return Answer(method, *drivers.solve_principal(M, q, active, limit))
    lexicographic = method == "lexicographic"
    return Answer(
        method,
        *drivers.solve_lemke(M, q, active, cover, turn, lexicographic, options.tie, limit),
    )


def _climb(M: Array, q: Array, active: Mask | None, options: Options) -> Iterator[Answer]:
    """The ladder after `dantzig`, on a standard problem."""
    for method in ("lemke", "principal", "lexicographic", "search"):
        answer = _pivot(M, q, method, active, options)
        _prove_infeasible(M, q, answer)
        yield answer
    for turn in range(1, COVERS + 1):
        answer = _pivot(M, q, "lemke", None, options, turn)
        answer.method = "covering"
        yield answer
    yield _regularized(M, q, options)
    program = linprog(np.zeros(len(q)), A_ub=-M, b_ub=q, bounds=(0, None), method="highs")
    if program.status == 2:
        answer.method, answer.status = "feasibility", Status.INFEASIBLE
        yield answer
    elif len(q) <= ENUMERATED:
        yield _enumerated(M, q)


def _regularized(M: Array, q: Array, options: Options) -> Answer:
    """Follows the solution of M + eps I as eps vanishes, and tries each active set on M."""
    size = np.sqrt(np.abs(M).max(axis=1) * np.abs(M).max(axis=0))
    shift = np.diag(np.where(size > 0.0, size, 1.0))
    active = None
    pivots = 0
    for exponent in range(2, 11):
        answer = _pivot(M + 10.0**-exponent * shift, q, "lemke", active, options)
        pivots += answer.pivots
        active = answer.active
        answer = _pivot(M, q, "lemke", active, options)
        pivots += answer.pivots
        if answer.status is Status.SOLVED:
            break
    answer.method, answer.pivots = "regularized", pivots
    return answer


def _enumerated(M: Array, q: Array) -> Answer:
    """Tries every complementary basis, and a linear program where a basis is singular."""
    n = len(q)
    z, active, found, singular = drivers.enumerate_bases(M, q)
    if not found and singular:
        for mask in range(1 << n):
            active = (mask >> np.arange(n) & 1).astype(bool)
            cone = linprog(
                np.ones(n),
                A_ub=-M[~active] if not active.all() else None,
                b_ub=q[~active] if not active.all() else None,
                A_eq=M[active] if active.any() else None,
                b_eq=-q[active] if active.any() else None,
                bounds=[(0, None) if a else (0, 0) for a in active],
                method="highs",
            )
            if cone.x is not None:
                z = np.maximum(cone.x, 0.0)
                break
    w, residual = drivers.residual_of(M, q, z, np.zeros(n), np.full(n, np.inf))
    return Answer("enumeration", z, w, active, int(Status.INFEASIBLE.code), 0, residual)


def _prove_infeasible(M: Array, q: Array, answer: Answer) -> None:
    """Turns RAY into INFEASIBLE where the ray is a Farkas certificate, checked on the data:
    y >= 0, M'y <= 0, q'y < 0 leave no z >= 0 with M z + q >= 0."""
    if answer.status is not Status.RAY or answer.ray is None:
        return
    y = np.maximum(answer.ray[:-1], 0.0)
    rise = M.T @ y
    room = np.abs(M.T) @ y
    fall = float(q @ y)
    if np.all(rise <= 1e-10 * room) and fall < -1e-10 * float(np.abs(q) @ y):
        answer.status = Status.INFEASIBLE
