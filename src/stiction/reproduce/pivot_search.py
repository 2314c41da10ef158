"""Yamane and Nakamura's pivot search as the paper prints it, on the textbook's dense tableau.

`stiction.lcp`'s search departs from the paper (`lcp/search.py` tells where). This one does not
(their Algorithms 1 and 2, section IV-C):

- a row whose pivot leaves no basic value below -epsilon is kept, epsilon in the problem's own units
  [N, m/s]; a violation below it is none, so that z0 leaves as soon as it is that small;
- a node costs what its line costs, exp(-q_min) for each pivot: about one, so that the answer is a
  shortest sequence of pivots, and all shorter lines are looked at before it;
- the frictionless problem comes first. The one with friction begins with its active contacts
  constrained and all others unconstrained: these are left out, and the whole is searched only
  where the answer would let one of them close.

`pivots` are those of the sequence that was found, `computed` those of all nodes that were looked
at.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction import lcp
from stiction.reproduce import textbook
from stiction.status import Status

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

EPSILON = 1e-3
"""Theirs [N, m/s]."""

NODES = 5000
"""Looked at before the search is given up."""


class Found(NamedTuple):
    """What a search came to."""

    z: Array
    status: Status
    pivots: int
    computed: int


class _Node(NamedTuple):
    """A pivot after its parent's; ordered by the cost of its line, of equal ones the newest."""

    cost: float
    age: int
    depth: int
    tableau: Array  # before the pivot
    basis: Indices
    row: int
    entering: int


def search_contacts(matrix: Array, free: Array, kept: Indices, facets: int) -> Found:
    """Of a contact LCP of normals, friction contact by contact, and sliding speeds. kept: the
    contacts that press without friction, `pressing`."""
    contacts = len(free) // (facets + 2)
    part = rows_of(kept, contacts, facets)
    start = np.arange(len(part)) < len(kept)
    found = search(matrix[np.ix_(part, part)], free[part], start)
    z = widened(found.z, kept, matrix, free, contacts, facets)
    closes = bool((matrix[:contacts] @ z + free[:contacts] < -EPSILON).any())
    if found.status is Status.SOLVED and not closes:
        return found._replace(z=z)
    start = np.zeros(len(free), np.bool_)
    start[kept] = True
    whole = search(matrix, free, start)
    return whole._replace(
        pivots=found.pivots + whole.pivots, computed=found.computed + whole.computed
    )


def pressing(matrix: Array, free: Array, facets: int) -> Indices:
    """Active contacts of the frictionless problem."""
    contacts = len(free) // (facets + 2)
    return np.flatnonzero(lcp.solve(matrix[:contacts, :contacts], free[:contacts]).active)


def rows_of(kept: Indices, contacts: int, facets: int) -> Indices:
    """Rows that these contacts have in the LCP of all."""
    friction = contacts + facets * kept[:, None] + np.arange(facets)
    return np.concatenate([kept, friction.ravel(), contacts * (facets + 1) + kept])


def widened(
    answer: Array, kept: Indices, matrix: Array, free: Array, contacts: int, facets: int
) -> Array:
    """The answer for some contacts as one for all: what is left out bears nothing, and slides at
    the speed at which it moves."""
    z = np.zeros(len(free))
    z[rows_of(kept, contacts, facets)] = answer
    moving = slice(contacts, contacts * (facets + 1))
    speed = -(matrix[moving] @ z + free[moving]).reshape(contacts, facets).min(axis=1)
    out = np.setdiff1d(np.arange(contacts), kept)
    z[contacts * (facets + 1) + out] = np.maximum(speed[out], 0.0)
    return z


def search(M: Array, q: Array, start: NDArray[np.bool_]) -> Found:  # noqa: N803
    """Begins with the basis in which z_i is basic where `start` (n,) says so."""
    n = len(q)
    tableau, basis = textbook.tableau_of(M, q), np.arange(n)
    for i in np.flatnonzero(start):
        if abs(tableau[i, n + i]) > textbook.NEGLIGIBLE:
            textbook.exchange(tableau, int(i), n + int(i))
            basis[i] = n + i
    # In the basis of the start z0 covers every row alike.
    columns = np.concatenate([np.eye(n), -M], axis=1)
    cover = columns[:, basis].sum(axis=1)
    tableau[:, 2 * n] = -1.0
    worst = int(np.argmin(tableau[:, -1]))
    if tableau[worst, -1] >= -EPSILON:
        return Found(_values(tableau[:, -1], basis)[n : 2 * n], Status.SOLVED, 0, 0)
    queue = [_Node(0.0, 0, 1, tableau, basis, worst, 2 * n)]
    seen: set[bytes] = set()
    dead, age = Status.RAY, 0
    for computed in range(1, NODES + 1):
        if not queue:
            return Found(np.zeros(n), dead, 0, computed - 1)
        node = heappop(queue)
        tableau, basis = node.tableau.copy(), node.basis.copy()
        leaving = int(basis[node.row])
        textbook.exchange(tableau, node.row, node.entering)
        basis[node.row] = node.entering
        if leaving == 2 * n:
            z = _values(tableau[:, -1], basis)[n : 2 * n]
            return Found(z, Status.SOLVED, node.depth, computed)
        entering = leaving + n if leaving < n else leaving - n
        for row, after, least in _candidates(tableau, entering):
            following = basis.copy()
            following[row] = entering
            key = np.sort(following).tobytes()
            if key in seen:
                dead = Status.CYCLE
                continue
            seen.add(key)
            value = _values(after, following)
            error = value[:n] - M @ value[n : 2 * n] - value[2 * n] * cover - q
            if float(np.linalg.norm(error)) > textbook.E_MAX:
                dead = Status.ERROR
                continue
            age -= 1
            cost = node.cost + float(np.exp(-least))
            heappush(queue, _Node(cost, age, node.depth + 1, tableau, basis, row, entering))
    return Found(np.zeros(n), Status.NODE_LIMIT, 0, NODES)


def _candidates(tableau: Array, entering: int) -> list[tuple[int, Array, float]]:
    """Rows that may leave: the basic values after each one's pivot, and the least of them."""
    column, value = tableau[:, entering], tableau[:, -1]
    rows = np.flatnonzero(column > 0.0)
    with np.errstate(all="ignore"):
        step = value[rows] / column[rows]
        after = value - step[:, None] * column
    after[np.arange(len(rows)), rows] = step
    least = after.min(axis=1, initial=np.inf)
    return [(int(rows[k]), after[k], float(least[k])) for k in np.flatnonzero(least > -EPSILON)]


def _values(basic: Array, basis: Indices) -> Array:
    """(2 n + 1,) w, z and z0."""
    out = np.zeros(2 * len(basis) + 1)
    out[basis] = basic
    return out
