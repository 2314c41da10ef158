"""Modes of an island's rows, by Alart and Curnier's functions; symbols as in `iteration.py`."""

from __future__ import annotations

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind, is_gripped
from stiction.contact.problem.graph import Graph
from stiction.contact.solvers.blocks.workspace import NewtonWorkspace
from stiction.contact.solvers.coulomb.newton import polygon_edge, project_polygon
from stiction.contact.solvers.proximal.laws import residual_of_block
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.digest import DIGEST_PRIME

SEPARATE, STICK, SLIDE, SLIDE_BACK = 0, 1, 2, 3
"""Modes of a unit: no impulse; holds; slides at its limit; of an interval, at its lower limit."""

MAY_PRESS = 1e-6
"""Speed over the load, by energy, below which a contact that has separated may yet press."""

PRESSES = 1e-9
"""Impulse over the load, by energy, beyond which it does; below it is rounding, divided by eps."""

KEPT_MODE = 1e-8
"""Impulse over the load, by energy, by which the friction of a joint, of a spin or of rolling may
pass its limit, or fall short of it, and keep its mode; twice the residual if that is less. An
iteration with new modes is off by eps, and would tell what is at its limit to slide and to stick by
turns, with a factorization each. As the residual falls, modes come to be what they are."""

TURNED = 0.3
"""Change of a slip's direction, or of how stiff it is across, over itself, beyond which the matrix
is another one; below, its factor is kept as long as the residual falls tenfold."""

CALM = 1e-4
"""Speed over the load, by energy, below which a contact that bore no load is taken to press and to
stick where a step is begun AFRESH: of what is held by more contacts than it takes,
some may go without a load, and once they do the others are loaded to the edges of their cones. With
all of them the least impulse that does it lies well inside. What does part is seen at once."""


@lean_leaf
def _disc_mode(facets, y0, y1, radius, w, eps, shape, i):
    """Mode of a disc whose projected impulse is y, and the `shape` of a sliding one."""
    if facets > 0:
        _, _, place = project_polygon(y0, y1, radius, 0.0, facets)
        if place < 0:
            return STICK
        half = np.pi / facets
        angle = polygon_edge(y0, y1, 0.0, facets)
        if place == 0:
            angle += half
            shape[i, 2] = np.cos(half)
            shape[i, 3] = 1.0 / (eps * w)
        else:
            angle += 0.0 if place == 1 else 2.0 * half
            shape[i, 2] = 1.0
            shape[i, 3] = 0.0
        shape[i, 0] = np.cos(angle)
        shape[i, 1] = np.sin(angle)
        return SLIDE
    size = np.sqrt(y0 * y0 + y1 * y1)
    if size <= radius:
        return STICK
    shape[i, 0] = y0 / size
    shape[i, 1] = y1 / size
    shape[i, 2] = 1.0
    # Across the slip the impulse turns with it: f = -(R / |slip|) u; |slip| = (|y| - R) w.
    shape[i, 3] = radius / (w * (size - radius) + radius * eps * w)
    return SLIDE


@lean_leaf
def _interval_mode(y, radius, before, slack):
    """Mode of an interval whose projected impulse is y; the one before within `slack`."""
    edge = radius + slack if before == STICK else radius
    if y > edge or (before == SLIDE and y > radius - slack):
        return SLIDE
    if y < -edge or (before == SLIDE_BACK and -y > radius - slack):
        return SLIDE_BACK
    return STICK


@lean
def find_modes(
    b: Blocks, g: Graph, k, law, facets, work: NewtonWorkspace, eps, near, edge, tied, share, calm
):  # fmt: skip
    """Modes of all units of island k from f - u / w; (whether any changed, whether any slides,
    whether one that slid already has `TURNED`).

    A contact that has separated, and stands still to `near`, neither presses nor parts but by
    rounding: it presses if the impulse that it would have had by now exceeds `edge`. Intervals
    keep their modes within `tied` of their limits. What bore no load presses, and sticks, if it is
    slower than `calm`. All by energy; near = tied = 0 where modes are not known yet. share: of its
    limit with which friction slides.
    """
    head, data = b.head, b.data
    f, u, weight, shape, mode = work.f, work.u, work.weight, work.shape, work.mode
    changed, slides, turned = False, False, False
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        kind, rows = head[i, Head.KIND], head[i, Head.ROWS]
        if weight[i, 0] == 0.0:  # a row that moves nothing
            for r in range(max(1, rows - 1)):
                mode[i, r] = SEPARATE
            continue
        if kind != Kind.CONTACT:
            new = STICK
            if kind == Kind.BOX:
                y, limit = f[i, 0] - u[i, 0] / weight[i, 0], share * data[i, Datum.LIMIT]
                new = SEPARATE  # without friction, as in the problem that takes overlap back
                if limit > 0.0:
                    new = _interval_mode(y, limit, mode[i, 0], tied / np.sqrt(weight[i, 0]))
            changed |= new != mode[i, 0]
            mode[i, 0] = new
            if is_gripped(b, i):
                new = STICK if weight[i, 1] > 0.0 else SEPARATE
                changed |= new != mode[i, 1]
                mode[i, 1] = new
            continue
        theta, begins = f[i, 0] - u[i, 0] / weight[i, 0], False
        length = np.sqrt(weight[i, 0])
        if mode[i, 0] == SEPARATE and abs(u[i, 0]) < near * length:
            theta = shape[i, 4] if shape[i, 4] * length > edge else 0.0
        elif f[i, 0] * length <= edge and abs(u[i, 0]) < calm * length:
            theta, begins = 0.0, True
        new = STICK if begins or theta > 0.0 else SEPARATE
        changed |= new != mode[i, 0]
        mode[i, 0] = new
        if rows < 3:
            continue
        presses, new = new == STICK, SEPARATE
        if law == Law.COULOMB:
            frictional = presses and data[i, Datum.SLIDE] > 0.0 and weight[i, 1] > 0.0
            if frictional and begins:
                new = STICK
            elif frictional:
                y0 = f[i, 1] - u[i, 1] / weight[i, 1]
                y1 = f[i, 2] - u[i, 2] / weight[i, 1]
                radius = share * data[i, Datum.SLIDE] * theta
                d0, d1, stiff = shape[i, 0], shape[i, 1], shape[i, 3]
                new = _disc_mode(facets, y0, y1, radius, weight[i, 1], eps, shape, i)
                if new == SLIDE:
                    slides = True
                    turned |= abs(shape[i, 3] - stiff) > TURNED * stiff
                    turned |= abs(shape[i, 0] - d0) + abs(shape[i, 1] - d1) > TURNED
        elif data[i, Datum.BOUND] >= 0.0 and (
            law == Law.VISCOUS or (law == Law.NO_SLIP and data[i, Datum.SLIDE] > 0.0)
        ):
            new = STICK
        changed |= new != mode[i, 1]
        mode[i, 1] = new
        for r in range(3, rows):
            new = SEPARATE
            rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
            if law == Law.COULOMB and presses and rough > 0.0 and weight[i, r] > 0.0:
                y, limit = f[i, r] - u[i, r] / weight[i, r], share * rough * theta
                new = _interval_mode(y, limit, mode[i, r - 1], tied / np.sqrt(weight[i, r]))
                slides |= new != STICK
            changed |= new != mode[i, r - 1]
            mode[i, r - 1] = new
    return changed, slides, turned


@lean
def note_modes(g: Graph, k, work: NewtonWorkspace):
    """past := the modes of island k."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for c in range(ROWS - 1):
            work.past[i, c] = work.mode[i, c]


@lean
def digest_modes(b: Blocks, g: Graph, k, work: NewtonWorkspace):
    """A number that other modes of island k hardly have."""
    digest = np.int64(0)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for c in range(max(1, b.head[i, Head.ROWS] - 1)):
            digest = digest * np.int64(DIGEST_PRIME) + work.mode[i, c] + 1
    return digest


@lean
def change_one(b: Blocks, g: Graph, k, law, facets, work: NewtonWorkspace, load):
    """Takes back all changes of modes but that of the block with the largest residual; whether any
    unit slides then. What slid goes on as it did."""
    mode, past = work.mode, work.past
    chosen, worst, slides = -1, -1.0, False
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        differs = False
        for c in range(ROWS - 1):
            differs |= mode[i, c] != past[i, c]
        if differs:
            off = residual_of_block(b, i, law, facets, work.u, work.f, work.weight, load)
            if off > worst:
                chosen, worst = i, off
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for c in range(ROWS - 1):
            if i != chosen:
                mode[i, c] = past[i, c]
            # What blocks that had more rows left behind is no mode.
            slides |= 0 < c < b.head[i, Head.ROWS] - 1 and mode[i, c] >= SLIDE
    return slides
