"""Which rows of a step hold their speed, which follow another's impulse and which the velocity,
compiled, by blocks: what `modes.py` is for arrays.

Whether a contact slides is told by the rule of all (`contact/problem/modes.py`), but with more slip
allowed to one that sticks than in reports: up to a solver's tolerance, and up to what its friction
has left to give, slip is what the solver left of it, and derivatives that took it for sliding would
be those of another mode.

Smoothed, held rows give way, but for box rows, tangents of infinite friction and polygons' edges:
those that do not come first.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import Blocks, Datum, Head, Kind
from stiction.contact.problem.laws import Law
from stiction.contact.problem.modes import Mode, choose_mode
from stiction.contact.problem.scales import block_speed, friction_weight, row_speed
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.packing import packed
from stiction.kernels.panel import padded
from stiction.tolerances import RESIDUAL

Indices = NDArray[np.int64]


class Size(IntEnum):
    """Entries of `Held.size`."""

    HELD = 0
    CURVED = 1
    SLOPED = 2
    """1 if any impulse follows another."""
    LOOSE = 3
    """1 if any row slides that would be held if the problem were faster."""
    HARD = 4
    """How many of the held rows do not give way: the first ones."""


@packed
class Held(NamedTuple):
    """Rows that are held and rows that follow the velocity; at most `cap` of each."""

    size: Indices  # (Size,)
    block: Indices  # (cap, 2) block and row of each held one; of row 1, a direction of the tangents
    direction: Array  # (cap, 2) along rows 1 and 2
    soft: Array  # (cap,) speed that it gives way by, per impulse; 0 unless smoothed
    curved: Indices  # (cap,) block of each that follows the velocity
    across: Array  # (cap, 3) direction along rows 1 and 2, and impulse against speed
    slope: Array  # (cap, 6) impulses of a block per normal impulse, along rows 1 to 5
    held: Array  # (cap, nv) E, rows; this and the next padded
    along: Array  # (cap, nv) G


def allocate_held(nv: int, cap: int) -> Held:
    """Room for so many rows."""
    return Held(
        np.zeros(len(Size), np.int64), np.zeros((cap, 2), np.int64), np.zeros((cap, 2)),
        np.zeros(cap), np.zeros(cap, np.int64), np.zeros((cap, 3)), np.zeros((cap, 6)),
        np.zeros((cap, padded(nv))), np.zeros((cap, padded(nv))),
    )  # fmt: skip


@lean_leaf
def _hold(out: Held, i, r, x, y, soft):
    """Notes a held row, behind all that do not give way if it does."""
    k = out.size[Size.HELD]
    out.size[Size.HELD] = k + 1
    if soft == 0.0:
        first = out.size[Size.HARD]  # makes room there
        for c in range(2):
            out.block[k, c], out.direction[k, c] = out.block[first, c], out.direction[first, c]
        out.soft[k] = out.soft[first]
        k, out.size[Size.HARD] = first, first + 1
    out.block[k, 0], out.block[k, 1] = i, r
    out.direction[k, 0], out.direction[k, 1], out.soft[k] = x, y, soft


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
        _hold(out, i, 1, -np.sin(corner), np.cos(corner), 0.0)
    out.slope[i, 1] = mu * size * np.cos(corner)
    out.slope[i, 2] = mu * size * np.sin(corner)
    out.size[Size.SLOPED] = 1


@lean_leaf
def _smooth_normal(f, u, weight, scale, smoothing):
    """(load, soft) of a contact with the normal impulse f that parts at the speed u, on the way of
    an interior point that is stopped early: the normal impulse there, and what its row gives."""
    apart = (f * weight - u) / scale if scale > 0.0 else 0.0
    root = np.sqrt(0.25 * apart * apart + smoothing)
    high, low = root + 0.5 * apart, root - 0.5 * apart
    # The smaller of the two by the product: their difference would lose digits.
    if apart > 0.0:
        low = smoothing / high
    else:
        high = smoothing / low
    return high * scale / weight, low / high * weight


@lean
def _slide(out: Held, i, mu, load, x, y, slip, blur):
    """A contact that slides by (x, y), of size `slip`, on the circular cone; blur: least slip that
    friction is that of."""
    size = np.hypot(slip, blur)
    if not size > 0.0:
        return
    x, y = (x / slip, y / slip) if slip > 0.0 else (1.0, 0.0)
    along = mu * slip / size
    out.slope[i, 1], out.slope[i, 2] = -along * x, -along * y
    out.size[Size.SLOPED] = 1
    curve = mu * load / size
    _curve(out, i, -y, x, curve)
    if blur > 0.0:
        _curve(out, i, x, y, curve * (blur / size) ** 2)


@lean
def _read_friction(
    b: Blocks, i, law, facets, u, f, weight, scale, pressed, load, smoothing, out: Held
):
    """Tangents of contact i. load: the normal impulse that friction grows with."""
    mu, ahead = b.data[i, Datum.SLIDE], b.data[i, Datum.BOUND] < 0.0
    if law == Law.VISCOUS and not ahead:
        _curve(out, i, 1.0, 0.0, b.data[i, Datum.DRAG])
        _curve(out, i, 0.0, 1.0, b.data[i, Datum.DRAG])
    holds, soft = law == Law.NO_SLIP and mu > 0.0 and not ahead, 0.0
    smooth = smoothing > 0.0 and facets == 0 and mu < np.inf
    if law == Law.COULOMB and pressed and mu > 0.0 and (smooth or f[i, 0] > 0.0):
        size, slip = np.hypot(f[i, 1], f[i, 2]), np.hypot(u[i, 1], u[i, 2])
        if facets > 0:
            sector = 2.0 * np.pi / facets
            turn = np.arctan2(f[i, 2], f[i, 1])
            turn -= np.floor(turn / sector) * sector
            size *= np.cos(turn - 0.5 * sector) / np.cos(0.5 * sector)
        room = (
            np.inf if mu == np.inf else max(mu * f[i, 0] - size, 0.0) * friction_weight(weight, i)
        )
        still = max(RESIDUAL * scale, room)
        holds = choose_mode(f[i, 0], mu, u[i, 1], u[i, 2], still) != Mode.SLIDE
        blur = 0.0
        if smooth:  # what separates has a little friction, too
            holds = holds and f[i, 0] > 0.0 and slip <= RESIDUAL * scale
            blur = np.sqrt(smoothing) * scale
            soft = blur / (mu * load) if holds else 0.0
        if not holds:
            out.size[Size.LOOSE] = 1
        if not holds and facets > 0:
            _read_polygon(out, i, mu, facets, f[i, 1], f[i, 2])
        elif not holds:
            _slide(out, i, mu, load, u[i, 1], u[i, 2], slip, blur)
    if holds:
        _hold(out, i, 1, 1.0, 0.0, soft)
        _hold(out, i, 1, 0.0, 1.0, soft)


@lean_leaf
def _is_held(most, f, u, weight, scale):
    """Whether a row between two limits holds its speed."""
    room = np.inf if most == np.inf else max(most - abs(f), 0.0) * weight
    return most > 0.0 and not (abs(u) > RESIDUAL * scale and abs(u) > room)


@lean
def read_held(b: Blocks, count, law, facets, smoothing, u, f, weight, sigma, out: Held):
    """Fills `out` with what each row does, in the words of `modes.py`, but for soft ones, which are
    part of the inertia (`fill_inertia`). u (n, ROWS): speeds less bounds, f: impulses, weight:
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
                _hold(out, i, 0, 0.0, 0.0, 0.0)
            else:
                out.size[Size.LOOSE] = 1
            continue
        if kind == Kind.HOLD:
            _hold(out, i, 0, 0.0, 0.0, 0.0)
        if kind != Kind.CONTACT:
            continue
        rows = b.head[i, Head.ROWS]
        scale = block_speed(b, i, sigma) if rows > 2 or smoothing > 0.0 else 0.0
        pressed = f[i, 0] > 0.0 and f[i, 0] * weight[i, 0] >= u[i, 0]
        load, soft = f[i, 0], 0.0
        if smoothing > 0.0:
            pressed = weight[i, 0] > 0.0
            if pressed:
                load, soft = _smooth_normal(f[i, 0], u[i, 0], weight[i, 0], scale, smoothing)
        if pressed:
            _hold(out, i, 0, 0.0, 0.0, soft)
        if rows > 2:
            _read_friction(
                b, i, law, facets, u, f, weight, scale, pressed, load, smoothing, out
            )  # fmt: skip
        for r in range(3, rows):
            ratio = b.data[i, Datum.SPIN] if r == 3 else b.data[i, Datum.ROLL]
            if law != Law.COULOMB or not ratio > 0.0:
                continue
            most = ratio * max(f[i, 0], 0.0)
            if _is_held(most, f[i, r], u[i, r], weight[i, r], row_speed(b, i, r, sigma)):
                _hold(out, i, r, 0.0, 0.0, 0.0)
            elif most > 0.0:
                out.size[Size.LOOSE] = 1
                if pressed:
                    out.slope[i, r] = -np.sign(u[i, r]) * ratio
                    out.size[Size.SLOPED] = 1


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
def add_soft_row(b: Blocks, i, r, drag, out):
    """out (nv, nv) += what row r of block i holds, of that impulse per speed."""
    width, c0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN]
    a0 = b.head[i, Head.VALUE] + r * width
    for a in range(width):
        share = drag * b.value[a0 + a]
        for e in range(width):
            out[b.column[c0 + a], b.column[c0 + e]] += share * b.value[a0 + e]


@lean
def fill_inertia(b: Blocks, count, out):
    """out (nv, nv) := the mass, and what soft rows hold of it."""
    fill_mass(b, out)
    for i in range(count):
        if b.head[i, Head.KIND] == Kind.SOFT:
            add_soft_row(b, i, 0, b.data[i, Datum.DRAG], out)


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
