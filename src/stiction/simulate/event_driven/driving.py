"""`drive`: forces of dry friction by Baraff's algorithm, compiled once for all that ask for them.

Steps, their stages, slips' directions and calm steps each ask from compiled code of their own; with
the algorithm in each of them it was compiled five times. So it is a stage, which takes what it
reads and writes as one list of addresses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem import whitening
from stiction.contact.problem.arrays import Arrays, Whitened
from stiction.contact.problem.cone_islands import label_cones, part_of
from stiction.contact.problem.cones import Cones, build_cones, from_impulses, to_impulses
from stiction.contact.solvers.baraff.driving import LEFT_BROKEN, solve_driving
from stiction.contact.solvers.baraff.hardening import harden
from stiction.contact.solvers.baraff.sharing import share_load
from stiction.contact.solvers.baraff.solve import DRIVING_ROUNDS, WARM_STEPS
from stiction.kernels import linear
from stiction.kernels.compile import kernel
from stiction.kernels.packing import pack, pack_into, packed, unpacker
from stiction.kernels.stage import stage
from stiction.status import Code

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

NEAR_HELD = 1e-3
"""Residual, of the load, of forces of contacts that give from which driving is worth beginning."""


@packed
class Drive(NamedTuple):
    """What the stage reads, by the names that `Whitened` and `Arrays` have for it, and writes; nh
    contacts, ne joint rows, nb box rows, r = nv coordinates."""

    rows_normal: Array  # (nh, r)
    rows_tangent: Array  # (nh, 2, r)
    rows_joint: Array  # (ne, r)
    rows_box: Array  # (nb, r)
    free_normal: Array  # (nh,)
    free_tangent: Array  # (nh, 2)
    free_joint: Array  # (ne,)
    free_box: Array  # (nb,)
    force: Array  # (nv,)
    normal: Array  # (nh, nv)
    tangent: Array  # (nh, 2, nv)
    friction: Array  # (nh,)
    joint: Array  # (ne, nv)
    box: Array  # (nb, nv)
    box_limit: Array  # (nb,)
    box_contact: Indices  # (nb,)
    box_friction: Array  # (nb,)
    upper: Array  # (nv, nv) factor of the mass
    last: Indices  # (nv,) its envelope
    sliding: Mask  # (nh,)
    direction: Array  # (nh, 2) of the slip, where sliding
    turning: Array  # (nb,) sign of the speed along a row that moves, else 0
    old_normal: Array  # (nh,) this and the next two: forces to start from, or none
    old_tangent: Array  # (nh, 2)
    old_box: Array  # (nb,)
    acceleration: Array  # (nv,) this and the rest: the answer
    f_normal: Array  # (nh,)
    f_tangent: Array  # (nh, 2)
    f_joint: Array  # (ne,)
    f_box: Array  # (nb,)
    steps: Indices  # (1,)


_one, _two, _three = np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0, 0))
_whole = np.zeros(0, np.int64)
_example = Drive(
    _two, _three, _two, _two, _one, _two, _one, _one, _one, _two, _three, _one, _two, _two, _one,
    _whole, _one, _two, _whole, np.zeros(0, np.bool_), _two, _one, _one, _two, _one, _one, _one,
    _two, _one, _one, _whole,
)  # fmt: skip
_unpack = unpacker(_example)
_ENTRIES = len(pack(_example))


@kernel
def _fix_units(cones: Cones, sliding: Mask, direction: Array, turning: Array) -> tuple[Mask, Array]:
    """(fixed (u,), along (u, 2)): which friction is dynamic, and the direction of its force."""
    units = cones.mu.shape[0]
    fixed, along = np.zeros(units, np.bool_), np.zeros((units, 2))
    for u in range(units):
        if not cones.flat[u] and sliding[cones.parent[u]]:
            fixed[u] = True
            along[u, 0] = -direction[cones.parent[u], 0]
            along[u, 1] = -direction[cones.parent[u], 1]
    for k in range(turning.shape[0]):
        if turning[k] != 0.0 and cones.unit[k] >= 0:
            fixed[cones.unit[k]] = True
            along[cones.unit[k], 0] = -turning[k]
    return fixed, along


@kernel
def _drive_part(
    cones: Cones, fixed: Mask, along: Array, theta: Array, phi: Array, warm: bool
) -> tuple[Array, Array, Any, int]:
    """(theta, phi, code, steps) from a guess if `warm`, else from a load that is shared, if that
    can be, or from nothing; where that takes long, from what contacts that give bear."""
    spent, n = 0, cones.normal.shape[0]
    few = WARM_STEPS * max(1, n + fixed.shape[0])
    if not warm:
        theta, phi, warm = share_load(cones, fixed)
    if warm:
        theta, phi, code, spent, _ = solve_driving(
            cones, fixed, along, theta, phi, WARM_STEPS * max(1, n), DRIVING_ROUNDS, 1
        )
        if code == Code.SOLVED:
            return theta, phi, code, spent
    theta, phi, code, steps, _ = solve_driving(
        cones, fixed, along, np.empty(0), np.empty((0, 2)), few, DRIVING_ROUNDS, 1
    )
    spent += steps
    if code == Code.SOLVED:
        return theta, phi, code, spent
    soft_theta, soft_phi, residual, steps = harden(cones, fixed, along)
    spent += steps
    if residual <= NEAR_HELD:
        theta, phi, code, steps, _ = solve_driving(
            cones, fixed, along, soft_theta, soft_phi, few, DRIVING_ROUNDS, 1
        )
        spent += steps
        if code == Code.SOLVED:
            return theta, phi, code, spent
    if residual <= LEFT_BROKEN:
        return soft_theta, soft_phi, np.int64(Code.SOLVED), spent
    return theta, phi, code, spent


@kernel
def _drive_parts(
    cones: Cones, fixed: Mask, along: Array, theta: Array, phi: Array, warm: bool
) -> tuple[Any, int]:
    """(code, steps) of all parts that share no coordinate; theta and phi are their guess, and
    become the answer."""
    count, of_contact, of_unit, of_column = label_cones(cones)
    worst, spent = np.int64(Code.SOLVED), 0
    for k in range(count):
        part, contacts, units = part_of(cones, k, of_contact, of_unit, of_column)
        old, old_phi, load = theta[contacts], phi[units], part.load
        for i in range(contacts.shape[0]):
            old[i] /= load
        for u in range(units.shape[0]):
            old_phi[u, 0], old_phi[u, 1] = old_phi[u, 0] / load, old_phi[u, 1] / load
        found, found_phi, code, steps = _drive_part(
            part, fixed[units], along[units], old, old_phi, warm
        )
        spent += steps
        if code != Code.SOLVED:
            worst = np.int64(code)
        for i in range(contacts.shape[0]):
            theta[contacts[i]] = found[i] * load
        for u in range(units.shape[0]):
            phi[units[u], 0], phi[units[u], 1] = found_phi[u, 0] * load, found_phi[u, 1] * load
    return worst, spent


@stage("int64(intp)", eager=False, counted=True)
def drive_packed(address: int) -> Any:
    """The code of the answer to `Drive` at that address."""
    (p,) = _unpack(address)
    cones, joints = build_cones(p, p)
    fixed, along = _fix_units(cones, p.sliding, p.direction, p.turning)
    theta, phi = np.zeros(cones.normal.shape[0]), np.zeros((fixed.shape[0], 2))
    warm = p.old_normal.shape[0] == p.normal.shape[0] and p.old_box.shape[0] == p.box.shape[0]
    if warm:
        theta, phi = from_impulses(cones, p.old_normal, p.old_tangent, p.old_box)
    code, spent = _drive_parts(cones, fixed, along, theta, phi, warm)
    normal, tangent, joint, box = to_impulses(p, cones, joints, theta, phi)
    acceleration = whitening.momentum_change(p, 1.0, normal, tangent, joint, box)
    linear.solve(p.upper, p.last, acceleration)
    p.acceleration[:], p.steps[0] = acceleration, spent
    p.f_normal[:], p.f_tangent[:], p.f_joint[:], p.f_box[:] = normal, tangent, joint, box
    return np.int64(code)


_drive_packed = drive_packed.external


@kernel
def drive(
    arrays: Arrays,
    white: Whitened,
    factor: tuple[Array, Indices],
    slip: tuple[Mask, Array, Array],
    guess: tuple[Array, Array, Array],
) -> tuple[Array, Array, Array, Array, Array, Any, int]:
    """(acceleration, normal, tangent, joint and box forces, code, steps) by Baraff's algorithm.
    factor: of the mass, with its envelope; slip: sliding, direction, turning, as in `Drive`; guess:
    normal, tangent and box forces to start from, or empty ones: then from a load that is shared, if
    that can be."""
    nv, nh = arrays.force.shape[0], arrays.normal.shape[0]
    acceleration, normal, tangent = np.empty(nv), np.empty(nh), np.empty((nh, 2))
    joint, box = np.empty(arrays.joint.shape[0]), np.empty(arrays.box.shape[0])
    steps, entries = np.empty(1, np.int64), np.empty(_ENTRIES, np.int64)
    asked = Drive(
        white.rows_normal, white.rows_tangent, white.rows_joint, white.rows_box,
        white.free_normal, white.free_tangent, white.free_joint, white.free_box, arrays.force,
        arrays.normal, arrays.tangent, arrays.friction, arrays.joint, arrays.box,
        arrays.box_limit, arrays.box_contact, arrays.box_friction, factor[0], factor[1], slip[0],
        slip[1], slip[2], guess[0], guess[1], guess[2], acceleration, normal, tangent, joint, box,
        steps,
    )  # fmt: skip
    pack_into(entries, asked)
    code = _drive_packed(entries.ctypes.data)
    spent = steps[0] if entries[0] != 0 else 0  # the list is held until now
    return acceleration, normal, tangent, joint, box, code, spent
