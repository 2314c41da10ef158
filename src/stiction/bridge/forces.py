"""What a step leaves in MuJoCo's rows and contacts: forces, and what its sensors are to see."""

from __future__ import annotations

import mujoco

from stiction.bridge.layout import integer, integers, number, numbers, offset, pointer, size_of
from stiction.bridge.rows import HIDDEN, Key, Place
from stiction.contact.problem.blocks import Blocks, Head
from stiction.kernels.compile import kernel

_CONTACT_SIZE = size_of("mjContact")
_DIST, _FRICTION, _ADDRESS, _EXCLUDE = (
    offset("mjContact", name) for name in ("dist", "friction", "efc_address", "exclude")
)
_TIMESTEP = offset("mjModel", "opt", "timestep")
_CONE = offset("mjModel", "opt", "cone")
_NCON, _NEFC, _NE, _NF, _NL, _CONTACT = (
    offset("mjData", name) for name in ("ncon", "nefc", "ne", "nf", "nl", "contact")
)
_EFC_POS, _EFC_FORCE, _EFC_ID, _EFC_MARGIN = (
    offset("mjData", f"efc_{k}") for k in ("pos", "force", "id", "margin")
)
PYRAMIDAL = int(mujoco.mjtCone.mjCONE_PYRAMIDAL)


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
def write_forces(m, d, b: Blocks, count, f, key, place):
    """Writes impulses f as efc_force."""
    nefc = integer(d + _NEFC)
    if nefc == 0:
        return
    dt = number(m + _TIMESTEP)
    force = numbers(pointer(d + _EFC_FORCE), nefc)
    for e in range(nefc):
        force[e] = 0.0
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
