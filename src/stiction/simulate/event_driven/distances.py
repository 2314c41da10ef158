"""Contacts with true distances and all constraint rows of a state, as dense arrays.

MuJoCo's contacts within a margin carry the distance of the two geoms, and agree with
`mj_geomDistance` to 1e-16 for every pair, planes and height fields included, at gaps from 1e-2 to
1e-7 m. There are three exceptions (measured, MuJoCo 4.0):

- several contacts of one pair of convex geoms (cylinder, mesh, capsule on either) may have
  distances off by 1e-2 m and normals off by a radian. Where the nearest of them is not as near as
  `mj_geomDistance` says, or has another normal, that one witness takes their place
  (`mending.py`); those of cylinders and capsules side by side are exact (`cylinders.py`);
- two boxes edge to edge at 1e-3 m seem up to 1e-5 m farther apart than they are; at 1e-5 m they
  are exact. Bounds on the time of impact allow for it;
- a height field has one contact per cell, which jumps about below a face, fifty at most, and some
  with the sides of cells. Contacts of corners, edges and faces take their place (`terrain`).

Another pair of which MuJoCo sees one contact only has one here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, library
from stiction.bridge.layout import offset, size_of
from stiction.bridge.rows import LEAST_FRICTION
from stiction.kernels.compile import kernel, leaf, lean
from stiction.kernels.dense import row_dot
from stiction.simulate.event_driven.snapping import snap_joints
from stiction.simulate.time_stepping.dependent import DEPENDENT_SHARE, POINT_ROWS

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

RADIAN_LENGTH = 0.01
"""Distance [m] that counts as much as a radian between axes, when contacts are matched."""

PRECISE = 1e-10
"""Tolerance of MuJoCo's convex collisions [m]; its own default of 1e-6 is ours for overlap."""

# Kernels, typed by Numba and not here.
integer: Any = layout.integer
number: Any = layout.number
pointer: Any = layout.pointer
integers: Any = layout.integers
numbers: Any = layout.numbers
table: Any = layout.table
full_mass: Any = library.full_mass

_CONTACT_SIZE = size_of("mjContact")
_DIST, _POS, _FRAME, _FRICTION, _DIM, _GEOM, _ADDRESS = (
    offset("mjContact", name)
    for name in ("dist", "pos", "frame", "friction", "dim", "geom", "efc_address")
)
_NCON, _NEFC, _NE, _NF, _NL, _CONTACT = (
    offset("mjData", name) for name in ("ncon", "nefc", "ne", "nf", "nl", "contact")
)
_J, _POS_ROW, _LOSS, _TYPE, _ID = (
    offset("mjData", f"efc_{name}") for name in ("J", "pos", "frictionloss", "type", "id")
)

_SMOOTH, _ACT_DOT, _CVEL, _XPOS = (
    offset("mjData", name) for name in ("qfrc_smooth", "act_dot", "cvel", "geom_xpos")
)
_NA, _NGEOM, _NBODY = (offset("mjModel", name) for name in ("na", "ngeom", "nbody"))
_MARGIN, _RBOUND, _BODY = (
    offset("mjModel", f"geom_{name}") for name in ("margin", "rbound", "bodyid")
)


class Snapshot(NamedTuple):
    """What constrains a state: nc contacts and limits, ne equality rows, nf dry joints, ns rows of
    torsional and rolling friction. Copies: they stay when the MjData moves on."""

    mass: Array  # (nv, nv)
    force: Array  # (nv,) applied, passive, actuator and bias forces [N, N m]
    act_dot: Array  # (na,)
    normal: Array  # (nc, nv)
    tangent: Array  # (nc, 2, nv) the second scaled by `ratio`
    gap: Array  # (nc,) [m, rad]
    friction: Array  # (nc,) along the first tangent
    ratio: Array  # (nc,) second over first coefficient
    point: Array  # (nc, 3) [m]; of a limit (+-1, 0, 0) by its side
    axis: Array  # (nc, 3) from the first geom to the second; zero for a limit
    pair: Indices  # (nc, 2) geoms; of a limit -1 - its type, its id
    number: Indices  # (nc,) in `data.contact`, or -1
    row: Indices  # (nc,) first row in efc
    joint: Array  # (ne, nv)
    error: Array  # (ne,) [m, rad]
    dry: Array  # (nf, nv)
    dry_limit: Array  # (nf,) [N, N m]
    spin: Array  # (ns, nv)
    spin_contact: Indices  # (ns,)
    spin_friction: Array  # (ns,) [m]
    reach: Array  # (ngeom,) margins within which contacts were looked for [m]

    @property
    def nc(self) -> int:
        """Contacts and limits within the margins."""
        return len(self.gap)


@kernel
def match(
    pair: Indices, point: Array, axis: Array, pairs: Indices, points: Array, axes: Array
) -> Indices:
    """(n,) for each contact by its pair of geoms, its point and its axis, the nearest one of that
    pair among others, or -1. Axes tell apart what touches in one point, like a corner in a groove.
    """
    found = np.full(pair.shape[0], -1)
    for i in range(pair.shape[0]):
        near = np.inf
        for j in range(pairs.shape[0]):
            if pairs[j, 0] == pair[i, 0] and pairs[j, 1] == pair[i, 1]:
                far = 0.0
                for k in range(3):
                    far += (points[j, k] - point[i, k]) ** 2
                    far += (RADIAN_LENGTH * (axes[j, k] - axis[i, k])) ** 2
                if far < near:
                    near = far
                    found[i] = j
    return found


@kernel
def read_rows(d: int, nv: int) -> tuple[Any, ...]:
    """The arrays of a `Snapshot` from `normal` to `spin_friction`, out of the data at d."""
    ne, nf, nl = integer(d + _NE), integer(d + _NF), integer(d + _NL)
    nefc, ncon = integer(d + _NEFC), integer(d + _NCON)
    rows = table(pointer(d + _J), nefc, nv)
    contacts = pointer(d + _CONTACT)
    nc, ns = nl, 0
    for c in range(ncon):
        contact = contacts + c * _CONTACT_SIZE
        if integer(contact + _ADDRESS) >= 0:
            nc += 1
            ns += max(0, integer(contact + _DIM) - 3)
    normal, tangent = np.zeros((nc, nv)), np.zeros((nc, 2, nv))
    gap, friction, ratio = np.zeros(nc), np.zeros(nc), np.ones(nc)
    point, axis = np.zeros((nc, 3)), np.zeros((nc, 3))
    pair = np.zeros((nc, 2), np.int64)
    index, row = np.full(nc, -1), np.zeros(nc, np.int64)
    joint, dry, spin = np.zeros((ne, nv)), np.zeros((nf, nv)), np.zeros((ns, nv))
    error, limit = np.zeros(ne), np.zeros(nf)
    parent, resist = np.zeros(ns, np.int64), np.zeros(ns)
    _read_joints(d, rows, joint, error, dry, limit)
    _read_limits(d, rows, normal, gap, pair, row, point)
    _read_contacts(
        d, rows, normal, tangent, gap, friction, ratio, point, axis, pair, index, row, spin, parent,
        resist,
    )  # fmt: skip
    return (
        normal, tangent, gap, friction, ratio, point, axis, pair, index, row, joint, error, dry,
        limit, spin, parent, resist,
    )  # fmt: skip


@kernel
def snap_rows(d: int, mass: Array, joint: Array) -> None:
    """`snap_joints` of the equality rows of the data at d."""
    if joint.shape[0] > 1:
        which = integers(pointer(d + _ID), joint.shape[0])
        group, row = np.empty(joint.shape[0], np.int64), 0
        for i in range(joint.shape[0]):
            row = row + 1 if i > 0 and which[i] == which[i - 1] else 0
            group[i] = 2 * which[i] + (1 if row >= POINT_ROWS else 0)
        snap_joints(mass, joint, group, DEPENDENT_SHARE)


@leaf
def copy_row(rows: Array, e: int, out: Array, i: int) -> None:
    """out[i] := rows[e]; assigned as slices they would count references."""
    for k in range(out.shape[1]):
        out[i, k] = rows[e, k]


@lean
def _read_joints(d: int, rows: Array, joint: Array, error: Array, dry: Array, limit: Array) -> None:
    """Equality rows and dry joints."""
    ne, nf, nefc = joint.shape[0], dry.shape[0], rows.shape[0]
    pos, loss = numbers(pointer(d + _POS_ROW), nefc), numbers(pointer(d + _LOSS), nefc)
    for e in range(ne):
        error[e] = pos[e]
        copy_row(rows, e, joint, e)
    for e in range(nf):
        limit[e] = loss[ne + e]
        copy_row(rows, ne + e, dry, e)


@lean
def _read_limits(
    d: int, rows: Array, normal: Array, gap: Array, pair: Indices, row: Indices, point: Array
) -> None:
    """Limits, which come before the contacts."""
    first, nefc = integer(d + _NE) + integer(d + _NF), rows.shape[0]
    pos = numbers(pointer(d + _POS_ROW), nefc)
    kind, ident = integers(pointer(d + _TYPE), nefc), integers(pointer(d + _ID), nefc)
    for i in range(integer(d + _NL)):
        e = first + i
        copy_row(rows, e, normal, i)
        gap[i] = pos[e]
        pair[i, 0] = -1 - kind[e]
        pair[i, 1] = ident[e]
        row[i] = e
        point[i, 0] = _side(rows, e)


@leaf
def _side(rows: Array, e: int) -> float:
    """Which of its two limits a row belongs to."""
    total = 0.0
    for k in range(rows.shape[1]):
        total += rows[e, k]
    return np.sign(total)


@lean
def _read_contacts(
    d: int, rows: Array, normal: Array, tangent: Array, gap: Array, friction: Array, ratio: Array,
    point: Array, axis: Array, pair: Indices, index: Indices, row: Indices, spin: Array,
    parent: Indices, resist: Array,
) -> None:  # fmt: skip
    """Contacts that have rows, after the limits."""
    contacts, nv = pointer(d + _CONTACT), rows.shape[1]
    i, s = integer(d + _NL), 0
    for c in range(integer(d + _NCON)):
        contact = contacts + c * _CONTACT_SIZE
        e = integer(contact + _ADDRESS)
        if e < 0:
            continue
        dim = integer(contact + _DIM)
        mu = numbers(contact + _FRICTION, 5)
        place, frame = numbers(contact + _POS, 3), numbers(contact + _FRAME, 3)
        geoms = integers(contact + _GEOM, 2)
        copy_row(rows, e, normal, i)
        gap[i] = number(contact + _DIST)
        index[i], row[i] = c, e
        for k in range(3):
            point[i, k], axis[i, k] = place[k], frame[k]
        pair[i, 0], pair[i, 1] = geoms[0], geoms[1]
        if dim > 1:
            ratio[i] = mu[1] / mu[0]
            friction[i] = mu[0] if mu[0] > LEAST_FRICTION else 0.0
            for k in range(nv):
                tangent[i, 0, k] = rows[e + 1, k]
                tangent[i, 1, k] = rows[e + 2, k] * ratio[i]
        for r in range(3, dim):
            copy_row(rows, e + r, spin, s)
            parent[s] = i
            resist[s] = mu[r - 1] if mu[r - 1] > LEAST_FRICTION else 0.0
            s += 1
        i += 1


@lean
def row_speeds(
    d: int, qvel: Array, pair: Indices, point: Array, axis: Array, speed: Array, far: Array,
    along: Array,
) -> None:  # fmt: skip
    """Speeds along the rows of the data at d for the velocities qvel: of the contacts nearest to
    those given, by normal and tangents, into speed (n, 3), and how far those are into far (n,), inf
    where there is none; of joints into along (ne,). As `read_rows` and `match` would have it."""
    n, nv, nefc = pair.shape[0], qvel.shape[0], integer(d + _NEFC)
    ne, nf, nl = integer(d + _NE), integer(d + _NF), integer(d + _NL)
    rows = table(pointer(d + _J), nefc, nv)
    kind, ident = integers(pointer(d + _TYPE), nefc), integers(pointer(d + _ID), nefc)
    for e in range(along.shape[0]):
        along[e] = row_dot(rows, e, qvel) if e < ne else 0.0
    for i in range(n):
        far[i], speed[i, 0], speed[i, 1], speed[i, 2] = np.inf, 0.0, 0.0, 0.0
        if pair[i, 0] >= 0:
            far[i] = _contact_speed(d, rows, qvel, pair, point, axis, i, speed)
            continue
        for e in range(ne + nf, ne + nf + nl):
            if pair[i, 0] == -1 - kind[e] and pair[i, 1] == ident[e]:
                apart = abs(_side(rows, e) - point[i, 0])
                if apart < far[i]:
                    far[i], speed[i, 0] = apart, row_dot(rows, e, qvel)


@lean
def _contact_speed(
    d: int, rows: Array, qvel: Array, pair: Indices, point: Array, axis: Array, i: int, speed: Array
) -> float:
    """Speeds along the rows of the contact nearest to the i-th into speed[i]; how far it is."""
    contacts, nearest, near = pointer(d + _CONTACT), 0, np.inf
    for c in range(integer(d + _NCON)):
        contact = contacts + c * _CONTACT_SIZE
        geoms = integers(contact + _GEOM, 2)
        if integer(contact + _ADDRESS) < 0 or geoms[0] != pair[i, 0] or geoms[1] != pair[i, 1]:
            continue
        place, frame = numbers(contact + _POS, 3), numbers(contact + _FRAME, 3)
        apart = 0.0
        for k in range(3):
            apart += (place[k] - point[i, k]) ** 2 + (RADIAN_LENGTH * (frame[k] - axis[i, k])) ** 2
        if apart < near:
            nearest, near = contact, apart
    if nearest == 0:
        return np.inf
    e, far = integer(nearest + _ADDRESS), 0.0
    place, mu = numbers(nearest + _POS, 3), numbers(nearest + _FRICTION, 5)
    for k in range(3):
        far = max(far, abs(place[k] - point[i, k]))
    speed[i, 0] = row_dot(rows, e, qvel)
    if integer(nearest + _DIM) > 1:
        speed[i, 1] = row_dot(rows, e + 1, qvel)
        speed[i, 2] = row_dot(rows, e + 2, qvel) * (mu[1] / mu[0])
    return far


@kernel
def closing_bound(
    m: int, d: int, index: Indices, pair: Indices, point: Array, axis: Array, speed: Array
) -> Array:
    """(nc,) largest speed at which each contact's gap can close by the velocities of data [m/s].

    Mirtich's bound: along the direction n between the witnesses no point of a body moves faster
    than the witness itself and |w x n| times its distance from it, which is at most the geom's
    radius and the witness' distance from the geom's centre. speed (nc,): N v. Articulated bodies
    enter with the velocities of their links. index, pair, point, axis: as in `Snapshot`.
    """
    ngeom, nbody = pointer(m + _NGEOM), pointer(m + _NBODY)
    body, radius = integers(pointer(m + _BODY), ngeom), numbers(pointer(m + _RBOUND), ngeom)
    turn, place = numbers(pointer(d + _CVEL), 6 * nbody), numbers(pointer(d + _XPOS), 3 * ngeom)
    bound = -speed
    for i in range(index.shape[0]):
        if index[i] < 0:
            continue
        for side in range(2):
            geom = pair[i, side]
            along, size, away = 0.0, 0.0, 0.0
            for k in range(3):
                w = turn[6 * body[geom] + k]
                along += w * axis[i, k]
                size += w * w
                away += (place[3 * geom + k] - point[i, k]) ** 2
            across = np.sqrt(max(size - along * along, 0.0))
            bound[i] += across * (radius[geom] + np.sqrt(away))
    return bound


@kernel
def read(m: int, d: int, nv: int) -> Snapshot:
    """What the data at d holds."""
    mass, force, act_dot = read_loads(m, d, nv)
    reach = numbers(pointer(m + _MARGIN), pointer(m + _NGEOM)).copy()
    (
        normal, tangent, gap, friction, ratio, point, axis, pair, index, row, joint, error, dry,
        limit, spin, parent, resist,
    ) = read_rows(d, nv)  # fmt: skip
    snap_rows(d, mass, joint)
    return Snapshot(
        mass, force, act_dot, normal, tangent, gap, friction, ratio, point, axis, pair, index,
        row, joint, error, dry, limit, spin, parent, resist, reach,
    )  # fmt: skip


@kernel
def read_forces(m: int, d: int, seen: Snapshot) -> Snapshot:
    """`seen` with the forces and margins that the data at d has now, at the same positions."""
    force = numbers(pointer(d + _SMOOTH), seen.force.shape[0]).copy()
    act_dot = numbers(pointer(d + _ACT_DOT), pointer(m + _NA)).copy()
    reach = numbers(pointer(m + _MARGIN), pointer(m + _NGEOM)).copy()
    return Snapshot(
        seen.mass, force, act_dot, seen.normal, seen.tangent, seen.gap, seen.friction, seen.ratio,
        seen.point, seen.axis, seen.pair, seen.number, seen.row, seen.joint, seen.error, seen.dry,
        seen.dry_limit, seen.spin, seen.spin_contact, seen.spin_friction, reach,
    )  # fmt: skip


@kernel
def read_loads(m: int, d: int, nv: int) -> tuple[Array, Array, Array]:
    """(mass, force, act_dot) of a `Snapshot`."""
    mass = np.zeros((nv, nv))
    if nv > 0:
        full_mass(m, d, mass.ctypes.data)
    force = numbers(pointer(d + _SMOOTH), nv).copy()
    return mass, force, numbers(pointer(d + _ACT_DOT), pointer(m + _NA)).copy()
