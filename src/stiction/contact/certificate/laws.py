"""The laws of single contacts and rows: how far an impulse and a velocity are from obeying them.

`certificate.py` states the laws. Every `grade_` function here adds to one table: `value` (SI),
`scaled` (no unit) and `where` (row index), one line per `Entry`. What is not a number in an
answer shows in its dynamics: comparisons elsewhere may pass over it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array
from stiction.contact.problem.laws import Law as Law
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.packing import packed


class Entry(IntEnum):
    """Lines of a certificate."""

    DYNAMICS = 0
    PENETRATION = 1
    ADHESION = 2
    COMPLEMENTARITY = 3
    CONE = 4
    FRICTION = 5
    JOINT = 6
    BOX_LIMIT = 7
    BOX_FRICTION = 8


ENTRIES = len(Entry)


@packed
class Table(NamedTuple):
    """A certificate in the making."""

    value: Array
    scaled: Array
    where: NDArray[np.int64]


@kernel
def new_table() -> Table:
    """A certificate without violations."""
    return Table(np.zeros(ENTRIES), np.zeros(ENTRIES), np.full(ENTRIES, -1))


@leaf
def _length(x: float, y: float) -> float:
    """Of a vector; without the care for overflow that makes `hypot` ten times as slow."""
    return np.sqrt(x * x + y * y)


@kernel
def ratio(size: float, scale: float) -> float:
    """size / scale, where nothing over nothing is nothing."""
    return size / scale if size != 0.0 else 0.0


@kernel
def note(table: Table, entry: int, value: float, scaled: float, index: int) -> None:
    """Enters a violation; what is not a number counts as infinite."""
    if value != value or scaled != scaled:
        value = np.inf
        scaled = np.inf
    if value > table.value[entry]:
        table.value[entry] = value
    if scaled > table.scaled[entry]:
        table.scaled[entry] = scaled
        table.where[entry] = index


@kernel
def _gauge(x: float, y: float, facets: int) -> float:
    """Radius of the least disc (facets = 0) or polygon that holds (x, y).

    The polygon's corners lie at the angles 2 pi j / facets, at its radius from the centre.
    """
    length = _length(x, y)
    if facets == 0 or length == 0.0:
        return length
    if facets == 2:
        return abs(x) if y == 0.0 else np.inf
    sector = 2.0 * np.pi / facets
    offset = (np.arctan2(y, x) % sector) - 0.5 * sector
    return length * np.cos(offset) / np.cos(0.5 * sector)


@kernel
def _project(x: float, y: float, radius: float, facets: int) -> tuple[float, float]:
    """Point of the disc or polygon of that radius nearest to (x, y)."""
    if facets == 2:
        return min(max(x, -radius), radius), 0.0
    if _gauge(x, y, facets) <= radius:
        return x, y
    if facets == 0:
        shrink = radius / _length(x, y)
        return shrink * x, shrink * y
    # The nearest edge is that of the sector: its mirror lines run through the corners.
    sector = 2.0 * np.pi / facets
    middle = (np.floor(np.arctan2(y, x) / sector) + 0.5) * sector
    c, s = np.cos(middle), np.sin(middle)
    half = radius * np.sin(0.5 * sector)
    along = min(max(c * y - s * x, -half), half)
    out = radius * np.cos(0.5 * sector)
    return c * out - s * along, s * out + c * along


@kernel
def _support(x: float, y: float, facets: int) -> float:
    """Largest inner product of (x, y) with a point of the unit disc or polygon."""
    if facets == 0:
        return _length(x, y)
    best = -np.inf
    for j in range(facets):
        angle = 2.0 * np.pi * j / facets
        best = max(best, np.cos(angle) * x + np.sin(angle) * y)
    return best


@kernel
def _off_disc(z0: float, z1: float, t0: float, t1: float, radius: float, facets: int) -> float:
    """|z - proj(z - t)|: distance of impulse z and slip t from the law of that radius."""
    p0, p1 = _project(z0 - t0, z1 - t1, radius, facets)
    return _length(z0 - p0, z1 - p1)


@kernel
def _coulomb(x: float, z0: float, z1: float, t0: float, t1: float, mu: float, facets: int) -> float:
    """Distance from Coulomb's law with a finite mu, all in scaled units; x normal impulse.

    Either the friction is off at the given normal impulse, or the normal impulse is, by
    the radius' error over mu: with mu = 1e6 no normal impulse is exact enough for the former.
    """
    radius = mu * max(x, 0.0)
    direct = _off_disc(z0, z1, t0, t1, radius, facets)
    own = _gauge(z0, z1, facets)
    if own == np.inf:
        return direct
    moved = abs(own - radius) / max(1.0, mu)
    return min(direct, max(moved, _off_disc(z0, z1, t0, t1, own, facets)))


@kernel
def _endless(x: float, y: float, z0: float, z1: float, t0: float, t1: float) -> float:
    """Distance from the limit of Coulomb's law as mu grows; y parting speed, scaled.

    Three branches: pressed and no slip (y = 0, t = 0); no impulse at all (x = 0, z = 0); and
    the limit of sliding, x = 0, y = 0, z against t, where x = |z| / mu has vanished.
    """
    impulse = _length(z0, z1)
    slip = _length(t0, t1)
    stick = max(abs(y), slip)
    apart = max(abs(x), impulse)
    askew = min(impulse, slip)
    if z0 * t0 + z1 * t1 < 0.0:
        askew = abs(z0 * t1 - z1 * t0) / max(impulse, slip)
    slide = max(max(abs(x), abs(y)), askew)
    return min(stick, min(apart, slide))


@kernel
def grade_friction(
    table: Table,
    i: int,
    law: int,
    facets: int,
    mu: float,
    drag: float,
    ahead: bool,
    f_n: float,
    f_0: float,
    f_1: float,
    parting: float,
    v_0: float,
    v_1: float,
    scale: float,
    inverse: float,
) -> None:
    """The tangential law of contact i; `parting` is N v+ - b, `drag` h mu_v, `ahead` b < 0."""
    if law == Law.COULOMB and f_n == 0.0 and f_0 == 0.0 and f_1 == 0.0:
        return  # no impulse obeys Coulomb's law whatever the slip
    force = _length(f_0, f_1)
    slip = _length(v_0, v_1)
    if (
        law == Law.FRICTIONLESS
        or (mu == 0.0 and law != Law.VISCOUS)
        or (ahead and (law == Law.NO_SLIP or law == Law.VISCOUS))
    ):
        note(table, Entry.CONE, force, ratio(force * inverse, scale), i)
        return
    if law == Law.NO_SLIP:
        note(table, Entry.FRICTION, slip, ratio(slip, scale), i)
        return
    if law == Law.VISCOUS:
        off = _length(f_0 + drag * v_0, f_1 + drag * v_1)
        note(table, Entry.FRICTION, off, ratio(off * inverse, scale * (1 + drag * inverse)), i)
        return
    if mu < np.inf:
        over = max(0.0, _gauge(f_0, f_1, facets) - mu * max(f_n, 0.0))
        note(table, Entry.CONE, over, ratio(over * inverse, scale * max(1.0, mu)), i)
    if law == Law.CONVEX:
        return
    x = ratio(f_n * inverse, scale)
    z0, z1 = ratio(f_0 * inverse, scale), ratio(f_1 * inverse, scale)
    t0, t1 = ratio(v_0, scale), ratio(v_1, scale)
    power = f_0 * v_0 + f_1 * v_1
    if mu < np.inf:
        lost = abs(mu * f_n * _support(-v_0, -v_1, facets) + power)
        off = _coulomb(x, z0, z1, t0, t1, mu, facets)
    else:
        lost = (abs(f_n) + force) * slip + power
        off = _endless(x, ratio(parting, scale), z0, z1, t0, t1)
    note(table, Entry.FRICTION, lost, off, i)


@kernel
def grade_normal(
    table: Table, i: int, law: int, f: float, parting: float, scale: float, inverse: float
) -> None:
    """Normal impulse f and speed `parting` beyond the bound of contact i."""
    x, y = ratio(f * inverse, scale), ratio(parting, scale)
    note(table, Entry.PENETRATION, max(0.0, -parting), max(0.0, -y), i)
    if f == 0.0:
        return
    note(table, Entry.ADHESION, max(0.0, -f), max(0.0, -x), i)
    if law != Law.CONVEX:
        note(table, Entry.COMPLEMENTARITY, abs(f * parting), max(0.0, min(x, y)), i)


@kernel
def grade_sliding(
    table: Table,
    i: int,
    mu: float,
    f_n: float,
    f_0: float,
    f_1: float,
    d_0: float,
    d_1: float,
    scale: float,
    inverse: float,
) -> None:
    """Dynamic friction of contact i, which slides in the direction d: f_t = -mu f_n d."""
    radius = mu * max(f_n, 0.0) if mu < np.inf else _length(f_0, f_1)
    off = _length(f_0 + radius * d_0, f_1 + radius * d_1)
    steep = max(1.0, mu) if mu < np.inf else 1.0
    over = max(0.0, _length(f_0, f_1) - radius)
    note(table, Entry.CONE, over, ratio(over * inverse, scale * steep), i)
    note(table, Entry.FRICTION, off, ratio(off * inverse, scale * steep), i)


@kernel
def grade_box(
    table: Table, i: int, limit: float, f: float, u: float, scale: float, inverse: float
) -> None:
    """The law of box row i: impulse f within the limit, and at it against the speed u."""
    over = max(0.0, abs(f) - limit)
    x, y = ratio(f * inverse, scale), ratio(u, scale)
    note(table, Entry.BOX_LIMIT, over, ratio(over * inverse, scale), i)
    if limit < np.inf:
        edge = ratio(limit * inverse, scale)
        lost = abs(limit * abs(u) + f * u)
        off = abs(x - min(max(x - y, -edge), edge))
    else:
        lost = 2.0 * abs(f * u)
        off = abs(y)
    note(table, Entry.BOX_FRICTION, lost, off, i)
