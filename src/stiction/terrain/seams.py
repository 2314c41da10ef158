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
from stiction.bridge.bodies import body_of_geom, motion_at
from stiction.bridge.contacts import end_of_pair
from stiction.bridge.geom_types import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, SPHERE, kinds_of
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
from stiction.kernels.triples import dot, minus, moved

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
_NBODY, _GEOM_SIZE = offset("mjModel", "nbody"), offset("mjModel", "geom_size")
_NCON, _CONTACT, _CVEL, _XPOS, _XMAT = (
    offset("mjData", name) for name in ("ncon", "contact", "cvel", "geom_xpos", "geom_xmat")
)


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


@kernel
def _slip(m, d, contact, speeds):
    """How fast the geoms of a contact move against each other there [m/s]."""
    at, geoms = numbers(contact + _POS, 3), integers(contact + _GEOM, 2)
    _, first = motion_at(m, d, body_of_geom(m, geoms[0]), speeds, at)
    _, second = motion_at(m, d, body_of_geom(m, geoms[1]), speeds, at)
    slip = minus(first, second)
    return np.sqrt(dot(slip, slip))


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
    for side in range(2):
        geom = first if side == 0 else second
        xpos = numbers(pointer(d + _XPOS) + 24 * geom, 3)
        xmat = numbers(pointer(d + _XMAT) + 72 * geom, 9)
        poses[side, :3], poses[side, 3:] = xpos, xmat
        w, v = motion_at(m, d, body_of_geom(m, geom), speeds, xpos)
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
    a = numbers(pointer(d + _XPOS) + 24 * first, 3)
    b = numbers(pointer(d + _XPOS) + 24 * second, 3)
    _, of_a = motion_at(m, d, body_of_geom(m, first), speeds, a)
    _, of_b = motion_at(m, d, body_of_geom(m, second), speeds, b)
    velocity, between = minus(of_b, of_a), minus(b, a)
    speed = dot(velocity, velocity)
    t = start if speed == 0.0 else min(max(-dot(velocity, between) / speed, start), dt)
    apart = moved(between, t, velocity)
    return np.sqrt(dot(apart, apart)) - _thickness(m, first) - _thickness(m, second)


@stage("int64(int64, int64, int64, float64, float64, float64, float64)", eager=False, counted=True)
def pass_by(m, d, contact, start, path, least, behind):
    """1 if the geoms of a contact do not overlap by more than -least at any time from `start` to
    the end of the step, as they move now, by `path` against each other [m]."""
    dt, geoms = number(m + _TIMESTEP), integers(contact + _GEOM, 2)
    nbody = pointer(m + _NBODY)
    now = table(pointer(d + _CVEL), nbody, 6)
    first, second = kinds_of(m, geoms[0], geoms[1])
    if first == SPHERE and second == SPHERE:
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
    first, second = kinds_of(m, geoms[0], geoms[1])
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
        geoms, deepest = integers(start + _GEOM, 2), np.inf
        end = end_of_pair(start, end_of_all)
        for contact in range(start, end, _SIZE):
            deepest = min(deepest, number(contact + _DIST))
        first, second = kinds_of(m, geoms[0], geoms[1])
        if deepest >= -touch and _is_convex(first) and _is_convex(second):
            for contact in range(start, end, _SIZE):
                exclude = integers(contact + _EXCLUDE, 1)
                count = (end - start) // _SIZE
                if exclude[0] == 0 and _is_ghost(m, d, contact, count, now, free, touch):
                    exclude[0] = 1
        start = end
