"""Contacts ahead that bodies pass by within the step, such as the seams of a tiled floor.

A contact ahead enters a step by its gap along its normal. Two edges at one height, of a box that
slides and of the next tile of the floor, are nearest along the floor, and by that normal the box
would run into the tile; a ball would stumble over the edge. Where the present motion closes such a
gap, the two geoms are moved as they move, to just behind where they should meet and on to the end
of the step. If they do not overlap anywhere, the contact is left out. Where boxes or meshes touch
by an edge, and are pushed but at rest, they are moved along the normal instead.
"""

from __future__ import annotations

import numpy as np

from stiction.bridge import library as mj
from stiction.bridge.ahead import closing_speed
from stiction.bridge.arcs import departure
from stiction.bridge.geom_types import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, SPHERE
from stiction.bridge.layout import (
    integer,
    integers,
    number,
    numbers,
    offset,
    pointer,
    size_of,
    table,
)
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.stage import stage

OVERLOOKED = 100.0
"""Overlap to overlook, in multiples of the gap that counts as touching: what rests on a tile is
not exactly at its level."""

BEHIND = 1e5
"""How far behind the place where geoms should meet they are looked at, in multiples of
the gap that counts as touching."""

LEAST_POSES, MOST_POSES = 4, 32
"""Poses from there to the end of the step, at least and at most. They lie no farther apart than the
geoms are thick together; where that takes more, the contact stays."""

LOOK_AGAIN, LOOKS = 1e-3, 8
"""How much earlier, and later, geoms are looked at once more of which MuJoCo says that they just
touch, over the time, twice as much every other look: of one in 400 pairs of boxes that overlap, in
a model in millimetres, it says so, too, and as good as at random of those of some attitudes."""

CARRIED = 2.0
"""Depth by which geoms would run into each other at their present speed and are no ghosts, over
what paths part by that bend (`arcs.py`): what a gripper carries keeps to its faces within a step,
but does so along the normals that these had before the step. By the present ones it closes in on
one side, and never meets it on the way."""

EDGE_CONTACTS = 2
"""Contacts of a pair that meets by an edge, at most."""

_SIZE = size_of("mjContact")
_DIST, _POS, _FRAME, _GEOM, _EXCLUDE = (
    offset("mjContact", name) for name in ("dist", "pos", "frame", "geom", "exclude")
)
_TIMESTEP, _NV = offset("mjModel", "opt", "timestep"), offset("mjModel", "nv")
_QVEL = offset("mjData", "qvel")
_NBODY, _TYPE, _GEOM_SIZE, _BODY, _ROOT = (
    offset("mjModel", name)
    for name in ("nbody", "geom_type", "geom_size", "geom_bodyid", "body_rootid")
)
_NCON, _CONTACT, _CVEL, _COM, _XPOS, _XMAT = (
    offset("mjData", name)
    for name in ("ncon", "contact", "cvel", "subtree_com", "geom_xpos", "geom_xmat")
)


@leaf
def _kind(m, geom):
    return integers(pointer(m + _TYPE) + 4 * geom, 1)[0]


@leaf
def _is_convex(kind):
    return kind in (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH)


@leaf
def _thickness(m, geom):
    """Least of the half lengths of a geom [m]."""
    size = numbers(pointer(m + _GEOM_SIZE) + 24 * geom, 3)
    least = size[0]
    for k in range(1, 3):
        if size[k] > 0.0:
            least = min(least, size[k])
    return least


@leaf
def _velocity(m, d, geom, speeds, at, w, v):
    """Angular velocity w (3,) of a geom, and v (3,) of its point at; speeds (nbody, 6) as cvel."""
    body = integers(pointer(m + _BODY) + 4 * geom, 1)[0]
    root = integers(pointer(m + _ROOT) + 4 * body, 1)[0]
    com = numbers(pointer(d + _COM) + 24 * root, 3)
    for k in range(3):
        w[k] = speeds[body, k]
    r0, r1, r2 = at[0] - com[0], at[1] - com[1], at[2] - com[2]
    v[0] = speeds[body, 3] + w[1] * r2 - w[2] * r1
    v[1] = speeds[body, 4] + w[2] * r0 - w[0] * r2
    v[2] = speeds[body, 5] + w[0] * r1 - w[1] * r0


@kernel
def _slip(m, d, contact, speeds):
    """How fast the geoms of a contact move against each other there [m/s]."""
    at, geoms = numbers(contact + _POS, 3), integers(contact + _GEOM, 2)
    w, first, second = np.empty(3), np.empty(3), np.empty(3)
    _velocity(m, d, geoms[0], speeds, at, w, first)
    _velocity(m, d, geoms[1], speeds, at, w, second)
    total = 0.0
    for k in range(3):
        total += (first[k] - second[k]) ** 2
    return np.sqrt(total)


@leaf
def _turn(xmat, w, t):
    """Turns the axes in xmat (9,) by the angle t |w| about w (3,)."""
    speed = np.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    if speed * t == 0.0:
        return
    x, y, z = w[0] / speed, w[1] / speed, w[2] / speed
    s, c = np.sin(speed * t), np.cos(speed * t)
    for k in range(3):
        a, b, e = xmat[k], xmat[3 + k], xmat[6 + k]
        along = (1.0 - c) * (x * a + y * b + z * e)
        xmat[k] = c * a + s * (y * e - z * b) + along * x
        xmat[3 + k] = c * b + s * (z * a - x * e) + along * y
        xmat[6 + k] = c * e + s * (x * b - y * a) + along * z


@kernel
def _distance_after(m, d, first, second, t, speeds, reach):
    """Distance of two geoms after the time t at those speeds, `reach` if it is more."""
    poses = np.empty((2, 12))
    w, v = np.empty(3), np.empty(3)
    for side in range(2):
        geom = first if side == 0 else second
        xpos = numbers(pointer(d + _XPOS) + 24 * geom, 3)
        xmat = numbers(pointer(d + _XMAT) + 72 * geom, 9)
        poses[side, :3], poses[side, 3:] = xpos, xmat
        _velocity(m, d, geom, speeds, xpos, w, v)
        for k in range(3):
            xpos[k] += t * v[k]
        _turn(xmat, w, t)
    found = mj.geom_distance(m, d, first, second, reach, 0)
    for side in range(2):
        geom = first if side == 0 else second
        numbers(pointer(d + _XPOS) + 24 * geom, 3)[:] = poses[side, :3]
        numbers(pointer(d + _XMAT) + 72 * geom, 9)[:] = poses[side, 3:]
    return found


@kernel
def _distance_along(m, d, contact, by, reach):
    """Distance of a contact's geoms after the second has moved by so much against the normal."""
    geoms, normal = integers(contact + _GEOM, 2), numbers(contact + _FRAME, 3)
    xpos = numbers(pointer(d + _XPOS) + 24 * geoms[1], 3)
    for k in range(3):
        xpos[k] -= by * normal[k]
    found = mj.geom_distance(m, d, geoms[0], geoms[1], reach, 0)
    for k in range(3):
        xpos[k] += by * normal[k]
    return found


@kernel
def _nearest_of_spheres(m, d, first, second, start, dt, speeds):
    """Least distance of two spheres from the time `start` on, to the end of the step [m]."""
    w, v = np.empty(3), np.empty((2, 3))
    for side in range(2):
        geom = first if side == 0 else second
        _velocity(m, d, geom, speeds, numbers(pointer(d + _XPOS) + 24 * geom, 3), w, v[side])
    a = numbers(pointer(d + _XPOS) + 24 * first, 3)
    b = numbers(pointer(d + _XPOS) + 24 * second, 3)
    speed = along = 0.0
    for k in range(3):
        speed += (v[1, k] - v[0, k]) ** 2
        along -= (v[1, k] - v[0, k]) * (b[k] - a[k])
    t = start if speed == 0.0 else min(max(along / speed, start), dt)
    apart = 0.0
    for k in range(3):
        apart += (b[k] - a[k] + t * (v[1, k] - v[0, k])) ** 2
    return np.sqrt(apart) - _thickness(m, first) - _thickness(m, second)


@stage("int64(int64, int64, int64, float64, float64, float64, float64)", eager=False, counted=True)
def pass_by(m, d, contact, start, path, least, behind):
    """1 if the geoms of a contact do not overlap by more than -least at any time from `start` to
    the end of the step, as they move now, by `path` against each other [m]."""
    dt, geoms = number(m + _TIMESTEP), integers(contact + _GEOM, 2)
    nbody = pointer(m + _NBODY)
    now = table(pointer(d + _CVEL), nbody, 6)
    if _kind(m, geoms[0]) == SPHERE and _kind(m, geoms[1]) == SPHERE:
        least_of_all = _nearest_of_spheres(m, d, geoms[0], geoms[1], start, dt, now)
        return np.int64(least_of_all >= least)
    thick = _thickness(m, geoms[0]) + _thickness(m, geoms[1])
    if path > MOST_POSES * thick:
        return np.int64(0)
    samples = max(LEAST_POSES, int(np.ceil(path / thick)))
    for k in range(samples + 1):
        t = start + (dt - start) * k / samples
        distance = _distance_after(m, d, geoms[0], geoms[1], t, now, behind)
        shift, look = LOOK_AGAIN * t, 0
        while distance == 0.0 and look < LOOKS:
            distance = _distance_after(m, d, geoms[0], geoms[1], t - shift, now, behind)
            shift = -shift if look % 2 == 0 else -2.0 * shift
            look += 1
        if distance < least:
            return np.int64(0)
    return np.int64(1)


passes_by = pass_by.external


@kernel
def _departure(m, d, contact, dt):
    """How far the paths of a contact's geoms part in a step because they bend (`arcs.py`)."""
    at, geoms = numbers(contact + _POS, 3), integers(contact + _GEOM, 2)
    v = numbers(pointer(d + _QVEL), pointer(m + _NV))
    return departure(m, d, geoms[0], geoms[1], at, v, dt)


@kernel
def _is_ghost(m, d, contact, count, now, free, touch):
    """Whether a contact, one of `count` of its pair, is to be ignored; see the head."""
    geoms = integers(contact + _GEOM, 2)
    gap, dt = number(contact + _DIST), number(m + _TIMESTEP)
    least, behind = -OVERLOOKED * touch, BEHIND * touch
    speed = closing_speed(m, d, contact, now)
    past = dt * speed - gap
    if past > -least and past > CARRIED * _departure(m, d, contact, dt):
        start = (gap + min(past, behind)) / speed
        path = _slip(m, d, contact, now) * (dt - start)
        return passes_by(m, d, contact, start, path, least, behind) == 1
    first, second = _kind(m, geoms[0]), _kind(m, geoms[1])
    if count > EDGE_CONTACTS or not (first in (BOX, MESH) and second in (BOX, MESH)):
        return False
    if dt * closing_speed(m, d, contact, free) - gap <= -least:
        return False
    return _distance_along(m, d, contact, gap + behind, behind) >= least


@kernel
def exclude_ghosts(m, d, free, touch):
    """Excludes contacts that bodies will pass by; between `mj_collision` and `mj_makeConstraint`.

    free (nbody, 6): velocities without contact, as cvel; touch: gap that counts as touching [m].
    """
    nbody, ncon = pointer(m + _NBODY), integer(d + _NCON)
    now = table(pointer(d + _CVEL), nbody, 6)
    start, end_of_all = pointer(d + _CONTACT), pointer(d + _CONTACT) + ncon * _SIZE
    while start < end_of_all:
        geoms = integers(start + _GEOM, 2)
        end, deepest = start, np.inf
        while end < end_of_all:
            others = integers(end + _GEOM, 2)
            if others[0] != geoms[0] or others[1] != geoms[1]:
                break
            deepest = min(deepest, number(end + _DIST))
            end += _SIZE
        if deepest >= -touch and _is_convex(_kind(m, geoms[0])) and _is_convex(_kind(m, geoms[1])):
            for contact in range(start, end, _SIZE):
                exclude = integers(contact + _EXCLUDE, 1)
                count = (end - start) // _SIZE
                if exclude[0] == 0 and _is_ghost(m, d, contact, count, now, free, touch):
                    exclude[0] = 1
        start = end
