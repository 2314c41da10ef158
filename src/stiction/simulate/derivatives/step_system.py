"""The two linear systems of a step: that of its velocity, by the law of contact, and that of its
correction of overlap."""

from __future__ import annotations

from stiction.bridge.layout import integers, offset, pointer
from stiction.bridge.rows import Key, Place
from stiction.contact.derivatives.held_rows import (
    Held,
    Size,
    add_row,
    add_soft_row,
    fill_inertia,
    fill_rows,
)
from stiction.contact.derivatives.held_system import Solved, factor_inertia, hold_rows
from stiction.contact.derivatives.soft_system import Softened, gives_way, hold_softly
from stiction.contact.problem.blocks import Blocks
from stiction.kernels.compile import lean, lean_leaf
from stiction.simulate.derivatives.bodies import Motion, Tree
from stiction.simulate.derivatives.maps import Maps, pair_end
from stiction.simulate.derivatives.meetings import (
    Meeting,
    bend_by_speed,
    find_sides,
    forget_sides,
    grips_any,
)
from stiction.simulate.derivatives.memory import Working
from stiction.simulate.derivatives.motions import six_dot
from stiction.simulate.time_stepping.workspace import Step

_GEOM_BODY, _NGEOM = offset("mjModel", "geom_bodyid"), offset("mjModel", "ngeom")


@lean
def is_corrected(w: Working):
    """Whether overlap was corrected."""
    found = False
    for j in range(w.correction.shape[0]):
        found = found or w.correction[j] != 0.0
    return found


@lean
def hold_velocity(b: Blocks, count, h: Held, s: Solved, z: Softened):
    """Prepares the system of v+, with so many blocks, z where rows give way, else s; how many rows
    were taken that do not, or -1 if there is no one answer."""
    fill_inertia(b, count, s.inertia)
    fill_rows(b, h, s.inertia, s.other)
    if gives_way(h):
        return hold_softly(h, s, z)
    if not factor_inertia(s):
        return -1
    return hold_rows(h.size[Size.HELD], h.held, h.along, h.size[Size.SLOPED] == 1, s)


@lean_leaf
def has_factored_mass(h: Held):
    """Whether the inertia alone is what `hold_velocity` has factored."""
    return h.size[Size.CURVED] == 0 and not gives_way(h)


@lean
def hold_correction(lifted, factored, b: Blocks, count, s: Solved, w: Working):
    """The same of the correction, which holds the first `lifted` of w.lifted, and grips; factored:
    whether the inertia alone is what was factored last."""
    nv = w.sigma.shape[0]
    grips = grips_any(w.gripped, 0, count)
    if grips or not factored:
        fill_inertia(b, count, s.inertia)
        for i in range(count if grips else 0):
            if w.gripped[i] == 1:
                add_soft_row(b, i, 1, w.drag[i], s.inertia)
                add_soft_row(b, i, 2, w.drag[i], s.inertia)
        if not factor_inertia(s):
            return -1
    for a in range(lifted):
        for j in range(nv):
            w.normal[a, j] = 0.0
        add_row(b, w.lifted[a, 0], 0, 1.0, w.normal, a)
    return hold_rows(lifted, w.normal, w.normal, False, s)


@lean
def bend_rows(
    m, d, tree: Tree, count, key, place, ahead: Motion, dt, maps: Maps, meeting: Meeting,
    w: Working,
):  # fmt: skip
    """w.bend := along each row of what the correction grips, half a step times dA / dv
    (`meetings.py`). ahead: motions at v+."""
    body = integers(pointer(m + _GEOM_BODY), pointer(m + _NGEOM))
    begin = 0
    while begin < count:
        end = pair_end(key, begin, count)
        if key[begin, Key.INDEX] >= 0 and grips_any(w.gripped, begin, end):
            first, second = body[key[begin, 0]], body[key[begin, 1]]
            point = place[begin, Place.X : Place.X + 3]
            found = find_sides(d, tree, first, second, point, meeting)
            bend_by_speed(d, tree, first, second, found, point, 0.5 * dt, ahead, meeting)
            for i in range(begin, end):
                for r in range(3 * w.gripped[i]):
                    for j in range(w.sigma.shape[0]):
                        w.bend[i, r, j] = 0.0
                    for e in range(found):
                        k = meeting.dofs[e]
                        w.bend[i, r, k] = six_dot(maps.row[i], r, meeting.bend, k)
            forget_sides(tree, first, second, meeting)
        begin = end


@lean_leaf
def share_rate(i, dt, step: Step, w: Working):
    """What the share of block i changes by as the deepest gap does, or 0."""
    if w.deepest[i] < 0:
        return 0.0
    return w.share[i] * step.place[i, Place.GAP] / step.place[w.deepest[i], Place.GAP] / dt
