"""Sweeps of Gauss and Seidel over the contacts of an island: what is done when time runs out.

A path that is cut short is nowhere near an answer: its impulses lie in the middle of their cones,
and bodies would be driven apart. Sweeps begin with what is at hand, impulses of the last step or a
better iterate, and mend one block at a time with all others as they are. With a a row, x = M^-1 a'
and w = a x:

    normal     f := max(0, f - u / w)
    friction   f_t := f_t - u_t / (w_1 + w_2 or less), taken into its disc of radius mu f_n
    interval   f := f - u / w, taken between its limits;  held   f := f - u / w
    linear     f := f - (u + f / drag) / (w + 1 / drag)

and v := v + x df after each. What each keeps true: the momentum balance, and every impulse in its
cone. A sweep costs less than a tenth of a factorization, and converges slowly: a load passes from
one body to the next. So it is no way to an exact answer, and its residual says how far it came.

How it fails: it ends at its limit, or at its time.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind, from_targets
from stiction.contact.problem.graph import Graph, Piece
from stiction.contact.solvers.newton import project_polygon
from stiction.contact.solvers.proximal import copy_island, enter_cones, residual_of
from stiction.contact.solvers.system import speeds, unbalanced
from stiction.contact.solvers.workspace import Setting, System, unpack_newton, unpack_problem
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix, divide_vector, factor_symmetric_block
from stiction.kernels.stage import stage

LEAST_SWEEPS, MOST_SWEEPS = 2, 40
"""Sweeps however late it is, and at most."""


@lean
def _factor_mass(b: Blocks, g: Graph, s: BlockMatrix, k):
    """The matrix' diagonal := the factored mass of island k's nodes; whether it is positive."""
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        base, corner = s.start[node], s.corner[node]
        n = s.start[node + 1] - base
        for x in range(corner, corner + n * n):
            s.diagonal[x] = 0.0
        for j in range(n):
            at = b.row[base + j] + base
            for c in range(b.first[base + j] - base, j + 1):
                s.diagonal[corner + n * j + c] = b.mass[at + c]
        if factor_symmetric_block(s.diagonal, corner, n, s.pivot, base) == 0.0:
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
def _move(g: Graph, s: BlockMatrix, i, change, x, v):
    """v += x change, on the nodes that block i touches."""
    for p in range(g.pieces[i], g.pieces[i + 1]):
        node = g.piece[p, Piece.NODE]
        for j in range(s.start[node], s.start[node + 1]):
            v[j] += x[j] * change


@lean
def _measure(b: Blocks, i, v, u):
    """u := speeds of block i along its rows less their bounds."""
    head, column, value = b.head, b.column, b.value
    width, c0 = head[i, Head.WIDTH], head[i, Head.COLUMN]
    for r in range(head[i, Head.ROWS]):
        a0 = head[i, Head.VALUE] + r * width
        total = 0.0
        for c in range(width):
            total += value[a0 + c] * v[column[c0 + c]]
        u[i, r] = total
    from_targets(b, i, u)


@lean_leaf
def _mend_row(f, u, w, drag, limit):
    """Impulse of a row at the speed u: of a linear one if drag is finite, else within its limit."""
    if drag < np.inf:
        return f - (drag * u + f) / (drag * w + 1.0)
    return min(max(f - u / w, -limit), limit)


@lean
def _mend_friction(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, i, law, facets, f, u, v
):  # fmt: skip
    """Mends rows 1 and 2 of a contact."""
    touches = b.data[i, Datum.BOUND] >= 0.0
    sticks = law == Law.NO_SLIP and touches and b.data[i, Datum.SLIDE] > 0.0
    drags = law == Law.VISCOUS and touches
    radius = b.data[i, Datum.SLIDE] * f[i, 0] if law == Law.COULOMB and f[i, 0] > 0.0 else 0.0
    if not (sticks or drags or radius > 0.0 or f[i, 1] != 0.0 or f[i, 2] != 0.0):
        return
    w1, w2 = _respond(b, g, s, i, 1, y.left), _respond(b, g, s, i, 2, y.rhs)
    if not (w1 > 0.0 and w2 > 0.0):
        return
    _measure(b, i, v, u)
    across, c0 = 0.0, b.head[i, Head.COLUMN]
    a0 = b.head[i, Head.VALUE] + b.head[i, Head.WIDTH]
    for c in range(b.head[i, Head.WIDTH]):
        across += b.value[a0 + c] * y.rhs[b.column[c0 + c]]
    w = max(w1, w2) + abs(across)  # no less than the largest eigenvalue of both
    drag = b.data[i, Datum.DRAG] if drags else np.inf
    f1 = _mend_row(f[i, 1], u[i, 1], w, drag, np.inf)
    f2 = _mend_row(f[i, 2], u[i, 2], w, drag, np.inf)
    if not (sticks or drags):
        if facets > 0:
            f1, f2, _ = project_polygon(f1, f2, radius, 0.0, facets)
        else:
            size = np.sqrt(f1 * f1 + f2 * f2)
            if size > radius:
                f1, f2 = f1 * radius / size, f2 * radius / size
    _move(g, s, i, f1 - f[i, 1], y.left, v)
    _move(g, s, i, f2 - f[i, 2], y.rhs, v)
    f[i, 1], f[i, 2] = f1, f2


@lean
def _mend(b: Blocks, g: Graph, s: BlockMatrix, y: System, i, law, facets, f, u, v):
    """Mends block i, all others as they are."""
    kind, rows, data = b.head[i, Head.KIND], b.head[i, Head.ROWS], b.data
    w = _respond(b, g, s, i, 0, y.x)
    if not w > 0.0:
        return
    _measure(b, i, v, u)
    if kind == Kind.CONTACT:
        new = max(f[i, 0] - u[i, 0] / w, 0.0)
    else:
        drag = data[i, Datum.DRAG] if kind == Kind.SOFT else np.inf
        limit = data[i, Datum.LIMIT] if kind == Kind.BOX else np.inf
        new = _mend_row(f[i, 0], u[i, 0], w, drag, limit)
    if new != f[i, 0]:
        _move(g, s, i, new - f[i, 0], y.x, v)
        f[i, 0] = new
    if kind != Kind.CONTACT or rows < 3 or law == Law.FRICTIONLESS:
        return
    _mend_friction(b, g, s, y, i, law, facets, f, u, v)
    for r in range(3, rows):
        rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
        if law != Law.COULOMB or not rough > 0.0:
            continue
        w = _respond(b, g, s, i, r, y.x)
        if w > 0.0:
            _measure(b, i, v, u)
            new = _mend_row(f[i, r], u[i, r], w, np.inf, rough * f[i, 0])
            _move(g, s, i, new - f[i, r], y.x, v)
            f[i, r] = new


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
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            v[j] = b.velocity[j]
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
            _mend(b, g, s, y, i, law, facets, f, u, v)
    speeds(b, g, k, v, u)
    found = residual_of(b, g, k, law, facets, u, f, work.weight, load)
    if found < best:
        return found
    copy_island(g, s, k, work.best_f, work.best_v, f, v)
    return best


sweep = sweep_island.external
