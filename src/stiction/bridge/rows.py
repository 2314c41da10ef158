"""MuJoCo's constraint rows as blocks of a contact problem, and impulses back as its forces.

Read after `mj_makeConstraint` and `mj_fwdVelocity` (sparse Jacobian). What becomes what:

    equality          soft: folded into mass and momentum, as stiff as MuJoCo makes it;
                      rigid: a HOLD block
    frictionloss      a BOX block with the limit h * frictionloss
    limit             a CONTACT block of one row, gap = efc_pos
    contact           a CONTACT block; of a pyramidal cone the edges J_n +- mu J_t are taken apart

A soft row obeys MuJoCo's J a + R f = aref. With F = h f, that is J (v+ - v) + R F = h aref, so
the mass gets J'J / R and the momentum J' h aref / R.

A contact that touches or overlaps has the bound 0, one at a distance -gap / h. Friction that
MuJoCo raised to its smallest value is none. Two sliding coefficients that differ make an
ellipse: the second row is scaled by their ratio, so that both have the first one's disc.
"""

from __future__ import annotations

from enum import IntEnum

import mujoco
import numpy as np

from stiction.bridge.layout import integer, integers, number, numbers, offset, pointer, size_of
from stiction.contact.problem.blocks import Blocks, Datum, Head, Kind
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.envelope import close_envelope

_CONTACT_SIZE = size_of("mjContact")
_DIST = offset("mjContact", "dist")
_POS = offset("mjContact", "pos")
_FRICTION = offset("mjContact", "friction")
_FRAME = offset("mjContact", "frame")
_DIM = offset("mjContact", "dim")
_GEOM = offset("mjContact", "geom")
_ADDRESS = offset("mjContact", "efc_address")
_EXCLUDE = offset("mjContact", "exclude")

_TIMESTEP = offset("mjModel", "opt", "timestep")
_CONE = offset("mjModel", "opt", "cone")
_M_NNZ, _M_ADR, _M_COL = (offset("mjModel", f"M_{k}") for k in ("rownnz", "rowadr", "colind"))
_D_NNZ, _D_ADR, _D_COL = (offset("mjModel", f"D_{k}") for k in ("rownnz", "rowadr", "colind"))
_M = offset("mjData", "M")
_DERIV = offset("mjData", "qDeriv")
_NCON, _NEFC, _NE, _NF, _NL = (
    offset("mjData", name) for name in ("ncon", "nefc", "ne", "nf", "nl")
)
_CONTACT = offset("mjData", "contact")
_J_NNZ, _J_ADR, _J_COL = (offset("mjData", f"efc_J_{k}") for k in ("rownnz", "rowadr", "colind"))
_J = offset("mjData", "efc_J")
_EFC_POS, _EFC_R, _EFC_AREF, _EFC_LOSS, _EFC_FORCE, _EFC_TYPE, _EFC_ID, _EFC_MARGIN = (
    offset("mjData", f"efc_{k}")
    for k in ("pos", "R", "aref", "frictionloss", "force", "type", "id", "margin")
)  # fmt: skip
PYRAMIDAL = int(mujoco.mjtCone.mjCONE_PYRAMIDAL)
LEAST_FRICTION = float(mujoco.mjMINMU)

HIDDEN = -2
"""Less a row's number: the address of a contact that `hide_ahead` hid."""

NOISE = 1e-13
"""Entry of a rigid equality over the largest one that is rounding: a loop in a plane has rows
across it that would be zero."""


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


@leaf
def _entries(d, nefc):
    """The rows of efc_J: nonzeros and start of each."""
    return integers(pointer(d + _J_NNZ), nefc), integers(pointer(d + _J_ADR), nefc)


@kernel
def widen_envelope(m, d, first):
    """Lets the envelope first (nv,) hold what is not zero in qDeriv: a free body's inertia may be
    diagonal where the drag of a fluid on it is not."""
    nv = first.shape[0]
    count, start = integers(pointer(m + _D_NNZ), nv), integers(pointer(m + _D_ADR), nv)
    total = start[nv - 1] + count[nv - 1]
    column, value = integers(pointer(m + _D_COL), total), numbers(pointer(d + _DERIV), total)
    for j in range(nv):
        for k in range(start[j], start[j] + count[j]):
            if value[k] != 0.0:
                low, high = min(column[k], j), max(column[k], j)
                first[high] = min(first[high], low)


@kernel
def read_mass(m, d, b: Blocks, derivatives):
    """Fills mass and its envelope with M, less h qDeriv if `derivatives`."""
    mass, first = b.mass, b.first
    nv = first.shape[0]
    count, start = integers(pointer(m + _M_NNZ), nv), integers(pointer(m + _M_ADR), nv)
    total = start[nv - 1] + count[nv - 1]
    column, value = integers(pointer(m + _M_COL), total), numbers(pointer(d + _M), total)
    for j in range(nv):
        first[j] = column[start[j]]
    if derivatives:
        widen_envelope(m, d, first)
    close_envelope(first)
    for j in range(nv):
        for k in range(first[j], j):
            mass[j, k] = 0.0
        for k in range(start[j], start[j] + count[j]):
            mass[j, column[k]] = value[k]
    if derivatives:
        dt = number(m + _TIMESTEP)
        count, start = integers(pointer(m + _D_NNZ), nv), integers(pointer(m + _D_ADR), nv)
        total = start[nv - 1] + count[nv - 1]
        column, value = integers(pointer(m + _D_COL), total), numbers(pointer(d + _DERIV), total)
        for j in range(nv):
            for k in range(start[j], start[j] + count[j]):
                at = column[k]
                if at == j:
                    mass[j, j] -= dt * value[k]
                else:
                    mass[max(at, j), min(at, j)] -= 0.5 * dt * value[k]


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


@kernel
def fold_equalities(m, d, b: Blocks):
    """Adds soft equality rows to mass and push."""
    mass, first, push = b.mass, b.first, b.push
    ne, nefc = integer(d + _NE), integer(d + _NEFC)
    if ne == 0:
        return
    nnz, adr = _entries(d, nefc)
    column, J = (
        integers(pointer(d + _J_COL), adr[ne - 1] + nnz[ne - 1]),
        numbers(pointer(d + _J), adr[ne - 1] + nnz[ne - 1]),
    )
    R, aref = numbers(pointer(d + _EFC_R), ne), numbers(pointer(d + _EFC_AREF), ne)
    dt = number(m + _TIMESTEP)
    nv = first.shape[0]
    # The envelope first; what it gains is zero.
    for e in range(ne):
        low = column[adr[e]] if nnz[e] > 0 else nv
        for k in range(1, nnz[e]):
            j = column[adr[e] + k]
            for i in range(low, first[j]):
                mass[j, i] = 0.0
            first[j] = min(first[j], low)
    for j in range(nv - 1, -1, -1):
        for i in range(first[j] + 1, j):
            if first[i] > first[j]:
                for k in range(first[j], first[i]):
                    mass[i, k] = 0.0
                first[i] = first[j]
    for e in range(ne):
        stiffness = 1.0 / R[e]
        for k in range(nnz[e]):
            j = column[adr[e] + k]
            scaled = stiffness * J[adr[e] + k]
            push[j] += scaled * dt * aref[e]
            for c in range(k + 1):
                mass[j, column[adr[e] + c]] += scaled * J[adr[e] + c]


@kernel
def hide_limits(d, touch):
    """Makes limits that are only within reach look absent to MuJoCo's sensors, which find a limit
    by its id and take its margin off; `show_limits` undoes it."""
    ne, nf, nl, nefc = integer(d + _NE), integer(d + _NF), integer(d + _NL), integer(d + _NEFC)
    pos, margin = numbers(pointer(d + _EFC_POS), nefc), numbers(pointer(d + _EFC_MARGIN), nefc)
    ids = integers(pointer(d + _EFC_ID), nefc)
    for e in range(ne + nf, ne + nf + nl):
        margin[e] = 0.0
        if pos[e] > touch:
            ids[e] = -1 - ids[e]


@kernel
def show_limits(d):
    """Gives all limits their ids."""
    ne, nf, nl, nefc = integer(d + _NE), integer(d + _NF), integer(d + _NL), integer(d + _NEFC)
    ids = integers(pointer(d + _EFC_ID), nefc)
    for e in range(ne + nf, ne + nf + nl):
        ids[e] = max(ids[e], -1 - ids[e])


@kernel
def hide_ahead(d, touch):
    """Makes contacts at a distance look inactive, so that adhesion does not act through them;
    `read_rows` finds their rows all the same."""
    contacts = pointer(d + _CONTACT)
    for c in range(integer(d + _NCON)):
        contact = contacts + c * _CONTACT_SIZE
        address = integer(contact + _ADDRESS)
        if address >= 0 and number(contact + _DIST) > touch:
            integers(contact + _EXCLUDE, 1)[0] = 1
            integers(contact + _ADDRESS, 1)[0] = HIDDEN - address


@kernel
def exclude_idle(d, count, f, key, place, touch):
    """Marks contacts at a distance that bear no force as MuJoCo marks those in a gap."""
    contacts = pointer(d + _CONTACT)
    for i in range(count):
        if key[i, Key.INDEX] >= 0 and f[i, 0] == 0.0 and place[i, Place.GAP] > touch:
            contact = contacts + key[i, Key.INDEX] * _CONTACT_SIZE
            integers(contact + _EXCLUDE, 1)[0] = 1
            integers(contact + _ADDRESS, 1)[0] = -1


@kernel
def count_blocks(d, rigid):
    """(blocks, entries) that the rows make, at most: room to have before `read_rows`."""
    ne, nefc = integer(d + _NE), integer(d + _NEFC)
    blocks = nefc - (0 if rigid else ne)
    entries = 0
    if nefc > 0:
        nnz, adr = _entries(d, nefc)
        entries = adr[nefc - 1] + nnz[nefc - 1]
    return blocks, entries


@kernel
def read_rows(m, d, b: Blocks, rigid, viscosity, touch, near, key, place):
    """Fills the blocks and what identifies them; returns how many.

    viscosity [N s/m]; gaps to limits up to `touch` [m] count as none, of contacts up to `near`.
    """
    ne, nf, nl = integer(d + _NE), integer(d + _NF), integer(d + _NL)
    nefc, ncon = integer(d + _NEFC), integer(d + _NCON)
    if nefc == 0:
        return 0
    dt = number(m + _TIMESTEP)
    nnz, adr = _entries(d, nefc)
    total = adr[nefc - 1] + nnz[nefc - 1]
    column, J = integers(pointer(d + _J_COL), total), numbers(pointer(d + _J), total)
    pos, loss = numbers(pointer(d + _EFC_POS), nefc), numbers(pointer(d + _EFC_LOSS), nefc)
    kinds, ids = integers(pointer(d + _EFC_TYPE), nefc), integers(pointer(d + _EFC_ID), nefc)
    data = b.data
    count, columns, values = 0, 0, 0
    largest = 0.0
    if rigid and ne > 0:
        for k in range(adr[ne - 1] + nnz[ne - 1]):
            largest = max(largest, abs(J[k]))
    for e in range(0 if rigid else ne, ne + nf + nl):
        kind = Kind.HOLD if e < ne else (Kind.BOX if e < ne + nf else Kind.CONTACT)
        at, entry = columns, values
        columns, values = _new_block(
            b, count, np.int64(kind), np.int64(1), np.int64(nnz[e]), at, entry, place
        )
        for k in range(nnz[e]):
            b.column[at + k] = column[adr[e] + k]
            b.value[entry + k] = J[adr[e] + k]
            if kind == Kind.HOLD and abs(J[adr[e] + k]) < NOISE * largest:
                b.value[entry + k] = 0.0
        place[count, Place.GAP] = pos[e]
        if kind == Kind.BOX:
            data[count, Datum.LIMIT] = dt * loss[e]
        elif kind == Kind.CONTACT:
            data[count, Datum.BOUND] = -pos[e] / dt if pos[e] > touch else 0.0
        key[count, Key.FIRST] = -1 - kinds[e]
        second = 0
        which = max(ids[e], -1 - ids[e])  # either way, hidden or not
        if count > 0 and key[count - 1, Key.FIRST] == -1 - kinds[e]:
            before = key[count - 1, Key.SECOND]
            if before // 8 == which:
                second = before % 8 + 1
        key[count, Key.SECOND] = 8 * which + second
        key[count, Key.INDEX] = -1
        key[count, Key.ROW] = e
        count += 1
    pyramidal = integer(m + _CONE) == PYRAMIDAL
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
        dim = integer(contact + _DIM)
        at, entry, width = columns, values, np.int64(nnz[e])
        columns, values = _new_block(b, count, np.int64(Kind.CONTACT), dim, width, at, entry, place)
        for k in range(width):
            b.column[at + k] = column[adr[e] + k]
        friction = numbers(contact + _FRICTION, 5)
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
        gap = number(contact + _DIST)
        place[count, Place.GAP] = gap
        data[count, Datum.BOUND] = -gap / dt if gap > near else 0.0
        if dim > 1:
            if friction[0] > LEAST_FRICTION:
                data[count, Datum.SLIDE] = friction[0]
            ratio = friction[1] / friction[0]
            place[count, Place.RATIO] = ratio
            if ratio != 1.0:
                for k in range(width):
                    b.value[entry + 2 * width + k] *= ratio
            data[count, Datum.DRAG] = dt * viscosity
        if dim > 3 and friction[2] > LEAST_FRICTION:
            data[count, Datum.SPIN] = friction[2]
        if dim > 4:
            if friction[3] > LEAST_FRICTION:
                data[count, Datum.ROLL] = friction[3]
            ratio = friction[4] / friction[3]
            place[count, Place.ROLL_RATIO] = ratio
            if ratio != 1.0:
                for k in range(width):
                    b.value[entry + 5 * width + k] *= ratio
        position = numbers(contact + _POS, 3)
        for k in range(3):
            place[count, Place.X + k] = position[k]
        geoms = integers(contact + _GEOM, 2)
        key[count, Key.FIRST] = geoms[0]
        key[count, Key.SECOND] = geoms[1]
        key[count, Key.INDEX] = c
        key[count, Key.ROW] = e
        count += 1
    return count


@kernel
def read_normals(d, count, key):
    """(count, 3) normals of the blocks that are contacts between geoms, from the first to the
    second; of others zero."""
    out = np.zeros((count, 3))
    contacts = pointer(d + _CONTACT)
    for i in range(count):
        if key[i, Key.INDEX] >= 0:
            out[i] = numbers(contacts + key[i, Key.INDEX] * _CONTACT_SIZE + _FRAME, 3)
    return out


@kernel
def write_forces(m, d, b: Blocks, count, f, v, key, place, rigid, qfrc):
    """Writes impulses f as efc_force, and adds the force of soft equalities to qfrc (nv,)."""
    ne, nefc = integer(d + _NE), integer(d + _NEFC)
    if nefc == 0:
        return
    dt = number(m + _TIMESTEP)
    force = numbers(pointer(d + _EFC_FORCE), nefc)
    for e in range(nefc):
        force[e] = 0.0
    if ne > 0 and not rigid:
        nnz, adr = _entries(d, nefc)
        total = adr[ne - 1] + nnz[ne - 1]
        column, J = integers(pointer(d + _J_COL), total), numbers(pointer(d + _J), total)
        R, aref = numbers(pointer(d + _EFC_R), ne), numbers(pointer(d + _EFC_AREF), ne)
        for e in range(ne):
            moved = 0.0
            for k in range(adr[e], adr[e] + nnz[e]):
                moved += J[k] * (v[column[k]] - b.velocity[column[k]])
            force[e] = (aref[e] - moved / dt) / R[e]
            for k in range(adr[e], adr[e] + nnz[e]):
                qfrc[column[k]] += force[e] * J[k]
    pyramidal = integer(m + _CONE) == PYRAMIDAL
    contacts = pointer(d + _CONTACT)
    for i in range(count):
        rows, e = b.head[i, Head.ROWS], key[i, Key.ROW]
        if rows == 1:
            force[e] = f[i, 0] / dt
            continue
        friction = numbers(contacts + key[i, Key.INDEX] * _CONTACT_SIZE + _FRICTION, 5)
        if pyramidal:
            share = f[i, 0] / dt / (rows - 1)
        else:
            force[e] = f[i, 0] / dt
        for r in range(1, rows):
            value = f[i, r] / dt
            if r == 2:
                value *= place[i, Place.RATIO]
            elif r == 5:
                value *= place[i, Place.ROLL_RATIO]
            if pyramidal:
                force[e + 2 * r - 2] = 0.5 * (share + value / friction[r - 1])
                force[e + 2 * r - 1] = 0.5 * (share - value / friction[r - 1])
            else:
                force[e + r] = value
