"""Sweeps of Gauss and Seidel over the contacts of an island: what is done when time runs out.

A path that is cut short is nowhere near an answer: its impulses lie in the middle of their cones,
and bodies would be driven apart. Sweeps begin with what is at hand, impulses of the last step or a
better iterate, and mend one block at a time with all others as they are. With a a row, x = M^-1 a'
and w = a x:

    normal     f := max(0, f - u / w)
    friction   f_t := f_t - u_t / (max(w_1, w_2) + |a_1 x_2|), taken into its disc, mu f_n
    interval   f := f - u / w, taken between its limits;  held   f := f - u / w
    linear     f := f - (u + f / drag) / (w + 1 / drag)

and v := v + x df after each. What each keeps true: the momentum balance, and every impulse in its
cone. A sweep costs a twentieth of an iteration of the path, and converges slowly: a load passes
from one body to the next. It is no way to an exact answer, and its residual says how far it came.

How it fails: it ends at its limit, or at its time.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind, is_gripped
from stiction.contact.problem.graph import Graph, Piece
from stiction.contact.solvers.blocks.iterate import copy_island, copy_vector
from stiction.contact.solvers.blocks.system import fill_mass, speeds, unbalanced
from stiction.contact.solvers.blocks.workspace import (
    NewtonWorkspace,
    Setting,
    System,
    unpack_newton,
    unpack_problem,
)
from stiction.contact.solvers.coulomb.newton import project_polygon
from stiction.contact.solvers.proximal.laws import enter_cones, residual_of
from stiction.kernels.block import divide_vector, factor_symmetric_block
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix
from stiction.kernels.stage import stage

LEAST_SWEEPS, MOST_SWEEPS = 2, 40
"""Sweeps however late it is, and at most."""


@lean
def _factor_mass(b: Blocks, g: Graph, s: BlockMatrix, k):
    """The matrix' diagonal := the factored mass of island k's nodes; whether it is positive."""
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        base = s.start[node]
        n = s.start[node + 1] - base
        fill_mass(b, s, node, np.int64(1))
        if factor_symmetric_block(s.diagonal, s.corner[node], n, s.pivot, base) == 0.0:
            return False
    return True


@lean
def _respond(b: Blocks, g: Graph, s: BlockMatrix, i, r, x):
    """x := M^-1 a' of row r of block i, on the nodes that it touches; a x."""
    column, value = b.column, b.value
    c0 = b.head[i, Head.COLUMN]
    a0 = b.head[i, Head.VALUE] + r * b.head[i, Head.WIDTH]
    total = 0.0
    for p in range(g.pieces[i], g.pieces[i + 1]):
        node = g.piece[p, Piece.NODE]
        base = s.start[node]
        n = s.start[node + 1] - base
        for j in range(base, base + n):
            x[j] = 0.0
        for c in range(g.piece[p, Piece.BEGIN], g.piece[p, Piece.END]):
            x[column[c0 + c]] = value[a0 + c]
        divide_vector(s.diagonal, s.corner[node], n, s.pivot, base, x)
        for c in range(g.piece[p, Piece.BEGIN], g.piece[p, Piece.END]):
            total += value[a0 + c] * x[column[c0 + c]]
    return total


@lean
def _store(b: Blocks, g: Graph, s: BlockMatrix, y: System, work: NewtonWorkspace, i):
    """work.g := w of each row of block i; work.shape := a_1 x_2 of its friction, and 1 if all x
    found room in y.D: those of free bodies do."""
    rows, width, c0 = b.head[i, Head.ROWS], b.head[i, Head.WIDTH], b.head[i, Head.COLUMN]
    whole, across = rows * width <= ROWS * ROWS, 0.0
    for p in range(g.pieces[i], g.pieces[i + 1]):
        node = g.piece[p, Piece.NODE]
        size = g.piece[p, Piece.END] - g.piece[p, Piece.BEGIN]
        whole = whole and size == s.start[node + 1] - s.start[node]
    for r in range(rows):
        work.g[i, r] = _respond(b, g, s, i, r, y.x)
        if whole:
            for c in range(width):
                y.D[i, r * width + c] = y.x[b.column[c0 + c]]
        if r == 2:
            a0 = b.head[i, Head.VALUE] + width
            for c in range(width):
                across += b.value[a0 + c] * y.x[b.column[c0 + c]]
    work.shape[i, 0], work.shape[i, 1] = across, np.float64(whole)


@lean_leaf
def _speed(b: Blocks, i, r, v):
    """Speed of block i along row r less its bound, over moving surfaces."""
    column, value, width = b.column, b.value, b.head[i, Head.WIDTH]
    c0, a0 = b.head[i, Head.COLUMN], b.head[i, Head.VALUE] + r * width
    total = 0.0
    for c in range(width):
        total += value[a0 + c] * v[column[c0 + c]]
    if r == 0:
        return total - b.data[i, Datum.BOUND]
    return total + b.data[i, Datum.SURFACE + r - 1] if r < 4 else total


@lean
def _push(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, work: NewtonWorkspace, i, r, impulse
):  # fmt: skip
    """Gives row r of block i that impulse, and the velocity what changes with it."""
    f, v = work.f, work.v
    change = impulse - f[i, r]
    if change == 0.0:
        return
    f[i, r] = impulse
    if work.shape[i, 1] == 1.0:
        width, c0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN]
        for c in range(width):
            v[b.column[c0 + c]] += y.D[i, r * width + c] * change
        return
    _respond(b, g, s, i, r, y.x)
    for p in range(g.pieces[i], g.pieces[i + 1]):
        node = g.piece[p, Piece.NODE]
        for j in range(s.start[node], s.start[node + 1]):
            v[j] += y.x[j] * change


@lean_leaf
def _mended(f, u, w, drag, limit):
    """Impulse of a row at the speed u: of a linear one if drag is finite, else within its limit."""
    if drag < np.inf:
        return f - (drag * u + f) / (drag * w + 1.0)
    return min(max(f - u / w, -limit), limit)


@lean
def _mend_friction(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, work: NewtonWorkspace, i, law, facets
):  # fmt: skip
    """Mends rows 1 and 2 of a contact."""
    f, data = work.f, b.data
    touches = data[i, Datum.BOUND] >= 0.0
    sticks = law == Law.NO_SLIP and touches and data[i, Datum.SLIDE] > 0.0
    drags = law == Law.VISCOUS and touches
    radius = data[i, Datum.SLIDE] * f[i, 0] if law == Law.COULOMB and f[i, 0] > 0.0 else 0.0
    w = max(work.g[i, 1], work.g[i, 2]) + abs(work.shape[i, 0])  # no less than an eigenvalue
    if not w > 0.0:
        return
    f1, f2 = 0.0, 0.0
    if sticks or drags or radius > 0.0:
        drag = data[i, Datum.DRAG] if drags else np.inf
        f1 = _mended(f[i, 1], _speed(b, i, 1, work.v), w, drag, np.inf)
        f2 = _mended(f[i, 2], _speed(b, i, 2, work.v), w, drag, np.inf)
    if law == Law.COULOMB:
        size = np.sqrt(f1 * f1 + f2 * f2)
        if facets > 0:
            f1, f2, _ = project_polygon(f1, f2, radius, 0.0, facets)
        elif size > radius:
            f1, f2 = f1 * radius / size, f2 * radius / size
    _push(b, g, s, y, work, i, 1, f1)
    _push(b, g, s, y, work, i, 2, f2)


@lean
def _mend(b: Blocks, g: Graph, s: BlockMatrix, y: System, work: NewtonWorkspace, i, law, facets):
    """Mends block i, all others as they are."""
    kind, rows, data = b.head[i, Head.KIND], b.head[i, Head.ROWS], b.data
    f, w = work.f, work.g
    if not w[i, 0] > 0.0:
        return
    u = _speed(b, i, 0, work.v)
    if kind == Kind.CONTACT:
        impulse = max(f[i, 0] - u / w[i, 0], 0.0)
    else:
        drag = data[i, Datum.DRAG] if kind == Kind.SOFT else np.inf
        limit = data[i, Datum.LIMIT] if kind == Kind.BOX else np.inf
        impulse = _mended(f[i, 0], u, w[i, 0], drag, limit)
    _push(b, g, s, y, work, i, 0, impulse)
    if is_gripped(b, i):
        for r in range(1, 3):
            if w[i, r] > 0.0:
                u = _speed(b, i, r, work.v)
                impulse = _mended(f[i, r], u, w[i, r], data[i, Datum.DRAG], np.inf)
                _push(b, g, s, y, work, i, r, impulse)
        return
    if kind != Kind.CONTACT or rows < 3 or law == Law.FRICTIONLESS:
        return
    _mend_friction(b, g, s, y, work, i, law, facets)
    for r in range(3, rows):
        rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
        if law == Law.COULOMB and rough > 0.0 and w[i, r] > 0.0:
            u = _speed(b, i, r, work.v)
            _push(b, g, s, y, work, i, r, _mended(f[i, r], u, w[i, r], np.inf, rough * f[i, 0]))


@stage("float64(intp, int64, float64, float64)", eager=False)
def sweep_island(address, k, load, best):
    """Residual of island k after sweeps from the impulses f of Newton's method, if that is less
    than `best`; else f and v are as they were. address: of a packed workspace."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    setting, f, u, v = request.setting, work.f, work.u, work.v
    law, facets = setting[Setting.LAW], setting[Setting.FACETS]
    copy_island(g, s, k, f, v, work.best_f, work.best_v)
    if not _factor_mass(b, g, s, k):
        return best
    enter_cones(b, g, k, law, facets, f)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        if law != Law.COULOMB:
            for r in range(3 if law != Law.FRICTIONLESS else 1, ROWS):
                f[i, r] = 0.0
        _store(b, g, s, y, work, i)
    copy_vector(g, s, k, b.velocity, v)
    unbalanced(b, g, s, k, v, f, y.left, y.rhs)
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        base = s.start[node]
        n = s.start[node + 1] - base
        divide_vector(s.diagonal, s.corner[node], n, s.pivot, base, y.rhs)
        for j in range(base, base + n):
            v[j] += y.rhs[j]
    first, last = g.members[k], g.members[k + 1] - 1
    for sweep in range(MOST_SWEEPS):
        if sweep >= LEAST_SWEEPS and ticks() > setting[Setting.LATEST]:
            break
        for turn in range(last - first + 1):
            i = g.member[first + turn if sweep % 2 == 0 else last - turn]
            _mend(b, g, s, y, work, i, law, facets)
    speeds(b, g, k, v, u)
    found = residual_of(b, g, k, law, facets, u, f, work.weight, load)
    if found < best:
        return found
    copy_island(g, s, k, work.best_f, work.best_v, f, v)
    return best


sweep = sweep_island.external
