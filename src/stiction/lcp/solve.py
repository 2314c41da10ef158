"""`solve`: the one door to all methods. It validates, has the rungs tried, and reports."""

from __future__ import annotations

import difflib
from time import perf_counter

from numpy.typing import ArrayLike

from stiction.errors import InvalidInput
from stiction.lcp import drivers
from stiction.lcp.arguments import (
    as_bounds,
    as_count,
    as_cover,
    as_floats,
    as_number,
    as_start,
    require_finite,
)
from stiction.lcp.ladder import METHODS, NO_MASK, Answer, Options, attempts
from stiction.lcp.result import Result, Rung
from stiction.status import Status

TIE = 1e-10
"""Default of `tie` (Yamane's Delta), relative to the scaled problem."""

EPSILON = 1e-10
"""Default of `epsilon`: how far below zero the search lets a basic variable fall."""

E_MAX = 1e-8
"""Default of `e_max`: violation of the equations at which the search drops a node."""


def solve(
    M: ArrayLike,
    q: ArrayLike,
    method: str = "auto",
    *,
    lo: ArrayLike | None = None,
    hi: ArrayLike | None = None,
    free: ArrayLike | None = None,
    start: ArrayLike | Result | None = None,
    max_pivots: int | None = None,
    tie: float = TIE,
    epsilon: float = EPSILON,
    e_max: float = E_MAX,
    cover: ArrayLike | None = None,
) -> Result:
    """Solves w = M z + q, 0 <= z, 0 <= w, z'w = 0; or its mixed and bounded forms.

    M: (n, n); q: (n,). Units do not matter: rows and columns are scaled first.
    lo, hi: (n,) or scalars, -inf and inf allowed: lo <= z <= hi, w >= 0 where z = lo, w <= 0
        where z = hi, w = 0 between. Default 0 and inf.
    free: indices or mask (n,) of rows with unbounded z and w = 0.
    start: warm start, an active set (indices or mask) or an earlier `Result`.
    max_pivots: limit per rung (for `search`: on nodes); default 20 n + 100.
    tie: Yamane's Delta for `lexicographic`; epsilon, e_max: his thresholds for `search`; all
        relative to the scaled problem.
    cover: (n,) > 0, the covering vector of `lemke`, `lexicographic`, `search`.

    Raises InvalidInput for malformed input; a solve that fails returns its status instead.
    """
    began = perf_counter()
    if not isinstance(method, str) or method not in METHODS:
        near = difflib.get_close_matches(str(method), METHODS, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise InvalidInput("method", f"unknown: {method!r}{hint}; one of {', '.join(METHODS)}")
    M = as_floats("M", M, 2)
    q = as_floats("q", q, 1)
    n = len(q)
    if M.shape != (n, n):
        raise InvalidInput("M", f"must be ({n}, {n}), as q has {n} entries", M.shape)
    limit = 20 * n + 100 if max_pivots is None else as_count("max_pivots", max_pivots)
    tie, epsilon = as_number("tie", tie), as_number("epsilon", epsilon)
    e_max = as_number("e_max", e_max)
    covering = as_cover(cover, n)
    plain = lo is None and hi is None and free is None
    symmetric = None
    if plain and start is None and (method == "auto" or method == "dantzig"):
        z, w, active, code, pivots, residual, ray = drivers.solve_if_symmetric(M, q, limit)
        if code >= 0:
            answer = Answer("dantzig", z, w, active, code, pivots, residual, ray)
            if answer.status is Status.SOLVED or method == "dantzig":
                return _report([answer], began)
            symmetric = answer
    elif plain and start is None and (method == "lemke" or method == "lexicographic"):
        found = drivers.solve_lemke(
            M, q, NO_MASK, covering, 0, method == "lexicographic", tie, limit
        )
        if found[3] >= 0:
            return _report([Answer(method, *found)], began)
    require_finite("M", M)
    require_finite("q", q)
    bounds = None if plain else as_bounds(lo, hi, free, n)
    warm = None if start is None else as_start(start, bounds, n)
    options = Options(limit, tie, epsilon, e_max, covering)
    tried: list[Answer] = []
    for answer in attempts(M, q, method, bounds, warm, options, symmetric):
        tried.append(answer)
        if answer.status in (Status.SOLVED, Status.INFEASIBLE):
            break
    status = tried[-1].status
    if method == "auto" and status not in (Status.SOLVED, Status.INFEASIBLE):
        # How the last rung stopped is an accident of its path; `rungs` has it.
        limited = max_pivots is not None and status in (Status.PIVOT_LIMIT, Status.NODE_LIMIT)
        status = status if limited else Status.ERROR
    return _report(tried, began, status)


def _report(tried: list[Answer], began: float, status: Status | None = None) -> Result:
    """The last answer as a result, with all rungs; `status` where it is not that answer's own."""
    last = tried[-1]
    return Result(
        last.z,
        last.w,
        status or last.status,
        last.active,
        sum([a.pivots for a in tried]),
        last.residual,
        tuple([Rung(a.method, a.status, a.pivots, a.residual) for a in tried]),
        perf_counter() - began,
        last.ray,
        last.dead_ends,
        last.proof,
    )
