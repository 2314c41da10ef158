"""The rungs that `solve` climbs: each method once for a named method, a ladder for "auto".

The ladder, climbed until a residual passes:

    dantzig        if M is symmetric with a nonnegative diagonal
    lemke          any matrix; contact problems end here
    principal      P-matrices on which Lemke's path is exponentially long
    lexicographic  degenerate problems
    search         problems on which rounding misleads the single path
    covering       lemke again, with other covering vectors
    regularized    M + eps I, eps from 1e-2 down to 1e-10; its active sets are tried on M itself
    feasibility    a linear program: if even z, w >= 0 is impossible, that is the answer; after
                   the first ray, or here; a rung only where it proves that
    enumeration    all complementary bases, for small n

A ray that proves infeasibility (Farkas: y >= 0, M'y <= 0, q'y < 0, checked on the data) ends
the climb. From `principal` on the rungs see the problem in units that do not depend on those it
came in (`farkas.balance`), q's included: what fails for its units alone is solved there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stiction.errors import InvalidInput
from stiction.lcp import drivers, farkas
from stiction.lcp.arguments import NONE, Array, Bounds, Mask
from stiction.lcp.bounded import Standard, to_standard
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

    __slots__ = (
        "active",
        "dead_ends",
        "method",
        "pivots",
        "proof",
        "ray",
        "residual",
        "status",
        "w",
        "z",
    )

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
        proof: Array | None = None,
    ) -> None:
        self.method = method
        self.z = z
        self.w = w
        self.active = active
        self.pivots = pivots
        self.residual = residual
        self.ray = ray if ray is not None and len(ray) else None
        self.dead_ends = dead_ends
        self.proof = proof
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
    standard = None
    inner_M, inner_q = M, q
    active = None if warm is None else warm[0]
    if bounds is not None:
        if len(options.cover):
            raise InvalidInput("cover", "is for problems without lo, hi and free")
        standard = to_standard(M, q, *bounds)
        inner_M, inner_q = standard.M, standard.q
        active = None if warm is None else standard.start(*warm)
    if method != "auto":
        answer = _pivot(inner_M, inner_q, method, active, options)
        yield _restore(M, q, bounds, standard, answer)
        return
    asked = False
    for answer in _climb(inner_M, inner_q, active, options):
        if standard is None:
            _prove_infeasible(M, q, answer)
        answer = _restore(M, q, bounds, standard, answer)
        yield answer
        if answer.status is Status.RAY and not asked:
            asked = True  # where the rest of the climb would be in vain, this tells
            yield from _feasibility(M, q, bounds, answer)
    if not asked:
        yield from _feasibility(M, q, bounds, answer)
    if 0 < len(inner_q) <= ENUMERATED:
        yield _restore(M, q, bounds, standard, _enumerated(inner_M, inner_q))


def _feasibility(M: Array, q: Array, bounds: Bounds | None, last: Answer) -> Iterator[Answer]:
    """The last answer with a proof that there is none better, if there is a proof."""
    lo, hi = (np.zeros(len(q)), np.full(len(q), np.inf)) if bounds is None else bounds
    proof = farkas.prove_complementarity(M, q, lo, hi)
    if proof is not None:
        code = int(Status.INFEASIBLE.code)
        yield Answer(
            "feasibility", last.z, last.w, last.active, code, 0, last.residual, proof=proof
        )


def _restore(
    M: Array, q: Array, bounds: Bounds | None, standard: Standard | None, answer: Answer
) -> Answer:
    """An answer of the standard problem as one of the problem that was asked, graded on that."""
    if bounds is None or standard is None:
        return answer
    z = np.clip(standard.recover(answer.z), *bounds)
    w, residual = drivers.residual_of(M, q, z, *bounds)
    inside = (z > bounds[0]) & (z < bounds[1])
    return Answer(answer.method, z, w, inside, int(answer.status.code), answer.pivots, residual)


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
    """The pivoting rungs after `dantzig`, on a standard problem."""
    yield _pivot(M, q, "lemke", active, options)
    if not len(q):  # every row was free, and is eliminated
        return
    rows, cols = farkas.balance(np.column_stack([M, q]))
    even, target = rows[:, None] * M * cols[:-1], rows * q * cols[-1]
    if len(options.cover):
        options = options._replace(cover=options.cover * rows)
    for answer in _balanced_rungs(even, target, active, options):
        # Powers of two: residuals, which have no units, stay as they are to the bit.
        answer.z = answer.z * cols[:-1] / cols[-1]
        answer.w = answer.w / (rows * cols[-1])
        if answer.ray is not None:
            answer.ray = answer.ray * np.append(cols[:-1], 1.0)
        yield answer


def _balanced_rungs(M: Array, q: Array, active: Mask | None, options: Options) -> Iterator[Answer]:
    """The rungs from `principal` to `regularized`."""
    for method in ("principal", "lexicographic", "search"):
        yield _pivot(M, q, method, active, options)
    for turn in range(1, COVERS + 1):
        answer = _pivot(M, q, "lemke", None, options, turn)
        answer.method = "covering"
        yield answer
    yield _regularized(M, q, options)


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
    """Tries every complementary basis, and a linear program where a basis is singular. That none
    is found proves nothing of the inequalities, and says so (ERROR)."""
    n = len(q)
    rows, cols = farkas.balance(np.column_stack([M, q]))
    even, target = rows[:, None] * M * cols[:-1], rows * q * cols[-1]
    z, active, found, singular = drivers.enumerate_bases(even, target)
    if not found and singular:
        for mask in range(1 << n):
            active = (mask >> np.arange(n) & 1).astype(bool)
            cone = farkas.linear_program(
                np.ones(n),
                A_ub=-even[~active] if not active.all() else None,
                b_ub=target[~active] if not active.all() else None,
                A_eq=even[active] if active.any() else None,
                b_eq=-target[active] if active.any() else None,
                bounds=[(0, None) if a else (0, 0) for a in active],
            )
            if cone.x is not None:
                z = np.maximum(cone.x, 0.0)
                break
    z = z * cols[:-1] / cols[-1]
    w, residual = drivers.residual_of(M, q, z, np.zeros(n), np.full(n, np.inf))
    return Answer("enumeration", z, w, active, int(Status.ERROR.code), 0, residual)


def _prove_infeasible(M: Array, q: Array, answer: Answer) -> None:
    """Turns RAY into INFEASIBLE where the ray is a Farkas certificate, checked on the data:
    y >= 0, M'y <= 0, q'y < 0 leave no z >= 0 with M z + q >= 0."""
    if answer.status is not Status.RAY or answer.ray is None:
        return
    lo, hi = np.zeros(len(q)), np.full(len(q), np.inf)
    answer.proof = farkas.prove_complementarity(M, q, lo, hi, answer.ray[:-1])
    if answer.proof is not None:
        answer.status = Status.INFEASIBLE
