"""Contacts with true distances and all constraint rows of a state, as dense arrays.

MuJoCo's contacts within a margin carry the distance of the two geoms, and agree with
`mj_geomDistance` to 1e-16 for every pair, planes and height fields included, at gaps from 1e-2 to
1e-7 m. There are three exceptions (measured, MuJoCo 4.0):

- several contacts of one pair of convex geoms (cylinder, mesh, capsule on either) may have
  distances off by 1e-2 m and normals off by a radian. Where the nearest of them is not as near as
  `mj_geomDistance` says, or has another normal, that one witness takes their place
  (`Surveyor.mend`); those of cylinders and capsules side by side are exact (`cylinders.py`);
- two boxes edge to edge at 1e-3 m seem up to 1e-5 m farther apart than they are; at 1e-5 m they
  are exact. Bounds on the time of impact allow for it;
- a height field has one contact per cell, which jumps about below a face, fifty at most, and some
  with the sides of cells. Contacts of corners, edges and faces take their place (`terrain`).

Another pair of which MuJoCo sees one contact only has one here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, margins
from stiction.bridge.geom_types import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH
from stiction.bridge.layout import offset, size_of
from stiction.bridge.rows import LEAST_FRICTION
from stiction.errors import StictionError
from stiction.kernels.compile import kernel
from stiction.terrain.contacts import frame_about
from stiction.terrain.cylinders import refine_parallel
from stiction.terrain.meetings import Ground

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

TILT = 1e-3
"""Sine of the angle by which the normals of a pair may be off before they are replaced."""

TURN = 0.01
"""Distance [m] that counts as much as a radian between axes, when contacts are matched."""

PRECISE = 1e-10
"""Tolerance of MuJoCo's convex collisions [m]; its own default of 1e-6 is ours for overlap."""

# Kernels, typed by Numba and not here.
set_margins: Any = margins.set_margins
integer: Any = layout.integer
number: Any = layout.number
pointer: Any = layout.pointer
integers: Any = layout.integers
numbers: Any = layout.numbers

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

_CONVEX = (CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH)
_ROUND = (CYLINDER, MESH)
_FULL = (int(mujoco.mjtWarning.mjWARN_CONTACTFULL), int(mujoco.mjtWarning.mjWARN_CNSTRFULL))


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


class Surveyor:
    """Evaluates states of a model: its own copy, whose options it sets.

    Rows are dense, cones elliptic (`efc_force` is written in the user's own layout later),
    convex collisions as precise as they get.
    """

    def __init__(self, model: mujoco.MjModel, dt: float, tolerance: float) -> None:
        self.model, self.tolerance = model, tolerance
        self.full = 0
        opt = model.opt
        opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        opt.timestep = dt
        opt.ccd_tolerance = min(opt.ccd_tolerance, PRECISE)
        opt.ccd_iterations = max(opt.ccd_iterations, 200)
        self._round = np.isin(model.geom_type, _ROUND)
        self._convex = np.isin(model.geom_type, _CONVEX)
        self._suspects = bool(self._round.any()) and int(self._convex.sum()) > 1
        self._ground = Ground(model, tolerance)
        self._sides = np.isin(model.geom_type, (CAPSULE, CYLINDER)).sum() > 1
        self._sides |= (model.geom_type == BOX).sum() > 1

    @staticmethod
    def count_full(data: mujoco.MjData) -> int:
        """How often MuJoCo has warned that its arena is full: contacts are missing then."""
        number = data.warning.number
        return int(number[_FULL[0]] + number[_FULL[1]])

    def place(self, data: mujoco.MjData, qpos: Array, rows_alone: bool = False) -> None:
        """Kinematics, inertia, contacts and rows at qpos, within the margins as they are; without
        inertia and transmissions if only rows are asked for."""
        data.qpos[:] = qpos
        if rows_alone:
            mujoco.mj_fwdKinematics(self.model, data)
            self._meet(data)
        elif self._suspects or self._sides or self._ground.features is not None:
            mujoco.mj_fwdKinematics(self.model, data)
            self._constrain(data)
        else:
            mujoco.mj_fwdPosition(self.model, data)

    def survey(
        self, data: mujoco.MjData, qpos: Array, qvel: Array, act: Array, ahead: bool = True
    ) -> Snapshot:
        """The state's snapshot; data is left in that state, evaluated up to its smooth forces.

        ahead: whether to set margins for what can be reached from here within a step.
        """
        model = self.model
        data.qvel[:] = qvel
        data.act[:] = act
        if ahead:
            data.qpos[:] = qpos
            mujoco.mj_fwdKinematics(model, data)
            mujoco.mj_comVel(model, data)
            set_margins(model._address, data._address, data.qvel, data.qvel, data.cvel, 0.0)
            self._constrain(data)
        else:
            self.place(data, qpos)
        if self.count_full(data) != self.full:
            raise StictionError(
                f"MuJoCo's arena of {data.narena} bytes is full at t = {data.time:g} s, so that "
                "contacts would be missing; give the model more: <size memory='...'/>. The step "
                "was not taken"
            )
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_fwdActuation(model, data)
        mujoco.mj_fwdAcceleration(model, data)
        return self.read(data)

    def _constrain(self, data: mujoco.MjData) -> None:
        model = self.model
        mujoco.mj_makeM(model, data)
        mujoco.mj_factorM(model, data)
        self._meet(data)
        mujoco.mj_transmission(model, data)

    def _meet(self, data: mujoco.MjData) -> None:
        """Contacts and rows."""
        model = self.model
        mujoco.mj_collision(model, data)
        self._ground.replace_contacts(model, data)
        if self._suspects and data.ncon > 1:
            self.mend(data)
        if self._sides:
            refine_parallel(model._address, data._address)
        mujoco.mj_makeConstraint(model, data)

    def mend(self, data: mujoco.MjData) -> None:
        """Replaces contacts of convex pairs that are not where the pair is nearest; see the head.

        Between `mj_collision` and `mj_makeConstraint`.
        """
        geoms = data.contact.geom
        first, second = geoms[:, 0], geoms[:, 1]
        doubtful = self._convex[first] & self._convex[second]
        doubtful &= self._round[first] | self._round[second]
        start = 0
        while start < len(geoms):
            end = start + 1
            while end < len(geoms) and (geoms[end] == geoms[start]).all():
                end += 1
            if end - start > 1 and doubtful[start]:
                _mend_pair(self.model, data, start, end, self.tolerance)
            start = end

    def read(self, data: mujoco.MjData) -> Snapshot:
        """The snapshot of what data holds."""
        model = self.model
        mass = np.empty((model.nv, model.nv))
        mujoco.mj_fullM(model, data, mass)
        smooth = (mass, data.qfrc_smooth.copy(), data.act_dot.copy())
        rows = read_rows(data._address, model.nv)
        return Snapshot._make((*smooth, *rows, model.geom_margin.copy()))


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
                    far += (TURN * (axes[j, k] - axis[i, k])) ** 2
                if far < near:
                    near = far
                    found[i] = j
    return found


@kernel
def read_rows(d: int, nv: int) -> tuple[Any, ...]:
    """The arrays of a `Snapshot` from `normal` to `spin_friction`, out of the data at d."""
    ne, nf, nl = integer(d + _NE), integer(d + _NF), integer(d + _NL)
    nefc, ncon = integer(d + _NEFC), integer(d + _NCON)
    rows = numbers(pointer(d + _J), nefc * nv).reshape(nefc, nv)
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
    if nefc > 0:
        pos, loss = numbers(pointer(d + _POS_ROW), nefc), numbers(pointer(d + _LOSS), nefc)
        kind, ident = integers(pointer(d + _TYPE), nefc), integers(pointer(d + _ID), nefc)
        for e in range(ne):
            error[e] = pos[e]
            joint[e] = rows[e]
        for e in range(nf):
            limit[e] = loss[ne + e]
            dry[e] = rows[ne + e]
        for i in range(nl):
            e = ne + nf + i
            normal[i] = rows[e]
            gap[i] = pos[e]
            pair[i, 0] = -1 - kind[e]
            pair[i, 1] = ident[e]
            row[i] = e
            point[i, 0] = np.sign(rows[e].sum())
    i, s = nl, 0
    for c in range(ncon):
        contact = contacts + c * _CONTACT_SIZE
        e = integer(contact + _ADDRESS)
        if e < 0:
            continue
        dim = integer(contact + _DIM)
        mu = numbers(contact + _FRICTION, 5)
        place, frame = numbers(contact + _POS, 3), numbers(contact + _FRAME, 3)
        geoms = integers(contact + _GEOM, 2)
        normal[i] = rows[e]
        gap[i] = number(contact + _DIST)
        index[i], row[i] = c, e
        for k in range(3):
            point[i, k], axis[i, k] = place[k], frame[k]
        pair[i, 0], pair[i, 1] = geoms[0], geoms[1]
        if dim > 1:
            ratio[i] = mu[1] / mu[0]
            friction[i] = mu[0] if mu[0] > LEAST_FRICTION else 0.0
            tangent[i, 0] = rows[e + 1]
            tangent[i, 1] = rows[e + 2] * ratio[i]
        for r in range(3, dim):
            spin[s] = rows[e + r]
            parent[s] = i
            resist[s] = mu[r - 1] if mu[r - 1] > LEAST_FRICTION else 0.0
            s += 1
        i += 1
    return (
        normal, tangent, gap, friction, ratio, point, axis, pair, index, row, joint, error, dry,
        limit, spin, parent, resist,
    )  # fmt: skip


@kernel
def row_speeds(
    d: int, qvel: Array, pair: Indices, point: Array, axis: Array
) -> tuple[Array, Array, Array]:
    """(speeds (n, 3), distances (n,), joint speeds (ne,)) along the rows of the data at d, for the
    velocities qvel: of the contacts nearest to those given, by normal and tangents, and how far
    those are; inf where there is none."""
    nv = qvel.shape[0]
    normal, tangent, _, _, _, points, axes, pairs, _, _, joint, _, _, _, _, _, _ = read_rows(d, nv)
    place = match(pair, point, axis, pairs, points, axes)
    speed, far = np.zeros((place.shape[0], 3)), np.full(place.shape[0], np.inf)
    for i in range(place.shape[0]):
        j = place[i]
        if j < 0:
            continue
        far[i] = 0.0
        for k in range(3):
            far[i] = max(far[i], abs(points[j, k] - point[i, k]))
        for k in range(nv):
            speed[i, 0] += normal[j, k] * qvel[k]
            speed[i, 1] += tangent[j, 0, k] * qvel[k]
            speed[i, 2] += tangent[j, 1, k] * qvel[k]
    along = np.zeros(joint.shape[0])
    for i in range(joint.shape[0]):
        for k in range(nv):
            along[i] += joint[i, k] * qvel[k]
    return speed, far, along


def _mend_pair(
    model: mujoco.MjModel, data: mujoco.MjData, start: int, end: int, tolerance: float
) -> None:
    ends = np.zeros(6)
    first, second = (int(g) for g in data.contact.geom[start])
    nearest = start + int(np.argmin(data.contact.dist[start:end]))
    found = float(data.contact.dist[nearest])
    true = mujoco.mj_geomDistance(model, data, first, second, abs(found) + 1.0, ends)
    if abs(true) < PRECISE:
        return  # touching to rounding: there is no direction between the witnesses
    normal = (ends[3:] - ends[:3]) / true
    normal /= np.linalg.norm(normal)
    along = float(normal @ data.contact.frame[nearest, :3])
    tilt = max(0.0, 1.0 - along * along) ** 0.5 if along > 0.0 else 1.0
    if abs(found - true) <= 0.1 * tolerance and tilt <= TILT:
        return
    contact = data.contact[start]
    contact.dist = true
    contact.pos[:] = 0.5 * (ends[:3] + ends[3:])
    contact.frame[:] = frame_about(normal)
    for k in range(start + 1, end):
        data.contact[k].exclude = 1


def closing_bound(
    model: mujoco.MjModel, data: mujoco.MjData, seen: Snapshot, speed: Array
) -> Array:
    """(nc,) largest speed at which each contact's gap can close by the velocities of data [m/s].

    Mirtich's bound: along the direction n between the witnesses no point of a body moves faster
    than the witness itself and |w x n| times its distance from it, which is at most the geom's
    radius and the witness' distance from the geom's centre. speed (nc,): N v. Articulated bodies
    enter with the velocities of their links.
    """
    bound = -speed
    real = np.flatnonzero(seen.number >= 0)
    if not len(real):
        return bound
    axis, point = seen.axis[real], seen.point[real]
    for side in (0, 1):
        geom = seen.pair[real, side]
        w = data.cvel[model.geom_bodyid[geom], :3]
        along = np.einsum("ij,ij->i", w, axis)
        across = np.sqrt(np.maximum(np.einsum("ij,ij->i", w, w) - along * along, 0.0))
        away = data.geom_xpos[geom] - point
        arm = model.geom_rbound[geom] + np.sqrt(np.einsum("ij,ij->i", away, away))
        bound[real] += across * arm
    return bound
