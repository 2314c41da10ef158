"""The LCP of a humanoid's frame: which contacts it has, and the methods that solve it.

As in Yamane and Nakamura's IV-C it has the corners of each foot's contact area alone: points
within DELTA of another one, and those inside of the area, are left out. Unknowns are in newtons,
and an answer counts as theirs do, by errors up to e_max [N, m/s].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction import lcp
from stiction.reproduce import textbook
from stiction.reproduce.pivot_search import rows_of, search_contacts, widened
from stiction.reproduce.result import clock
from stiction.status import Status

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

FACETS = 8
DELTA = 1e-3  # m, theirs


class Outcome(NamedTuple):
    """What a method made of an LCP."""

    z: Array
    status: Status
    pivots: int
    """Of the sequence that led to the answer."""
    computed: int
    """All of them."""
    seconds: float
    """Of the solver, what assembles and checks not counted [s]."""


Method = Callable[[Array, Array, Indices], Outcome]
"""From M, q and the contacts that press without friction."""


def plain_method(matrix: Array, free: Array, active: Indices) -> Outcome:
    """Lemke's method by the textbook."""
    began = clock()
    z, status, pivots = textbook.lemke(matrix, free)
    return Outcome(z, status, pivots, pivots, clock() - began)


def lexicographic_method(delta: float) -> Method:
    """The lexicographic one with a threshold."""

    def method(matrix: Array, free: Array, active: Indices) -> Outcome:
        began = clock()
        z, status, pivots = textbook.lemke(matrix, free, delta)
        return Outcome(z, status, pivots, pivots, clock() - began)

    return method


def on_active(method: Method) -> Method:
    """Another method on the contacts alone that press without friction."""

    def narrowed(matrix: Array, free: Array, active: Indices) -> Outcome:
        contacts = len(free) // (FACETS + 2)
        part = rows_of(active, contacts, FACETS)
        found = method(matrix[np.ix_(part, part)], free[part], np.arange(len(active)))
        return found._replace(z=widened(found.z, active, matrix, free, contacts, FACETS))

    return narrowed


def library_method(name: str) -> Method:
    """A method of `stiction.lcp`, with all that it adds to the textbook."""

    def method(matrix: Array, free: Array, active: Indices) -> Outcome:
        began = clock()
        result = lcp.solve(matrix, free, name)
        return _judged(matrix, free, result, clock() - began)

    return method


def paper_search(matrix: Array, free: Array, active: Indices) -> Outcome:
    """The search as the paper prints it."""
    began = clock()
    found = search_contacts(matrix, free, active, FACETS)
    return Outcome(*found, clock() - began)


def search_method(matrix: Array, free: Array, active: Indices) -> Outcome:
    """`stiction.lcp`'s search, from the contacts that press without friction (their IV-C): these
    alone, all of them where that does not do."""
    contacts = len(free) // (FACETS + 2)
    part = rows_of(active, contacts, FACETS)
    start = np.arange(len(part)) < len(active)
    few, free_few = matrix[np.ix_(part, part)], free[part]
    began = clock()
    result = lcp.solve(few, free_few, "search", start=start)
    seconds = clock() - began
    z = widened(result.z, active, matrix, free, contacts, FACETS)
    if _error(matrix, free, z) <= textbook.E_MAX:
        return Outcome(z, Status.SOLVED, result.pivots, result.pivots, seconds)
    began = clock()
    again = lcp.solve(matrix, free, "search")
    seconds += clock() - began
    pivots = result.pivots + again.pivots
    return _judged(matrix, free, again, seconds)._replace(pivots=pivots, computed=pivots)


def _judged(matrix: Array, free: Array, result: lcp.Result, seconds: float) -> Outcome:
    """The library's own bound on an error is relative, and far below the paper's."""
    good = _error(matrix, free, result.z) <= textbook.E_MAX
    status = Status.SOLVED if good else result.status
    return Outcome(result.z, status, result.pivots, result.pivots, seconds)


def _error(matrix: Array, free: Array, z: Array) -> float:
    """Largest violation of the LCP [N, m/s]."""
    if not np.isfinite(z).all():
        return np.inf
    return float(np.abs(np.minimum(z, matrix @ z + free)).max(initial=0.0))


def corners(model: mujoco.MjModel, data: mujoco.MjData) -> Indices:
    """Which contacts are left of each foot's (their IV-C): corners of their area."""
    contact = data.contact
    body = model.geom_bodyid[contact.geom].max(axis=1)
    kept: list[int] = []
    for one in np.unique(body):
        points = np.flatnonzero(body == one)
        kept.extend(points[_hull(contact.pos[points, :2])])
    return np.array(sorted(kept), np.intp)


def _hull(points: Array) -> list[int]:
    """Corners of the convex hull, those left out that are within DELTA of another one, or of the
    line between their neighbours."""
    distinct: list[int] = []
    for k in np.lexsort(points.T[::-1]):
        if all(np.hypot(*(points[k] - points[j])) > DELTA for j in distinct):
            distinct.append(int(k))
    if len(distinct) < 3:
        return distinct

    def chain(order: list[int]) -> list[int]:
        out: list[int] = []
        for k in order:
            while len(out) >= 2 and _left_of(points[out[-2]], points[out[-1]], points[k]) <= DELTA:
                out.pop()
            out.append(k)
        return out

    return chain(distinct)[:-1] + chain(distinct[::-1])[:-1]


def _left_of(a: Array, b: Array, c: Array) -> float:
    """How far b lies to the right of the way from a to c [m]."""
    along, across = c - a, b - a
    length = max(float(np.hypot(*along)), DELTA)
    return float(along[1] * across[0] - along[0] * across[1]) / length
