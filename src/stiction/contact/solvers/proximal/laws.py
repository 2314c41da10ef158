"""The laws of an island by blocks: how hard the free motion breaks them, how far an iterate is off,
and impulses that are taken into their cones. Alart and Curnier's functions (`coulomb/newton.py`),
with the step 1/w of each row."""

from __future__ import annotations

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import Blocks, Datum, Head, Kind, is_gripped
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.solvers.coulomb.newton import project_polygon
from stiction.kernels.compile import lean, lean_leaf

CLOSING = 1e-13
"""Speed at which a contact closes, over the terms that it is the sum of, up to which that is their
rounding: of bodies that fall together, touching, and have nothing to do with each other."""


@lean
def _runs_in(b: Blocks, i, u, v):
    """Whether contact i closes at its speed u (< 0), rather than that rounding of the velocity v
    makes it look so."""
    width, c0, a0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN], b.head[i, Head.VALUE]
    parts = 0.0
    for c in range(width):
        parts += abs(b.value[a0 + c] * v[b.column[c0 + c]])
    return -u > CLOSING * parts


@lean
def load_of(b: Blocks, g: Graph, k, law, u, weight, v):
    """How hard the free motion, v with speeds u along the rows, runs into the rows of island k, by
    energy; zero if nothing needs to act."""
    load, acts = 0.0, g.size[Size.STAR] == 1
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        kind, rows = b.head[i, Head.KIND], b.head[i, Head.ROWS]
        if kind == Kind.CONTACT:
            if u[i, 0] < 0.0 and weight[i, 0] > 0.0:
                load = max(load, -u[i, 0] / np.sqrt(weight[i, 0]))
                acts = acts or _runs_in(b, i, u[i, 0], v)
            if law == Law.FRICTIONLESS or rows < 3 or weight[i, 1] == 0.0:
                continue
            sticky = law != Law.COULOMB and b.data[i, Datum.BOUND] >= 0.0
            if u[i, 0] < 0.0 or sticky:
                slip = np.sqrt(u[i, 1] * u[i, 1] + u[i, 2] * u[i, 2])
                load = max(load, slip / np.sqrt(weight[i, 1]))
                acts = acts or (sticky and slip > 0.0)
        elif kind != Kind.SOFT:
            for r in range(3 if is_gripped(b, i) else 1):
                if weight[i, r] > 0.0 and u[i, r] != 0.0:
                    load, acts = max(load, abs(u[i, r]) / np.sqrt(weight[i, r])), True
    return load if acts else 0.0


@lean_leaf
def residual_of_block(b: Blocks, i, law, facets, u, f, weight, load):
    """Largest entry of Alart and Curnier's functions of block i, relative to the load."""
    head, data = b.head, b.data
    kind, rows = head[i, Head.KIND], head[i, Head.ROWS]
    if weight[i, 0] <= 0.0 or kind == Kind.SOFT:
        return 0.0
    length = np.sqrt(weight[i, 0])
    x, y = f[i, 0] * length / load, u[i, 0] / (length * load)
    if kind == Kind.HOLD:
        off = abs(y)
    elif kind == Kind.BOX:
        edge = data[i, Datum.LIMIT] * length / load
        off = abs(x - min(max(x - y, -edge), edge))
    else:
        off = abs(min(x, y))
    if kind == Kind.CONTACT and rows > 2 and weight[i, 1] > 0.0:
        across = np.sqrt(weight[i, 1])
        s0, s1 = u[i, 1] / (across * load), u[i, 2] / (across * load)
        if law == Law.NO_SLIP and data[i, Datum.BOUND] >= 0.0 and data[i, Datum.SLIDE] > 0.0:
            off = max(off, np.sqrt(s0 * s0 + s1 * s1))
        elif law == Law.COULOMB and data[i, Datum.SLIDE] > 0.0:
            p0, p1 = f[i, 1] * across / load, f[i, 2] * across / load
            radius = data[i, Datum.SLIDE] * x * across / length if x > 0.0 else 0.0
            y0, y1 = p0 - s0, p1 - s1
            if facets > 0:
                q0, q1, _ = project_polygon(y0, y1, radius, 0.0, facets)
            else:
                size = np.sqrt(y0 * y0 + y1 * y1)
                shrink = 1.0 if size <= radius else radius / size
                q0, q1 = y0 * shrink, y1 * shrink
            off = max(off, max(abs(p0 - q0), abs(p1 - q1)))
        if law == Law.COULOMB:
            for r in range(3, rows):
                if weight[i, r] > 0.0:
                    rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
                    span = np.sqrt(weight[i, r])
                    edge = rough * max(x, 0.0) * span / length
                    p, s = f[i, r] * span / load, u[i, r] / (span * load)
                    off = max(off, abs(p - min(max(p - s, -edge), edge)))
    return off


@lean
def residual_of(b: Blocks, g: Graph, k, law, facets, u, f, weight, load):
    """Largest entry of Alart and Curnier's functions over island k, relative to the load."""
    worst = 0.0
    for at in range(g.members[k], g.members[k + 1]):
        off = residual_of_block(b, g.member[at], law, facets, u, f, weight, load)
        if not off <= worst:  # also where it is not a number
            worst = off
    return worst


@lean
def enter_cones(b: Blocks, g: Graph, k, law, facets, f):
    """Takes rounding off the impulses of island k: none pulls, none leaves its cone."""
    head, data = b.head, b.data
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        if head[i, Head.KIND] != Kind.CONTACT:
            if head[i, Head.KIND] == Kind.BOX:
                limit = data[i, Datum.LIMIT]
                f[i, 0] = min(max(f[i, 0], -limit), limit)
            continue
        f[i, 0] = max(f[i, 0], 0.0)
        if law != Law.COULOMB or head[i, Head.ROWS] < 3:
            continue
        radius = data[i, Datum.SLIDE] * f[i, 0] if f[i, 0] > 0.0 else 0.0
        if facets > 0:
            f[i, 1], f[i, 2], _ = project_polygon(f[i, 1], f[i, 2], radius, 0.0, facets)
        else:
            size = np.sqrt(f[i, 1] * f[i, 1] + f[i, 2] * f[i, 2])
            if size > radius:
                f[i, 1] *= radius / size
                f[i, 2] *= radius / size
        for r in range(3, head[i, Head.ROWS]):
            limit = (data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]) * f[i, 0]
            f[i, r] = min(max(f[i, r], -limit), limit)
