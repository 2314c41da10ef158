"""What a step that was taken leaves to differentiate: its bounds, its modes, and which contacts its
correction of overlap holds."""

from __future__ import annotations

import numpy as np

from stiction.bridge.layout import integer, number, numbers, offset, pointer, size_of
from stiction.bridge.rows import Key, Place, has_mesh, merge_gaps
from stiction.contact.derivatives.held_rows import Held, Size, read_held
from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind, row_velocities
from stiction.contact.problem.graph import Graph
from stiction.contact.problem.graph import Size as Part
from stiction.contact.problem.scales import spread
from stiction.contact.solvers.blocks.workspace import unpack_newton, unpack_problem
from stiction.kernels.compile import lean
from stiction.simulate.derivatives.equalities import are_known
from stiction.simulate.derivatives.geometry import Geometry
from stiction.simulate.derivatives.maps import pair_end
from stiction.simulate.derivatives.memory import Working, unpack_working
from stiction.simulate.derivatives.motions import six_dot
from stiction.simulate.derivatives.step_system import is_corrected
from stiction.simulate.time_stepping.config import Config
from stiction.simulate.time_stepping.finish import is_open
from stiction.simulate.time_stepping.grip import closes
from stiction.simulate.time_stepping.workspace import Count, Record, Step, unpack_step
from stiction.tolerances import RESIDUAL

_TIMESTEP = offset("mjModel", "opt", "timestep")
_NEFC, _LOSS = offset("mjData", "nefc"), offset("mjData", "efc_frictionloss")

_CONTACT, _DIM = offset("mjData", "contact"), offset("mjContact", "dim")
_CONTACT_SIZE = size_of("mjContact")

SPANNED = 1e-7
"""What is left of a row of length 1, of two bodies, beside others that span it."""

ALIKE = 1e-5
"""Difference of two gaps, over their size, up to which neither is the nearer one for changes that
matter: each is then taken for itself."""


@lean
def _restore(m, d, config: Config, b: Blocks, count, step: Step):
    """Gives blocks the rows, bounds and limits of the step, which its overlap's problem wrote
    over."""
    dt, nefc = number(m + _TIMESTEP), integer(d + _NEFC)
    loss = numbers(pointer(d + _LOSS), nefc)
    begin = count
    for i in range(count):
        gap, of_geoms = step.place[i, Place.GAP], step.key[i, Key.INDEX] >= 0
        closed, b.data[i, Datum.BOUND] = config.touch, 0.0
        if of_geoms:
            closed = config.near
            if has_mesh(m, step.key[i, Key.FIRST], step.key[i, Key.SECOND]):
                closed = config.rough
            if step.place[i, Place.BENT] == 1.0:
                closed = gap
            b.head[i, Head.KIND] = Kind.CONTACT  # what is open or gripped was held
            if step.record[i, Record.GRIPPED] > 0.0:
                b.data[i, Datum.SURFACE] = b.data[i, Datum.SURFACE_2] = 0.0
            contact = pointer(d + _CONTACT) + step.key[i, Key.INDEX] * _CONTACT_SIZE
            b.head[i, Head.ROWS] = integer(contact + _DIM)
        if b.head[i, Head.KIND] == Kind.BOX:
            b.data[i, Datum.LIMIT] = dt * loss[step.key[i, Key.ROW]]
        elif gap > closed and b.head[i, Head.KIND] == Kind.CONTACT:
            b.data[i, Datum.BOUND] = -gap / dt
        if of_geoms and begin == count:
            begin = i
    merge_gaps(m, b, begin, count, step.key)


@lean
def _find_sources(dt, b: Blocks, count, step: Step, w: Working):
    """Which gap each bound is: contacts of one pair that are all but equally far have the nearest
    one's (`bridge.rows.merge_gaps`)."""
    key, place = step.key, step.place
    for i in range(count):
        bound = b.data[i, Datum.BOUND]
        w.source[i] = i if bound < 0.0 and b.head[i, Head.KIND] == Kind.CONTACT else -1
        if w.source[i] < 0 or not -place[i, Place.GAP] / dt < bound * (1.0 + ALIKE):
            continue
        best = np.inf
        for k in range(count):
            if key[k, 0] == key[i, 0] and key[k, 1] == key[i, 1]:
                apart = abs(-place[k, Place.GAP] / dt - bound)
                if apart < best:
                    best = apart
                    w.source[i] = k


@lean
def _choose_lifted(config: Config, dt, b: Blocks, g: Graph, step: Step, speed, w: Working):
    """Which blocks the overlap's correction holds, and their share of the gap; how many. speed (n,
    ROWS): along rows, at v+ and the correction. As `StepLinearization._correct`."""
    count = 0
    if config.slack == np.inf:
        return count
    for island in range(g.size[Part.ISLANDS]):
        deep, which, fastest, touches, open_gap, grips = 0.0, -1, 0.0, False, 0.0, False
        for at in range(g.members[island], g.members[island + 1]):
            i = g.member[at]
            if b.head[i, Head.KIND] == Kind.HOLD and abs(step.place[i, Place.GAP]) > deep:
                deep, which = abs(step.place[i, Place.GAP]), i
            if b.head[i, Head.KIND] == Kind.CONTACT:
                fastest = max(fastest, abs(speed[i, 0]))
                grips = grips or w.gripped[i] == 1
                pressed = w.pressed[i] == 1
                touches = touches or (pressed and step.place[i, Place.GAP] <= config.touch)
                if is_open(i, step):
                    open_gap = max(open_gap, step.place[i, Place.GAP])
                if -step.place[i, Place.GAP] > deep:
                    deep, which = -step.place[i, Place.GAP], i
        off = max(deep, open_gap) > config.slack or grips
        share = 1.0 if deep <= config.shallow else config.shallow / deep
        for at in range(g.members[island], g.members[island + 1]):
            i = g.member[at]
            gap, joined = step.place[i, Place.GAP], b.head[i, Head.KIND] == Kind.HOLD
            if not joined and b.head[i, Head.KIND] != Kind.CONTACT:
                continue
            holds = joined or (touches and w.pressed[i] == 1)
            w.share[i], w.deepest[i] = 1.0, -1
            if w.gripped[i] == 1 and not closes(i, step, config.near):
                w.share[i] = 0.0
            elif off and (gap <= 0.0 or joined):
                w.share[i] = share
                w.deepest[i] = which if share < 1.0 else -1
            if off and not joined:
                wide = abs(speed[i, 0] + w.share[i] * gap / dt)
                holds = w.pushed[i, 0] > 0.0 or (w.pressed[i] == 1 and wide <= RESIDUAL * fastest)
                holds = holds or is_open(i, step)
            if holds or w.gripped[i] == 1:
                w.lifted[count, 0], w.lifted[count, 1] = i, 0
                count += 1
    return count


@lean
def read_step(m, d, config: Config, law, facets, smoothing, address, own):
    """Reads impulses, speeds and modes of the step; how many blocks its correction holds, or -1
    where it has rows that are not differentiated here."""
    h, w = unpack_working(own)
    b, g, _, _ = unpack_problem(address)
    _, newton = unpack_newton(address)
    grading, step = unpack_step(address)
    count, dt = step.counts[Count.BLOCKS], number(m + _TIMESTEP)
    if not are_known(m, d, step):
        return -1
    for j in range(w.sigma.shape[0]):
        w.correction[j] = newton.v[j] - step.v_plus[j]
        w.sigma[j] = grading.own[j]
    for i in range(count):
        w.pressed[i], w.gripped[i] = 0, 0
        if step.record[i, Record.GRIPPED] > 0.0 and is_corrected(w):
            w.gripped[i], w.drag[i] = 1, step.record[i, Record.GRIPPED]
        for r in range(3):
            w.pushed[i, r] = step.record[i, Record.CORRECTION + r]
        for r in range(ROWS):
            w.f[i, r] = step.record[i, Record.FORCE + r]
            w.u[i, r] = 0.0
    _restore(m, d, config, b, count, step)
    row_velocities(b, count, step.v_plus, w.u)
    weight, slow = newton.weight, smoothing == 0.0
    if slow:  # what is held at small speeds is at spread ones, too
        read_held(b, count, law, facets, smoothing, w.u, w.f, weight, w.sigma, h)
        slow = h.size[Size.LOOSE] == 0
    if not slow:
        spread(b, count, grading.inverse, w.passed, w.sigma)
        read_held(b, count, law, facets, smoothing, w.u, w.f, weight, w.sigma, h)
    for a in range(h.size[Size.HELD]):
        i = h.block[a, 0]
        pushes = b.head[i, Head.KIND] == Kind.CONTACT and w.f[i, 0] > 0.0
        if h.block[a, 1] == 0 and pushes:
            w.pressed[i] = 1
    _find_sources(dt, b, count, step, w)
    for i in range(count):
        b.data[i, Datum.BOUND] = 0.0
    row_velocities(b, count, newton.v, w.u)
    return _choose_lifted(config, dt, b, g, step, w.u, w)


@lean
def mark_needed(count, lifted, every, h: Held, key, w: Working):
    """w.needed := whether a pair's contacts matter, or all: those that push, are held, or have a
    gap that others are held by. lifted: how many rows the correction holds."""
    for i in range(count):
        w.needed[i] = 1 if every or w.pushed[i, 0] != 0.0 else 0
        for r in range(ROWS):
            if w.f[i, r] != 0.0:
                w.needed[i] = 1
    for a in range(h.size[Size.HELD]):
        i = h.block[a, 0]
        w.needed[i] = 1
        if w.source[i] >= 0:
            w.needed[w.source[i]] = 1
    for a in range(lifted):
        i = w.lifted[a, 0]
        w.needed[i] = 1
        if w.deepest[i] >= 0:
            w.needed[w.deepest[i]] = 1
    begin = 0
    while begin < count:
        end, any_of_them = pair_end(key, begin, count), np.int64(0)
        for i in range(begin, end):
            any_of_them = max(any_of_them, w.needed[i])
        for i in range(begin, end):
            w.needed[i] = any_of_them
        begin = end


@lean
def mark_used(count, lifted, every, h: Held, w: Working):
    """w.used := the rows whose speeds the two systems ask for, or all; lifted: how many rows the
    correction holds."""
    for i in range(count):
        for r in range(ROWS):
            w.used[i, r] = 1 if every else 0
    for a in range(h.size[Size.HELD]):
        i, r = h.block[a, 0], h.block[a, 1]
        w.used[i, r] = 1
        if r == 1:
            w.used[i, 2] = 1
    for c in range(h.size[Size.CURVED]):
        w.used[h.curved[c], 1] = w.used[h.curved[c], 2] = 1
    for a in range(lifted):
        w.used[w.lifted[a, 0], 0] = 1


@lean
def _lay_wrench(a, begin, size, block, direction, step: Step, g: Geometry, w: Working):
    """w.wrench[a] := held row a as a torque, over `size`, and a force of length 1 or 0, about the
    point of block `begin`."""
    i, r = block[a, 0], block[a, 1]
    place, axes, out = step.place, g.frame[i], w.wrench
    for c in range(6):
        out[a, c] = 0.0
    if r > 2:
        for c in range(3):
            out[a, c] = axes[r - 3, c]
        return
    for c in range(3):
        out[a, 3 + c] = axes[0, c]
        if r == 1:
            across = direction[a, 1] * place[i, Place.RATIO]
            out[a, 3 + c] = direction[a, 0] * axes[1, c] + across * axes[2, c]
    x, y, z = (
        (place[i, Place.X] - place[begin, Place.X]) / size,
        (place[i, Place.Y] - place[begin, Place.Y]) / size,
        (place[i, Place.Z] - place[begin, Place.Z]) / size,
    )
    out[a, 0] = y * out[a, 5] - z * out[a, 4]
    out[a, 1] = z * out[a, 3] - x * out[a, 5]
    out[a, 2] = x * out[a, 4] - y * out[a, 3]


@lean
def _span_pair(begin, end, w: Working):
    """Marks by w.left = -1 those of the held rows from `begin` to `end` whose wrenches span all:
    six at most, the farthest from the others first."""
    rows = w.wrench
    for a in range(begin, end):
        scale = 1.0 / np.sqrt(six_dot(rows, a, rows, a))
        for c in range(6):
            rows[a, c] *= scale
        w.left[a] = 1.0
    for _ in range(6):
        best, which = SPANNED * SPANNED, -1
        for a in range(begin, end):
            if w.left[a] > best:
                best, which = w.left[a], a
        if which < 0:
            break
        scale = 1.0 / np.sqrt(best)
        for c in range(6):
            rows[which, c] *= scale
        w.left[which] = -1.0
        for a in range(begin, end):
            if w.left[a] > 0.0:
                along = six_dot(rows, a, rows, which)
                for c in range(6):
                    rows[a, c] -= along * rows[which, c]
                w.left[a] = six_dot(rows, a, rows, a)


@lean
def drop_spanned(total, block, direction, step: Step, g: Geometry, w: Working):
    """Leaves six at most of the held rows of each pair of geoms: two bodies have no more freedom,
    and what the others ask for is the same. How many of the `total` first lines of block and
    direction, as in `Held`, are left."""
    key, place = step.key, step.place
    begin, kept = 0, 0
    while begin < total:
        first, end = block[begin, 0], begin + 1
        size = 0.0
        while end < total:
            i = block[end, 0]
            if key[i, Key.INDEX] < 0 or key[i, 0] != key[first, 0] or key[i, 1] != key[first, 1]:
                break
            for c in range(3):
                size = max(size, abs(place[i, Place.X + c] - place[first, Place.X + c]))
            end += 1
        many = end - begin > 6 and key[first, Key.INDEX] >= 0
        if many:
            for a in range(begin, end):
                _lay_wrench(a, first, size if size > 0.0 else 1.0, block, direction, step, g, w)
            _span_pair(begin, end, w)
        for a in range(begin, end):
            if not many or w.left[a] < 0.0:
                for c in range(2):
                    block[kept, c], direction[kept, c] = block[a, c], direction[a, c]
                kept += 1
        begin = end
    return kept
