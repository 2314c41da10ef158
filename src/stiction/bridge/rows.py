"""From MuJoCo's constraint rows to blocks.

MuJoCo has made rows for what it would solve: equalities, dry friction, limits, contacts, in that
order. Each becomes a block, by its kind:

    equality        SOFT, as soft as the model says; or HOLD, one row each, where they are rigid:
                    at rest, or at the speed of the mocap body that leads it (`mocap.py`)
    dry friction    BOX
    limit           CONTACT with one row
    contact         CONTACT, its rows taken from the cone that the model has, elliptic or pyramidal

MuJoCo's soft equality gives the force (a_ref - J a) / R along its row; with a = (v+ - v) / h the
impulse is -(J v+ - c) / R, c = h a_ref + J v.
"""

from __future__ import annotations

from enum import IntEnum

import mujoco
import numpy as np

from stiction.bridge.arcs import departure
from stiction.bridge.bodies import smaller_radius
from stiction.bridge.geom_types import MESH, kinds_of
from stiction.bridge.layout import (
    flags,
    integer,
    integers,
    number,
    numbers,
    offset,
    pointer,
    size_of,
)
from stiction.bridge.mocap import is_led, led_speed, moving_size, rim_motion, sudden_rise
from stiction.contact.problem.blocks import Blocks, Datum, Head, Kind
from stiction.kernels.compile import kernel, leaf

_CONTACT_SIZE = size_of("mjContact")
_DIST, _POS, _FRICTION, _FRAME, _DIM, _GEOM, _ADDRESS, _EXCLUDE = (
    offset("mjContact", name)
    for name in ("dist", "pos", "friction", "frame", "dim", "geom", "efc_address", "exclude")
)
_TIMESTEP = offset("mjModel", "opt", "timestep")
_CONE = offset("mjModel", "opt", "cone")
_NMOCAP, _SURFACE = offset("mjModel", "nmocap"), offset("mjModel", "geom_surfacevel")
_MOBILITY = offset("mjModel", "dof_invweight0")
_MOVES = offset("mjModel", "flg_surfacevel")
_GEOM_POS, _GEOM_MAT = offset("mjData", "geom_xpos"), offset("mjData", "geom_xmat")
_NCON, _NEFC, _NE, _NF, _NL, _CONTACT = (
    offset("mjData", name) for name in ("ncon", "nefc", "ne", "nf", "nl", "contact")
)
_J_NNZ, _J_ADR, _J_COL = (offset("mjData", f"efc_J_{k}") for k in ("rownnz", "rowadr", "colind"))
_J = offset("mjData", "efc_J")
_EFC_POS, _EFC_R, _EFC_AREF, _EFC_LOSS, _EFC_TYPE, _EFC_ID = (
    offset("mjData", f"efc_{k}") for k in ("pos", "R", "aref", "frictionloss", "type", "id")
)
PYRAMIDAL = int(mujoco.mjtCone.mjCONE_PYRAMIDAL)
LEAST_FRICTION = float(mujoco.mjMINMU)

HIDDEN = -2
"""Less a row's number: the address of a contact that `hide_ahead` hid."""

NOISE = 1e-13
"""Entry of a rigid equality over the largest one that is rounding: a loop in a plane has rows
across it that would be zero."""

LEAST_SOFTNESS = 1e-6
"""Softness of an equality over the inverse inertia of what it moves, at least. The stiffest that
MuJoCo means has 1e-4, but takes that of the centres of mass of bodies: of wheels on their axles,
which do not move, next to nothing is left, and no digits of the mass beside it."""

SAME_GAP = 1.5e-4
"""Difference of two gaps of a pair that does not count, over the smaller geom's radius. What the
collision detector rounds decides nothing then: whether a face's four corners meet the ground in one
step or in two. Ten times less, or more, and steps of piles need more attempts."""

DEEP = 0.1
"""Overlap beyond which a contact has no friction, over the radius of its smaller geom. Steps leave
no such overlap: a model was set up with it. Its normals may contradict each other, and friction
under the loads between them would hold the bodies within each other for ever."""


class Key(IntEnum):
    """Columns of the array that tells blocks of one step from those of another."""

    FIRST = 0
    """Contacts: geom 0; else -1 - the constraint's type."""
    SECOND = 1
    """Contacts: geom 1; else the constraint's id, twice, plus one for a second row of it."""
    INDEX = 2
    """Contacts: their number in `data.contact`; else -1."""
    ROW = 3
    """First row in `efc`."""


class Place(IntEnum):
    """Columns of the array of where blocks are."""

    GAP = 0
    """Distance of a contact or to a limit, error of an equality [m, rad]."""
    RATIO = 1
    """Second over first sliding coefficient; the second row's values are scaled by it."""
    ROLL_RATIO = 2
    """The same of rolling."""
    X = 3
    Y = 4
    Z = 5
    LED = 6
    """Where a mocap body leads this rigid equality `rim_motion`, else 0."""
    BENT = 7
    """1 where a contact's gap counts as none because the paths of a step bend (`arcs.py`), else
    0."""


@leaf
def _new_block(b: Blocks, i, kind, rows, nnz, columns, values, place):
    """Room for a block with the columns of a row of efc_J; returns the next free entries."""
    head = b.head
    head[i, Head.KIND] = kind
    head[i, Head.ROWS] = rows
    head[i, Head.WIDTH] = nnz
    head[i, Head.COLUMN] = columns
    head[i, Head.VALUE] = values
    for k in range(b.data.shape[1]):
        b.data[i, k] = 0.0
    for k in range(place.shape[1]):
        place[i, k] = 0.0
    return columns + nnz, values + rows * nnz


@leaf
def _entries(d, nefc):
    """The rows of efc_J: nonzeros and start of each."""
    return integers(pointer(d + _J_NNZ), nefc), integers(pointer(d + _J_ADR), nefc)


@kernel
def count_blocks(d):
    """(blocks, entries) that the rows make, at most: room to have before `read_rows`."""
    nefc = integer(d + _NEFC)
    entries = 0
    if nefc > 0:
        nnz, adr = _entries(d, nefc)
        entries = adr[nefc - 1] + nnz[nefc - 1]
    return nefc, entries


@leaf
def _name_row(key, count, kind, which, e):
    """Identifies the block of a row that is no contact's: its type, and its id with a number that
    tells rows of one constraint apart."""
    key[count, Key.FIRST] = -1 - kind
    second = 0
    if count > 0 and key[count - 1, Key.FIRST] == -1 - kind:
        before = key[count - 1, Key.SECOND]
        if before // 8 == which:
            second = before % 8 + 1
    key[count, Key.SECOND] = 8 * which + second
    key[count, Key.INDEX] = -1
    key[count, Key.ROW] = e


@leaf
def _softening(begin, ne, ids, nnz, adr, column, J, R, mobility):
    """What the softness R of an equality's rows, from `begin` on as long as it stays the same, is
    to be multiplied by so that none is below `LEAST_SOFTNESS`; mobility (nv,): inverse inertia of
    each degree of freedom."""
    most, e = 1.0, begin
    while e < ne and ids[e] == ids[begin] and R[e] == R[begin]:
        moved = 0.0
        for k in range(adr[e], adr[e] + nnz[e]):
            moved += J[k] * mobility[column[k]] * J[k]
        most = max(most, LEAST_SOFTNESS * moved / R[e])
        e += 1
    return most


@kernel
def _read_single_rows(m, d, b: Blocks, rigid, touch, shallow, key, place):
    """Blocks of equalities, dry friction and limits; (how many, columns and entries they take)."""
    ne, nf, nl, nefc = integer(d + _NE), integer(d + _NF), integer(d + _NL), integer(d + _NEFC)
    dt, data = number(m + _TIMESTEP), b.data
    nnz, adr = _entries(d, nefc)
    total = adr[nefc - 1] + nnz[nefc - 1]
    column, J = integers(pointer(d + _J_COL), total), numbers(pointer(d + _J), total)
    pos, loss = numbers(pointer(d + _EFC_POS), nefc), numbers(pointer(d + _EFC_LOSS), nefc)
    R, aref = numbers(pointer(d + _EFC_R), nefc), numbers(pointer(d + _EFC_AREF), nefc)
    kinds, ids = integers(pointer(d + _EFC_TYPE), nefc), integers(pointer(d + _EFC_ID), nefc)
    mobility = numbers(pointer(m + _MOBILITY), b.velocity.shape[0])
    softened, largest, led = 1.0, 0.0, rigid and pointer(m + _NMOCAP) > 0
    if rigid and ne > 0:
        for k in range(adr[ne - 1] + nnz[ne - 1]):
            largest = max(largest, abs(J[k]))
    size = moving_size(shallow)
    columns, values, row, rise = 0, 0, 0, sudden_rise(m, size)
    for e in range(ne + nf + nl):
        kind = np.int64(Kind.CONTACT)
        if e < ne:
            kind = np.int64(Kind.HOLD if rigid else Kind.SOFT)
        elif e < ne + nf:
            kind = np.int64(Kind.BOX)
        at, entry = columns, values
        columns, values = _new_block(
            b, e, kind, np.int64(1), np.int64(nnz[e]), at, entry, place
        )  # fmt: skip
        before = 0.0
        for k in range(nnz[e]):
            b.column[at + k] = column[adr[e] + k]
            b.value[entry + k] = J[adr[e] + k]
            before += J[adr[e] + k] * b.velocity[column[adr[e] + k]]
            if kind == Kind.HOLD and abs(J[adr[e] + k]) < NOISE * largest:
                b.value[entry + k] = 0.0
        place[e, Place.GAP] = pos[e]
        if led and kind == Kind.HOLD and is_led(m, ids[e]):
            row = row + 1 if e > 0 and ids[e - 1] == ids[e] else 0
            rim = rim_motion(m, ids[e], row, size)
            place[e, Place.LED] = rim
            data[e, Datum.BOUND] = led_speed(pos[e], before, dt, touch, shallow, rim, rise)
        if kind == Kind.SOFT:
            if e == 0 or ids[e - 1] != ids[e] or R[e - 1] != R[e]:
                softened = _softening(e, ne, ids, nnz, adr, column, J, R, mobility)
            data[e, Datum.DRAG] = 1.0 / (softened * R[e])
            data[e, Datum.BOUND] = dt * aref[e] + before
        elif kind == Kind.BOX:
            data[e, Datum.LIMIT] = dt * loss[e]
        elif kind == Kind.CONTACT:
            data[e, Datum.BOUND] = -pos[e] / dt if pos[e] > touch else 0.0
        _name_row(key, e, kinds[e], max(ids[e], -1 - ids[e]), e)  # either way, hidden or not
    return ne + nf + nl, columns, values


@leaf
def _copy_rows(b: Blocks, J, adr, e, dim, width, entry, pyramidal, friction):
    """Rows of one contact: normal, tangents, spin, rolling."""
    if pyramidal and dim > 1:
        for k in range(width):
            b.value[entry + k] = 0.5 * (J[adr[e] + k] + J[adr[e + 1] + k])
        for r in range(1, dim):
            up, down = adr[e + 2 * r - 2], adr[e + 2 * r - 1]
            scale = 0.5 / friction[r - 1]
            for k in range(width):
                b.value[entry + r * width + k] = scale * (J[up + k] - J[down + k])
    else:
        for r in range(dim):
            for k in range(width):
                b.value[entry + r * width + k] = J[adr[e + r] + k]


@leaf
def _scale_row(b: Blocks, entry, width, ratio):
    """Scales a row, whose entries begin there, by the ratio of its coefficient to another one's."""
    if ratio != 1.0:
        for k in range(width):
            b.value[entry + k] *= ratio


@leaf
def _read_friction(b: Blocks, i, dim, width, entry, friction, place):
    """Coefficients of block i; a second row with another one than the first is scaled."""
    data = b.data
    if dim > 1:
        if friction[0] > LEAST_FRICTION:
            data[i, Datum.SLIDE] = friction[0]
        place[i, Place.RATIO] = friction[1] / friction[0]
        _scale_row(b, entry + 2 * width, width, place[i, Place.RATIO])
    if dim > 3 and friction[2] > LEAST_FRICTION:
        data[i, Datum.SPIN] = friction[2]
    if dim > 4:
        if friction[3] > LEAST_FRICTION:
            data[i, Datum.ROLL] = friction[3]
        place[i, Place.ROLL_RATIO] = friction[4] / friction[3]
        _scale_row(b, entry + 5 * width, width, place[i, Place.ROLL_RATIO])


@leaf
def has_mesh(m, first, second):
    """Whether one of two geoms is a mesh."""
    return MESH in kinds_of(m, first, second)


@leaf
def _add_surface(m, d, geom, sign, position, frame, out):
    """out (3,) += sign times the velocity of the geom's moving surface, in its own body, along the
    tangents of a contact and about its normal. MuJoCo has these numbers in its contacts, for the
    frames that its own collision detection gave them."""
    given = numbers(pointer(m + _SURFACE) + 48 * geom, 6)
    centre = numbers(pointer(d + _GEOM_POS) + 24 * geom, 3)
    turn = numbers(pointer(d + _GEOM_MAT) + 72 * geom, 9)
    v, w = np.zeros(3), np.zeros(3)
    for k in range(3):
        for c in range(3):
            v[k] += turn[3 * k + c] * given[c]
            w[k] += turn[3 * k + c] * given[3 + c]
    x, y, z = position[0] - centre[0], position[1] - centre[1], position[2] - centre[2]
    v[0] += w[1] * z - w[2] * y
    v[1] += w[2] * x - w[0] * z
    v[2] += w[0] * y - w[1] * x
    for k in range(3):
        out[0] += sign * v[k] * frame[3 + k]
        out[1] += sign * v[k] * frame[6 + k]
        out[2] += sign * w[k] * frame[k]


@kernel
def _read_contacts(
    m, d, b: Blocks, viscosity, near, rough, deep, bends, key, place, count, columns, values
):  # fmt: skip
    """Blocks of contacts, after the first `count`; how many there are then."""
    nefc, ncon = integer(d + _NEFC), integer(d + _NCON)
    dt = number(m + _TIMESTEP)
    nnz, adr = _entries(d, nefc)
    total = adr[nefc - 1] + nnz[nefc - 1]
    column, J = integers(pointer(d + _J_COL), total), numbers(pointer(d + _J), total)
    pyramidal = integer(m + _CONE) == PYRAMIDAL
    moves = flags(m + _MOVES, 1)[0] != 0
    contacts = pointer(d + _CONTACT)
    for c in range(ncon):
        contact = contacts + c * _CONTACT_SIZE
        e = integer(contact + _ADDRESS)
        if e <= HIDDEN:
            e = HIDDEN - e
            integers(contact + _ADDRESS, 1)[0] = e
            integers(contact + _EXCLUDE, 1)[0] = 0
        if e < 0:
            continue
        dim, at, entry, width = integer(contact + _DIM), columns, values, np.int64(nnz[e])
        columns, values = _new_block(b, count, np.int64(Kind.CONTACT), dim, width, at, entry, place)
        for k in range(width):
            b.column[at + k] = column[adr[e] + k]
        friction = numbers(contact + _FRICTION, 5)
        _copy_rows(b, J, adr, e, dim, width, entry, pyramidal, friction)
        _read_friction(b, count, dim, width, entry, friction, place)
        if dim > 1:
            b.data[count, Datum.DRAG] = dt * viscosity
        gap = number(contact + _DIST)
        place[count, Place.GAP] = gap
        position, geoms = numbers(contact + _POS, 3), integers(contact + _GEOM, 2)
        closed = rough if has_mesh(m, geoms[0], geoms[1]) else near
        if gap > closed:
            if bends and gap <= departure(m, d, geoms[0], geoms[1], position, b.velocity, dt):
                place[count, Place.BENT] = 1.0
            else:
                b.data[count, Datum.BOUND] = -gap / dt
        if gap < 0.0 and gap < -deep * smaller_radius(m, geoms[0], geoms[1]):
            for k in (Datum.SLIDE, Datum.SPIN, Datum.ROLL, Datum.DRAG):
                b.data[count, k] = 0.0
        if moves and dim > 1:
            surface, frame = b.data[count, Datum.SURFACE :], numbers(contact + _FRAME, 9)
            _add_surface(m, d, geoms[0], -1.0, position, frame, surface)
            _add_surface(m, d, geoms[1], 1.0, position, frame, surface)
            surface[1] *= place[count, Place.RATIO]
        for k in range(3):
            place[count, Place.X + k] = position[k]
        key[count, Key.FIRST] = geoms[0]
        key[count, Key.SECOND] = geoms[1]
        key[count, Key.INDEX] = c
        key[count, Key.ROW] = e
        count += 1
    return count


@kernel
def merge_gaps(m, b: Blocks, begin, count, key):
    """Gives contacts of one pair whose gaps are all but equal (`SAME_GAP`) the smallest of them, so
    that nothing is let in deeper. Blocks from `begin` on; a pair's stand together."""
    dt = number(m + _TIMESTEP)
    bound = b.data[:, Datum.BOUND]
    i = begin
    while i < count:
        end = i + 1
        while end < count and key[end, 0] == key[i, 0] and key[end, 1] == key[i, 1]:
            end += 1
        if end - i > 1 and key[i, Key.INDEX] >= 0:
            alike = SAME_GAP * smaller_radius(m, key[i, 0], key[i, 1]) / dt
            # The largest bound is the smallest gap; those below it by little take it over, then
            # the largest of what is left, and so on.
            limit = np.inf
            while True:
                most = -np.inf
                for k in range(i, end):
                    if bound[k] < limit and bound[k] > most:
                        most = bound[k]
                if most == -np.inf:
                    break
                limit = most - alike
                for k in range(i, end):
                    if bound[k] < most and bound[k] >= limit:
                        bound[k] = most
        i = end


@kernel
def read_rows(
    m, d, b: Blocks, rigid, viscosity, touch, near, rough, shallow, deep, bends, key, place
):  # fmt: skip
    """Fills the blocks and what identifies them; returns how many.

    viscosity [N s/m]; gaps to limits up to `touch` [m] count as none, of contacts up to `near`,
    of meshes up to `rough`, and if `bends` up to what their paths part by (`arcs.py`);
    shallow: overlap that a step takes back whole; deep: `DEEP`, or infinite.
    """
    if integer(d + _NEFC) == 0:
        return 0
    begin, columns, values = _read_single_rows(m, d, b, rigid, touch, shallow, key, place)
    count = _read_contacts(
        m, d, b, viscosity, near, rough, deep, bends, key, place, begin, columns, values
    )
    merge_gaps(m, b, begin, count, key)
    return count


@kernel
def read_normals(d, count, key):
    """(count, 3) normals of the blocks that are contacts between geoms, from the first to the
    second; of others zero."""
    out = np.zeros((count, 3))
    contacts = pointer(d + _CONTACT)
    for i in range(count):
        if key[i, Key.INDEX] >= 0:
            normal = numbers(contacts + key[i, Key.INDEX] * _CONTACT_SIZE + _FRAME, 3)
            for k in range(3):  # a row at once has Numba compile what it says of wrong shapes
                out[i, k] = normal[k]
    return out
