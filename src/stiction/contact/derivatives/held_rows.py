"""The implicit function theorem by blocks, compiled: which rows of a step hold their speed, and the
linear system that they leave, for all columns at once.

Modes are read as in `modes.py`, the system is that of `system.py`:

    A dv - G' df = push        A: the mass, and what follows the velocity (curves)
    E dv         = speed       E: the held rows; G: E, and what follows their impulses (slopes)

With A = L L', unit rows E L^-T = C V (V orthonormal, by Gram-Schmidt with the largest remainder
first, until what remains is rounding: C is a lower triangle for the rows that were taken, and the
others depend on them), X^+ the left inverse of a matrix of full rank,

    dv = P push + Q speed,    Z = ((G L^-T) V')^+ (G L^-T)
    P  = A^-1 - (Z L^-1)' (V L^-1),    Q = (Z L^-1)' C^-1

Speeds are asked of the rows that were taken; where the step's velocity is unique, the others have
theirs then, too. Impulses are the least that do it. Without slopes Z is V, and P is symmetric.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.derivatives.system import DEPENDENT
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import Blocks, Datum, Head, Kind
from stiction.contact.problem.scales import block_speed, friction_weight, row_speed
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.dense import rows_dot
from stiction.kernels.linear import divide, factorize, undivide
from stiction.kernels.packing import packed
from stiction.tolerances import RESIDUAL

Indices = NDArray[np.int64]

COULOMB, FRICTIONLESS, NO_SLIP, VISCOUS = range(4)
"""Places in `LAWS` of `derivatives.py`."""


class Size(IntEnum):
    """Entries of `Held.size`."""

    HELD = 0
    CURVED = 1
    SLOPED = 2
    """1 if any impulse follows another."""


@packed
class Held(NamedTuple):
    """Rows that are held and rows that follow the velocity; at most `cap` of each."""

    size: Indices  # (Size,)
    block: Indices  # (cap, 2) block and row of each held one; of row 1, a direction of the tangents
    direction: Array  # (cap, 2) along rows 1 and 2
    curved: Indices  # (cap,) block of each that follows the velocity
    across: Array  # (cap, 3) direction along rows 1 and 2, and impulse against speed
    slope: Array  # (cap, 6) impulses of a block per normal impulse, along rows 1 to 5
    held: Array  # (cap, nv) E, rows
    along: Array  # (cap, nv) G


@packed
class Solved(NamedTuple):
    """The system, solved for all columns."""

    inertia: Array  # (nv, nv) A
    upper: Array  # (nv, nv) L'
    last: Indices  # (nv,)
    rows: Array  # (cap, nv) what is left of E L^-T
    other: Array  # (cap, nv) G L^-T
    length: Array  # (cap,)
    basis: Array  # (nv, nv) V
    taken: Indices  # (nv,) the rows that V was made of
    share: Array  # (nv, nv) C'
    spare: Array  # (nv, cap) V (G L^-T)', then the left inverse of its transpose
    triangle: Array  # (nv, nv)
    inverse: Array  # (nv, nv) A^-1
    pull: Array  # (nv, nv) V L^-1
    push: Array  # (nv, nv) Z L^-1
    by_push: Array  # (nv, nv) P
    by_speed: Array  # (nv, nv) Q, by the rows that were taken


def allocate_held(nv: int, cap: int) -> Held:
    """Room for so many rows."""
    return Held(
        np.zeros(len(Size), np.int64), np.zeros((cap, 2), np.int64), np.zeros((cap, 2)),
        np.zeros(cap, np.int64), np.zeros((cap, 3)), np.zeros((cap, 6)), np.zeros((cap, nv)),
        np.zeros((cap, nv)),
    )  # fmt: skip


def allocate_solved(nv: int, cap: int) -> Solved:
    """Room for so many rows."""
    square, tall = (nv, nv), (cap, nv)
    return Solved(
        np.zeros(square), np.zeros(square), np.zeros(nv, np.int64), np.zeros(tall), np.zeros(tall),
        np.zeros(cap), np.zeros(square), np.zeros(nv, np.int64), np.zeros(square),
        np.zeros((nv, cap)), np.zeros(square), np.zeros(square), np.zeros(square),
        np.zeros(square), np.zeros(square), np.zeros(square),
    )  # fmt: skip


@lean_leaf
def _hold(out: Held, i, r, x, y):
    """Notes a held row."""
    k = out.size[Size.HELD]
    out.block[k, 0], out.block[k, 1] = i, r
    out.direction[k, 0], out.direction[k, 1] = x, y
    out.size[Size.HELD] = k + 1


@lean_leaf
def _curve(out: Held, i, x, y, curve):
    """Notes a direction that follows the velocity."""
    k = out.size[Size.CURVED]
    out.curved[k] = i
    out.across[k, 0], out.across[k, 1], out.across[k, 2] = x, y, curve
    out.size[Size.CURVED] = k + 1


@lean
def _read_polygon(out: Held, i, mu, facets, x, y):
    """A contact that slides with the tangential impulse (x, y) on a polygon's edge or corner."""
    sector = 2.0 * np.pi / facets
    angle = np.arctan2(y, x)
    corner = np.floor(angle / sector + 0.5) * sector
    size = 1.0
    if abs(angle - corner) > 1e-6 * sector:
        corner = (np.floor(angle / sector) + 0.5) * sector
        size = np.cos(0.5 * sector)
        _hold(out, i, 1, -np.sin(corner), np.cos(corner))
    out.slope[i, 1] = mu * size * np.cos(corner)
    out.slope[i, 2] = mu * size * np.sin(corner)
    out.size[Size.SLOPED] = 1


@lean
def _read_friction(b: Blocks, i, law, facets, u, f, weight, scale, pressed, out: Held):
    """Tangents of contact i."""
    mu, ahead = b.data[i, Datum.SLIDE], b.data[i, Datum.BOUND] < 0.0
    if law == VISCOUS and not ahead:
        _curve(out, i, 1.0, 0.0, b.data[i, Datum.DRAG])
        _curve(out, i, 0.0, 1.0, b.data[i, Datum.DRAG])
    holds = law == NO_SLIP and mu > 0.0 and not ahead
    if law == COULOMB and pressed and mu > 0.0:
        size, slip = np.hypot(f[i, 1], f[i, 2]), np.hypot(u[i, 1], u[i, 2])
        if facets > 0:
            sector = 2.0 * np.pi / facets
            turn = np.arctan2(f[i, 2], f[i, 1])
            turn -= np.floor(turn / sector) * sector
            size *= np.cos(turn - 0.5 * sector) / np.cos(0.5 * sector)
        room = (
            np.inf if mu == np.inf else max(mu * f[i, 0] - size, 0.0) * friction_weight(weight, i)
        )
        holds = not (slip > RESIDUAL * scale and slip > room)
        if not holds and facets > 0:
            _read_polygon(out, i, mu, facets, f[i, 1], f[i, 2])
        elif not holds:
            x, y = u[i, 1] / slip, u[i, 2] / slip
            out.slope[i, 1], out.slope[i, 2] = -mu * x, -mu * y
            out.size[Size.SLOPED] = 1
            _curve(out, i, -y, x, mu * f[i, 0] / slip)
    if holds:
        _hold(out, i, 1, 1.0, 0.0)
        _hold(out, i, 1, 0.0, 1.0)


@lean_leaf
def _is_held(most, f, u, weight, scale):
    """Whether a row between two limits holds its speed."""
    room = np.inf if most == np.inf else max(most - abs(f), 0.0) * weight
    return most > 0.0 and not (abs(u) > RESIDUAL * scale and abs(u) > room)


@lean
def read_held(b: Blocks, count, law, facets, u, f, weight, sigma, out: Held):
    """Fills `out` with what each row does, in the words of `modes.py`; whether there are none but
    contacts, limits and dry friction. u (n, ROWS): speeds less bounds, f: impulses, weight:
    inverse inertias of rows; sigma (nv,): speeds of the problem, spread."""
    for k in range(out.size.shape[0]):
        out.size[k] = 0
    for i in range(count):
        for r in range(6):
            out.slope[i, r] = 0.0
        kind = b.head[i, Head.KIND]
        if kind == Kind.BOX:
            if _is_held(
                b.data[i, Datum.LIMIT], f[i, 0], u[i, 0], weight[i, 0], row_speed(b, i, 0, sigma)
            ):
                _hold(out, i, 0, 0.0, 0.0)
            continue
        if kind != Kind.CONTACT:
            return False
        pressed = f[i, 0] > 0.0 and f[i, 0] * weight[i, 0] >= u[i, 0]
        if pressed:
            _hold(out, i, 0, 0.0, 0.0)
        rows = b.head[i, Head.ROWS]
        if rows > 2:
            scale = block_speed(b, i, sigma)
            _read_friction(b, i, law, facets, u, f, weight, scale, pressed, out)
        for r in range(3, rows):
            ratio = b.data[i, Datum.SPIN] if r == 3 else b.data[i, Datum.ROLL]
            if law != COULOMB or not ratio > 0.0:
                continue
            most = ratio * max(f[i, 0], 0.0)
            if _is_held(most, f[i, r], u[i, r], weight[i, r], row_speed(b, i, r, sigma)):
                _hold(out, i, r, 0.0, 0.0)
            elif pressed and most > 0.0:
                out.slope[i, r] = -np.sign(u[i, r]) * ratio
                out.size[Size.SLOPED] = 1
    return True


@lean
def add_row(b: Blocks, i, r, scale, out, k):
    """out[k] (nv,) += scale times row r of block i."""
    if scale == 0.0:
        return
    width, c0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN]
    a0 = b.head[i, Head.VALUE] + r * width
    for c in range(width):
        out[k, b.column[c0 + c]] += scale * b.value[a0 + c]


@lean
def fill_mass(b: Blocks, out):
    """out (nv, nv) := the mass, both triangles."""
    for j in range(out.shape[0]):
        for k in range(out.shape[0]):
            out[j, k] = 0.0
    for j in range(out.shape[0]):
        for k in range(b.first[j], j + 1):
            out[j, k] = out[k, j] = b.mass[b.row[j] + k]


@lean
def fill_rows(b: Blocks, out: Held, inertia, work):
    """Fills E and G, and adds the curves to the inertia; work (1 or more, nv)."""
    nv = inertia.shape[0]
    for k in range(out.size[Size.HELD]):
        i, r = out.block[k, 0], out.block[k, 1]
        for j in range(nv):
            out.held[k, j] = 0.0
        if r == 1:
            add_row(b, i, 1, out.direction[k, 0], out.held, k)
            add_row(b, i, 2, out.direction[k, 1], out.held, k)
        else:
            add_row(b, i, r, 1.0, out.held, k)
        for j in range(nv):
            out.along[k, j] = out.held[k, j]
        if r == 0 and b.head[i, Head.KIND] == Kind.CONTACT:
            for c in range(1, b.head[i, Head.ROWS]):
                add_row(b, i, c, out.slope[i, c], out.along, k)
    for k in range(out.size[Size.CURVED]):
        i, curve = out.curved[k], out.across[k, 2]
        for j in range(nv):
            work[0, j] = 0.0
        add_row(b, i, 1, out.across[k, 0], work, 0)
        add_row(b, i, 2, out.across[k, 1], work, 0)
        c0 = b.head[i, Head.COLUMN]
        for a in range(b.head[i, Head.WIDTH]):
            j = b.column[c0 + a]
            share = curve * work[0, j]
            for e in range(b.head[i, Head.WIDTH]):
                h = b.column[c0 + e]
                inertia[j, h] += share * work[0, h]


@lean
def _left_inverse(m, k, matrix, triangle):
    """matrix (k, m) := the left inverse of its transpose C (m, k), as T^-1 Q' of C = Q T; False if
    the columns depend on each other. triangle (k, k): T."""
    for q in range(k):
        for p in range(q + 1):
            triangle[p, q] = 0.0
        whole = rows_dot(matrix, q, matrix, q, m)
        for _ in range(2):  # what little remains holds rounding of the rest: once more
            for p in range(q):
                along = rows_dot(matrix, p, matrix, q, m)
                triangle[p, q] += along
                for c in range(m):
                    matrix[q, c] -= along * matrix[p, c]
        size = rows_dot(matrix, q, matrix, q, m)
        if not size > (DEPENDENT * DEPENDENT) * whole:
            return False
        size = np.sqrt(size)
        triangle[q, q] = size
        for c in range(m):
            matrix[q, c] /= size
    for q in range(k - 1, -1, -1):
        for p in range(q + 1, k):
            along = triangle[q, p]
            for c in range(m):
                matrix[q, c] -= along * matrix[p, c]
        for c in range(m):
            matrix[q, c] /= triangle[q, q]
    return True


@lean
def _find_basis(m, s: Solved):
    """V of the unit rows s.rows, which are overwritten, with C of those that were taken; how many.
    spare[0]: what is left of each row."""
    nv, rows, basis, left = s.inertia.shape[0], s.rows, s.basis, s.spare
    for i in range(m):
        left[0, i] = 1.0
    size = 0
    while size < min(m, nv):
        best, which = DEPENDENT * DEPENDENT, -1
        for i in range(m):
            if left[0, i] > best:
                best, which = left[0, i], i
        if which < 0:
            break
        # What is left was reckoned, by differences: the row itself tells.
        length = rows_dot(rows, which, rows, which, nv)
        if not length > 0.25 * best:
            left[0, which] = length
            continue
        for j in range(nv):
            basis[size, j] = rows[which, j]
        for p in range(size):
            along = rows_dot(basis, p, basis, size, nv)
            for j in range(nv):
                basis[size, j] -= along * basis[p, j]
        length = np.sqrt(rows_dot(basis, size, basis, size, nv))
        for j in range(nv):
            basis[size, j] /= length
        s.taken[size], left[0, which] = which, 0.0
        for i in range(m):
            if left[0, i] > DEPENDENT * DEPENDENT:
                along = rows_dot(basis, size, rows, i, nv)
                left[0, i] -= along * along
                for j in range(nv):
                    rows[i, j] -= along * basis[size, j]
        size += 1
    return size


@lean
def _order_taken(k, held, s: Solved):
    """share[p, q] := C[q, p] of the rows that were taken, for p <= q: V along the unit rows."""
    nv = s.inertia.shape[0]
    for q in range(k):
        i = s.taken[q]
        for j in range(nv):
            s.rows[i, j] = held[i, j] / s.length[i]
        # A unit row is held / length divided by L; V L^-1 takes it as it is given.
        for p in range(q + 1):
            s.share[p, q] = rows_dot(s.pull, p, s.rows, i, nv)


@lean
def factor_inertia(s: Solved):
    """Factors s.inertia and fills s.inverse; whether it is positive definite."""
    nv, out = s.inertia.shape[0], s.inverse
    if factorize(s.inertia, s.upper, s.last, 0.0) >= 0:
        return False
    for k in range(nv):
        for j in range(k, nv):
            out[k, j] = 0.0
        out[k, k] = 1.0
        for j in range(k, nv):
            if out[k, j] != 0.0:
                value = out[k, j] / s.upper[j, j]
                out[k, j] = value
                for c in range(j + 1, s.last[j] + 1):
                    out[k, c] -= value * s.upper[j, c]
        for j in range(nv - 1, k - 1, -1):  # the rest by symmetry
            total = out[k, j]
            for c in range(j + 1, s.last[j] + 1):
                total -= s.upper[j, c] * out[k, c]
            out[k, j] = out[j, k] = total / s.upper[j, j]
    return True


@lean
def _take_slopes(m, k, along, s: Solved):
    """push := Z L^-1; whether there is one."""
    nv = s.inertia.shape[0]
    for i in range(m):
        for j in range(nv):
            s.other[i, j] = along[i, j] / s.length[i]
        divide(s.upper, s.last, s.other[i])
        for q in range(k):
            s.spare[q, i] = rows_dot(s.basis, q, s.other, i, nv)
    if not _left_inverse(m, k, s.spare, s.triangle):
        return False
    for q in range(k):
        for j in range(nv):
            s.push[q, j] = 0.0
        for i in range(m):
            share = s.spare[q, i]
            for j in range(nv):
                s.push[q, j] += share * s.other[i, j]
        undivide(s.upper, s.last, s.push[q])
    return True


@lean
def solve_held(m, held, along, sloped, s: Solved):
    """Fills P and Q of s for the m first rows of E and G (cap, nv), A being factored; how many rows
    were taken, or -1 if there is no one answer. sloped: whether G is not E."""
    nv = s.inertia.shape[0]
    for i in range(m):
        for j in range(nv):
            s.rows[i, j] = held[i, j]
        divide(s.upper, s.last, s.rows[i])
        size = rows_dot(s.rows, i, s.rows, i, nv)
        s.length[i] = np.sqrt(size) if size > 0.0 else 1.0
        for j in range(nv):
            s.rows[i, j] /= s.length[i]
    k = _find_basis(m, s)
    for q in range(k):
        for j in range(nv):
            s.pull[q, j] = s.basis[q, j]
        undivide(s.upper, s.last, s.pull[q])
        for j in range(nv):
            s.push[q, j] = s.pull[q, j]
    if sloped and not _take_slopes(m, k, along, s):
        return -1
    _order_taken(k, held, s)
    # Q = (Z L^-1)' C^-1, by its columns from the last to the first: C is a lower triangle.
    for j in range(nv):
        for h in range(nv):
            s.by_push[j, h] = s.inverse[j, h]
        for q in range(k):
            share = s.push[q, j]
            for h in range(nv):
                s.by_push[j, h] -= share * s.pull[q, h]
        for q in range(k - 1, -1, -1):
            total = s.push[q, j]
            for p in range(q + 1, k):
                total -= s.by_speed[j, p] * s.length[s.taken[p]] * s.share[q, p]
            s.by_speed[j, q] = total / s.share[q, q] / s.length[s.taken[q]]
    return k


@lean
def multiply(a, n, b, columns, out):
    """out[:, :columns] := a[:, :n] b[:n, :columns]; four rows of b at a time, so that a row of
    `out` is read and written a quarter as often."""
    whole = n - n % 4
    for i in range(a.shape[0]):
        for c in range(columns):
            out[i, c] = 0.0
        for j in range(0, whole, 4):
            w, x, y, z = a[i, j], a[i, j + 1], a[i, j + 2], a[i, j + 3]
            for c in range(columns):
                out[i, c] += (w * b[j, c] + x * b[j + 1, c]) + (y * b[j + 2, c] + z * b[j + 3, c])
        for j in range(whole, n):
            w = a[i, j]
            for c in range(columns):
                out[i, c] += w * b[j, c]
