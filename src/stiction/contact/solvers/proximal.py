"""Newton's method on the contact laws in velocities, with proximal impulses: a step's first rung.

Unknown is the velocity v; every row's impulse follows from it. With u the speed along a row (less
its bound), w its inverse inertia, and f the impulse of the last iteration, a row that holds has

    f+ = f - u / (eps w)                     so that at rest, f+ = f, u is zero exactly

A row that separates has none, a sliding one mu f_n+ against the slip. The momentum balance
M (v - v0) = h f_applied + A' f+ is then a linear system in v whose matrix is

    M + sum over holding rows of a a' / (eps w) + (mu / (eps w_n)) d n' where sliding along d

of the size of the velocities, however many contacts there are and however they depend on each
other. Redundant rows share the load in one way only, whatever the start: with new modes f begins at
zero, and -u / (eps w) summed over iterations is the least impulse, weighted by w, that does it.
Modes are those of Alart and Curnier's functions (`newton.py`), the step of whose projection is
1/w: a contact presses if f - u/w > 0, sticks if the friction f - u/w stays in its disc. Without
sliding the matrix is symmetric and stays the same while the modes do: then an iteration costs a
triangular solve, and the impulses converge by a factor of eps times the spread of inertias each.

What each iteration keeps true: the momentum balance, to rounding. How it can fail: the modes go
round, or a sliding system has no solution; the caller tries another start, then the pivoting
solvers. Its answer counts only if the certificate passes it.

The law may be any of `grading.Law` but CONVEX: frictionless leaves rows 1.. out, no-slip holds rows
1 and 2 of a touching contact whatever the normal does, viscous friction is a row that gives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.grading import Law
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import (
    ROWS,
    Blocks,
    Datum,
    Head,
    Indices,
    Kind,
    add_impulses,
    row_velocities,
)
from stiction.contact.solvers.newton import polygon_edge, project_polygon
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.envelope import (
    close_envelope,
    factor_any,
    factor_symmetric,
    solve_any,
    solve_symmetric,
)

EPS = 1e-7
"""Proximal compliance of a row over its own inverse inertia. Each iteration with settled modes
leaves EPS of the error times the ratio of inertias in contact; the matrix gets the condition
1 / EPS, which a refined solve still resolves to rounding."""

EXACT = 1e-13
"""Residual of impulses and speeds, relative to the load, at which the iteration ends."""

CONVERGED = 1e-11
"""Residual with which a start from the last step's modes is content."""

TOLERABLE = 1e-8
"""Residual that is left to the certificate to judge once it no longer falls, from any start."""

WARM, COLD, SOFT, PATIENCE = 15, 25, 6, 8
"""Iterations at most from the last step's modes, from a start at rest, and at each softness; and
those without half the residual after which modes are taken to go round."""

SOFTNESS = (1.0, 0.1, 1e-2, 1e-3, 1e-4)
"""Compliance of a row over its own inverse inertia on the way to EPS. At one, contact gives as
much as the bodies do, and Newton's method finds its modes from anywhere."""

TRIES = ((1.0, 1.0), (0.1, 1.0), (1.0, 10.0), (10.0, 1.0), (100.0, 1.0))
"""Starts: the projections' steps along normals and along friction. One comes from soft contact,
the others from none; a long step along normals lets contacts stick before they slide."""

OFF, HELD, SLID, BACK = 0, 1, 2, 3
"""Modes of a unit: no impulse; holds; slides at its limit; of an interval, at its lower limit."""


class NewtonWorkspace(NamedTuple):
    """What one solve works in, for at most `cap` blocks and nv degrees of freedom."""

    f: Array  # (cap, ROWS) impulses
    g: Array  # (cap, ROWS) impulses that the modes give at the speeds u
    guess: Array  # (cap, ROWS) impulses to start from
    u: Array  # (cap, ROWS) speeds less bounds
    size: Array  # (cap, ROWS) of `row_velocities`
    weight: Array  # (cap, ROWS) inverse inertia of each row, of rows 1 and 2 the larger one
    shape: Array  # (cap, 5) of a sliding disc: direction, factor of f_n, stiffness across, memory
    mode: NDArray[np.int8]  # (cap, ROWS - 1) of the normal, the disc of rows 1, 2, rows 3, 4, 5
    H: Array  # (nv, nv)
    first: Indices  # (nv,)
    v: Array  # (nv,)
    r: Array  # (nv,)
    scratch: Array  # (8, nv) the rows of a block, and combinations of them


def allocate(nv: int, cap: int) -> NewtonWorkspace:
    """Room for problems of that size."""
    f, g, guess, u, size, weight = (np.zeros((cap, ROWS)) for _ in range(6))
    return NewtonWorkspace(
        f,
        g,
        guess,
        u,
        size,
        weight,
        np.zeros((cap, 5)),
        np.zeros((cap, ROWS - 1), np.int8),
        np.zeros((nv, nv)),
        np.zeros(nv, np.int64),
        np.zeros(nv),
        np.zeros(nv),
        np.zeros((8, nv)),
    )


@kernel
def load_of(b: Blocks, count, law, u, weight):
    """How hard the free motion u runs into the rows, by energy; zero if nothing needs to act."""
    load = 0.0
    for i in range(count):
        kind = b.head[i, Head.KIND]
        rows = b.head[i, Head.ROWS]
        if kind == Kind.CONTACT:
            if u[i, 0] < 0.0 and weight[i, 0] > 0.0:
                load = max(load, -u[i, 0] / np.sqrt(weight[i, 0]))
            if law == Law.FRICTIONLESS or rows < 3 or weight[i, 1] == 0.0:
                continue
            sticky = law != Law.COULOMB and b.data[i, Datum.BOUND] >= 0.0
            if u[i, 0] < 0.0 or sticky:
                slip = np.sqrt(u[i, 1] * u[i, 1] + u[i, 2] * u[i, 2])
                load = max(load, slip / np.sqrt(weight[i, 1]))
        elif weight[i, 0] > 0.0:
            load = max(load, abs(u[i, 0]) / np.sqrt(weight[i, 0]))
    return load


@leaf
def _disc_mode(facets, y0, y1, radius, w, rub, eps, shape, i):
    """Mode of a disc whose projected impulse is y, and the `shape` of a sliding one."""
    if facets > 0:
        _, _, place = project_polygon(y0, y1, radius, 0.0, facets)
        if place < 0:
            return HELD
        half = np.pi / facets
        angle = polygon_edge(y0, y1, 0.0, facets)
        if place == 0:
            angle += half
            shape[i, 2] = np.cos(half)
            shape[i, 3] = 1.0 / (eps * w)
            shape[i, 4] = eps * w
        else:
            angle += 0.0 if place == 1 else 2.0 * half
            shape[i, 2] = 1.0
            shape[i, 3] = 0.0
            shape[i, 4] = 0.0
        shape[i, 0] = np.cos(angle)
        shape[i, 1] = np.sin(angle)
        return SLID
    size = np.sqrt(y0 * y0 + y1 * y1)
    if size <= radius:
        return HELD
    shape[i, 0] = y0 / size
    shape[i, 1] = y1 / size
    shape[i, 2] = 1.0
    # Across the slip the impulse turns with it: f = -(R / |slip|) u; |slip| = (|y| - R) w / rub.
    shape[i, 3] = radius / (w * (size - radius) / rub + radius * eps * w)
    shape[i, 4] = eps * w
    return SLID


@leaf
def _interval_mode(y, radius):
    if y > radius:
        return SLID
    if y < -radius:
        return BACK
    return HELD


@kernel
def find_modes(b: Blocks, count, law, facets, work: NewtonWorkspace, memory, press, rub, eps):
    """Modes of all units from memory f - rho u / w, with rho = press along normals and rub along
    all other rows; returns (whether any changed, whether any slides)."""
    head, data = b.head, b.data
    f, u, weight, shape, mode = work.f, work.u, work.weight, work.shape, work.mode
    changed = False
    slides = False
    for i in range(count):
        kind = head[i, Head.KIND]
        rows = head[i, Head.ROWS]
        if weight[i, 0] == 0.0:  # a row that moves nothing
            mode[i, 0] = OFF
            if rows > 2:
                mode[i, 1] = OFF
            for r in range(3, rows):
                mode[i, r - 1] = OFF
            continue
        if kind != Kind.CONTACT:
            new = HELD
            if kind == Kind.BOX:
                y = memory * f[i, 0] - rub * u[i, 0] / weight[i, 0]
                new = _interval_mode(y, data[i, Datum.LIMIT])
            changed |= new != mode[i, 0]
            mode[i, 0] = new
            continue
        theta = memory * f[i, 0] - press * u[i, 0] / weight[i, 0]
        new = HELD if theta > 0.0 else OFF
        changed |= new != mode[i, 0]
        mode[i, 0] = new
        if rows < 3:
            continue
        new = OFF
        if law == Law.COULOMB:
            if theta > 0.0 and data[i, Datum.SLIDE] > 0.0 and weight[i, 1] > 0.0:
                y0 = memory * f[i, 1] - rub * u[i, 1] / weight[i, 1]
                y1 = memory * f[i, 2] - rub * u[i, 2] / weight[i, 1]
                radius = data[i, Datum.SLIDE] * theta
                new = _disc_mode(facets, y0, y1, radius, weight[i, 1], rub, eps, shape, i)
                slides |= new == SLID
        elif data[i, Datum.BOUND] >= 0.0 and (
            law == Law.VISCOUS or (law == Law.NO_SLIP and data[i, Datum.SLIDE] > 0.0)
        ):
            new = HELD
        changed |= new != mode[i, 1]
        mode[i, 1] = new
        for r in range(3, rows):
            new = OFF
            rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
            if law == Law.COULOMB and theta > 0.0 and rough > 0.0 and weight[i, r] > 0.0:
                y = memory * f[i, r] - rub * u[i, r] / weight[i, r]
                new = _interval_mode(y, rough * theta)
                slides |= new != HELD
            changed |= new != mode[i, r - 1]
            mode[i, r - 1] = new
    return changed, slides


@kernel
def predict(b: Blocks, count, law, work: NewtonWorkspace, memory, eps):
    """g := the impulses that the modes give at the speeds u, after the impulses f, or after none
    if memory is 0."""
    head, data = b.head, b.data
    f, g, u = work.f, work.g, work.u
    weight, shape, mode = work.weight, work.shape, work.mode
    for i in range(count):
        rows = head[i, Head.ROWS]
        if mode[i, 0] == HELD:
            g[i, 0] = memory * f[i, 0] - u[i, 0] / (eps * weight[i, 0])
        elif mode[i, 0] == OFF:
            g[i, 0] = 0.0
        else:
            g[i, 0] = data[i, Datum.LIMIT] if mode[i, 0] == SLID else -data[i, Datum.LIMIT]
        if rows < 3:
            continue
        if mode[i, 1] == OFF:
            g[i, 1] = g[i, 2] = 0.0
        elif law == Law.VISCOUS:
            g[i, 1] = -data[i, Datum.DRAG] * u[i, 1]
            g[i, 2] = -data[i, Datum.DRAG] * u[i, 2]
        elif mode[i, 1] == HELD:
            for r in range(1, 3):
                g[i, r] = memory * f[i, r] - u[i, r] / (eps * weight[i, 1])
        else:
            d0, d1 = shape[i, 0], shape[i, 1]
            along = data[i, Datum.SLIDE] * shape[i, 2] * g[i, 0]
            held = memory * shape[i, 4] * (d0 * f[i, 2] - d1 * f[i, 1])
            across = shape[i, 3] * (held - (d0 * u[i, 2] - d1 * u[i, 1]))
            g[i, 1] = along * d0 - across * d1
            g[i, 2] = along * d1 + across * d0
        for r in range(3, rows):
            rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
            if mode[i, r - 1] == OFF:
                g[i, r] = 0.0
            elif mode[i, r - 1] == HELD:
                g[i, r] = memory * f[i, r] - u[i, r] / (eps * weight[i, r])
            else:
                g[i, r] = rough * g[i, 0] * (1.0 if mode[i, r - 1] == SLID else -1.0)


@kernel
def _add_product(column, c0, width, left, right, factor, scratch, H, whole):
    """H += factor * left right' over `width` columns from c0 on, of two rows of scratch; only
    the lower part unless `whole`."""
    for k in range(width):
        at = column[c0 + k]
        scale = factor * scratch[left, k]
        if scale != 0.0:
            end = width if whole else k + 1
            for c in range(end):
                H[at, column[c0 + c]] += scale * scratch[right, c]


@kernel
def _add_held(column, c0, width, press, rub, value, a0, H, whole):
    """H += press n n' + rub (t t' + s s') in one pass: normal and tangents in three rows of
    `value` from a0 on."""
    t0, s0 = a0 + width, a0 + 2 * width
    together = column[c0 + width - 1] - column[c0] == width - 1
    for k in range(width):
        at = column[c0 + k]
        n, t, s = press * value[a0 + k], rub * value[t0 + k], rub * value[s0 + k]
        end = width if whole else k + 1
        if together:  # without the indirection the compiler can use vectors
            low = column[c0]
            for c in range(end):
                H[at, low + c] += n * value[a0 + c] + t * value[t0 + c] + s * value[s0 + c]
        else:
            for c in range(end):
                gain = n * value[a0 + c] + t * value[t0 + c] + s * value[s0 + c]
                H[at, column[c0 + c]] += gain


@kernel
def assemble(b: Blocks, count, law, work: NewtonWorkspace, whole, eps):
    """Fills H and its envelope with the matrix of the present modes; `whole` with both parts."""
    head, data, column, value = b.head, b.data, b.column, b.value
    weight, shape, mode, H, first = work.weight, work.shape, work.mode, work.H, work.first
    scratch = work.scratch
    nv = H.shape[0]
    for j in range(nv):
        first[j] = b.first[j]
    for i in range(count):
        if mode[i, 0] == HELD or (head[i, Head.ROWS] > 2 and mode[i, 1] != OFF):
            width, c0 = head[i, Head.WIDTH], head[i, Head.COLUMN]
            for k in range(1, width):
                first[column[c0 + k]] = min(first[column[c0 + k]], column[c0])
    close_envelope(first)
    for j in range(nv):
        for k in range(first[j], j + 1):
            H[j, k] = b.mass[j, k] if k >= b.first[j] else 0.0
        if whole:
            for k in range(first[j], j):
                H[k, j] = H[j, k]
    for i in range(count):
        rows = head[i, Head.ROWS]
        width, a0 = head[i, Head.WIDTH], head[i, Head.VALUE]
        held = mode[i, 0] == HELD
        rubs = rows > 2 and mode[i, 1] != OFF
        if not (held or rubs):
            continue
        c0 = head[i, Head.COLUMN]
        stiff = 1.0 / (eps * weight[i, 0])
        simple = held and rubs and mode[i, 1] == HELD and law != Law.VISCOUS
        if simple:
            rub = 1.0 / (eps * weight[i, 1])
            _add_held(column, c0, width, stiff, rub, value, a0, H, whole)
            if rows == 3:
                continue
        for r in range(rows):
            for k in range(width):
                scratch[r, k] = value[a0 + r * width + k]
        if not simple:
            if held:
                _add_product(column, c0, width, 0, 0, stiff, scratch, H, whole)
            if rubs and mode[i, 1] == HELD:
                rub = data[i, Datum.DRAG] if law == Law.VISCOUS else 1.0 / (eps * weight[i, 1])
                for r in range(1, 3):
                    _add_product(column, c0, width, r, r, rub, scratch, H, whole)
            elif rubs:
                for k in range(width):
                    scratch[6, k] = shape[i, 0] * scratch[1, k] + shape[i, 1] * scratch[2, k]
                    scratch[7, k] = shape[i, 0] * scratch[2, k] - shape[i, 1] * scratch[1, k]
                rough = data[i, Datum.SLIDE] * shape[i, 2]
                _add_product(column, c0, width, 7, 7, shape[i, 3], scratch, H, whole)
                _add_product(column, c0, width, 6, 0, rough * stiff, scratch, H, whole)
        for r in range(3, rows):
            at = mode[i, r - 1]
            if at == HELD:
                _add_product(
                    column, c0, width, r, r, 1.0 / (eps * weight[i, r]), scratch, H, whole
                )  # fmt: skip
            elif at != OFF:
                rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
                sign = 1.0 if at == SLID else -1.0
                _add_product(column, c0, width, r, 0, sign * rough * stiff, scratch, H, whole)


@kernel
def residual_of(b: Blocks, count, law, facets, work: NewtonWorkspace, load):
    """Largest entry of Alart and Curnier's functions, relative to the load."""
    head, data, f, u, weight = b.head, b.data, work.f, work.u, work.weight
    worst = 0.0
    for i in range(count):
        kind = head[i, Head.KIND]
        rows = head[i, Head.ROWS]
        if weight[i, 0] <= 0.0:
            continue
        length = np.sqrt(weight[i, 0])
        x, y = f[i, 0] * length / load, u[i, 0] / (length * load)
        if kind == Kind.HOLD:
            worst = max(worst, abs(y))
            continue
        if kind == Kind.BOX:
            edge = data[i, Datum.LIMIT] * length / load
            worst = max(worst, abs(x - min(max(x - y, -edge), edge)))
            continue
        worst = max(worst, abs(min(x, y)))
        if rows < 3 or weight[i, 1] == 0.0 or work.mode[i, 1] == OFF:
            continue
        across = np.sqrt(weight[i, 1])
        s0, s1 = u[i, 1] / (across * load), u[i, 2] / (across * load)
        if law == Law.NO_SLIP:
            worst = max(worst, np.sqrt(s0 * s0 + s1 * s1))
            continue
        if law != Law.COULOMB:
            continue
        p0, p1 = f[i, 1] * across / load, f[i, 2] * across / load
        radius = data[i, Datum.SLIDE] * max(x, 0.0) * across / length
        y0, y1 = p0 - s0, p1 - s1
        if facets > 0:
            q0, q1, _ = project_polygon(y0, y1, radius, 0.0, facets)
        else:
            size = np.sqrt(y0 * y0 + y1 * y1)
            shrink = 1.0 if size <= radius else radius / size
            q0, q1 = y0 * shrink, y1 * shrink
        worst = max(worst, max(abs(p0 - q0), abs(p1 - q1)))
        for r in range(3, rows):
            if weight[i, r] > 0.0:
                rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
                span = np.sqrt(weight[i, r])
                edge = rough * max(x, 0.0) * span / length
                p, s = f[i, r] * span / load, u[i, r] / (span * load)
                worst = max(worst, abs(p - min(max(p - s, -edge), edge)))
    return worst


@kernel
def enter_cones(b: Blocks, count, law, facets, f):
    """Takes rounding off the impulses: none pulls, none leaves its cone."""
    head, data = b.head, b.data
    for i in range(count):
        if head[i, Head.KIND] != Kind.CONTACT:
            if head[i, Head.KIND] == Kind.BOX:
                limit = data[i, Datum.LIMIT]
                f[i, 0] = min(max(f[i, 0], -limit), limit)
            continue
        f[i, 0] = max(f[i, 0], 0.0)
        if law != Law.COULOMB or head[i, Head.ROWS] < 3:
            continue
        radius = data[i, Datum.SLIDE] * f[i, 0]
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


@kernel
def respond(b: Blocks, count, law, work: NewtonWorkspace, eps):
    """f := g and what it changes by with the velocity r: u moves along. By the change itself,
    because the speeds' rounding, divided by EPS, would spoil the momentum balance."""
    head, data, column, value = b.head, b.data, b.column, b.value
    f, g, u, r = work.f, work.g, work.u, work.r
    weight, shape, mode = work.weight, work.shape, work.mode
    for i in range(count):
        rows, width = head[i, Head.ROWS], head[i, Head.WIDTH]
        c0 = head[i, Head.COLUMN]
        normal = 0.0
        first = 0.0
        for k in range(rows):
            a0 = head[i, Head.VALUE] + k * width
            change = 0.0
            for c in range(width):
                change += value[a0 + c] * r[column[c0 + c]]
            u[i, k] += change
            response = 0.0
            if k == 0:
                if mode[i, 0] == HELD:
                    response = -change / (eps * weight[i, 0])
                normal = response
            elif k < 3:
                if mode[i, 1] == OFF:
                    response = 0.0
                elif law == Law.VISCOUS:
                    response = -data[i, Datum.DRAG] * change
                elif mode[i, 1] == HELD:
                    response = -change / (eps * weight[i, 1])
                elif k == 1:
                    first = change
                else:
                    d0, d1 = shape[i, 0], shape[i, 1]
                    along = data[i, Datum.SLIDE] * shape[i, 2] * normal
                    across = -shape[i, 3] * (d0 * change - d1 * first)
                    f[i, 1] = g[i, 1] + along * d0 - across * d1
                    response = along * d1 + across * d0
            else:
                at = mode[i, k - 1]
                if at == HELD:
                    response = -change / (eps * weight[i, k])
                elif at != OFF:
                    rough = data[i, Datum.SPIN] if k == 3 else data[i, Datum.ROLL]
                    response = rough * normal * (1.0 if at == SLID else -1.0)
            if not (k == 1 and mode[i, 1] == SLID):
                f[i, k] = g[i, k] + response


@kernel
def _unbalanced(b: Blocks, count, work: NewtonWorkspace):
    """r := what the impulses g leave of the momentum balance at the velocity v."""
    v, r, mass, first = work.v, work.r, b.mass, b.first
    for j in range(v.shape[0]):
        r[j] = b.push[j]
    for j in range(v.shape[0]):
        moved = v[j] - b.velocity[j]
        r[j] -= mass[j, j] * moved
        for k in range(first[j], j):
            r[j] -= mass[j, k] * (v[k] - b.velocity[k])
            r[k] -= mass[j, k] * moved
    add_impulses(b, count, work.g, r)


@kernel
def _newton_step(b: Blocks, count, law, work: NewtonWorkspace, whole, anew, memory, eps):
    """One linear solve at the present modes, factored `anew` or as before; whether it went."""
    v, r, H, first = work.v, work.r, work.H, work.first
    if anew:
        assemble(b, count, law, work, whole, eps)
        bad = factor_any(H, first) if whole else factor_symmetric(H, first)
        if bad >= 0:
            return False
    predict(b, count, law, work, memory, eps)
    _unbalanced(b, count, work)
    if whole:
        solve_any(H, first, r)
    else:
        solve_symmetric(H, first, r)
    for j in range(v.shape[0]):
        v[j] += r[j]
    respond(b, count, law, work, eps)
    return True


@kernel
def iterate(b: Blocks, count, law, facets, work: NewtonWorkspace, load, press, rub, keep, limit):
    """(residual, iterations, factorizations) from the impulses f and the velocity v in `work`,
    which move to a solution; u and size are those of v. keep: 1 if f is to be built upon, 0 if
    only its modes are. (Whole numbers: the constants true and false would be compiled apart.)
    """
    ready = False
    whole = False
    best = np.inf
    stuck = 0
    factorizations = 0
    residual = np.inf
    for step in range(limit):
        changed, slides = find_modes(b, count, law, facets, work, 1.0, press, rub, EPS)
        anew = changed or slides or whole or not ready
        whole = slides
        factorizations += anew
        memory = 0.0 if keep == 0 and (changed or step == 0) else 1.0
        if not _newton_step(b, count, law, work, whole, anew, memory, EPS):
            return np.inf, step + 1, factorizations
        ready = True
        residual = residual_of(b, count, law, facets, work, load)
        if residual <= EXACT:
            return residual, step + 1, factorizations
        if residual < 0.5 * best:
            best = residual
            stuck = 0
        else:
            stuck += 1
            if stuck > PATIENCE:
                return residual, step + 1, factorizations
    return residual, limit, factorizations


@kernel
def stiffen(b: Blocks, count, law, facets, work: NewtonWorkspace):
    """Iterations taken: from the free motion to modes near the solution's, by contact that gives
    at first, f = -u / (eps w), and ever less."""
    taken = 0
    for softness in SOFTNESS:
        for step in range(SOFT):
            changed, slides = find_modes(
                b, count, law, facets, work, 0.0, 1.0 / softness, 1.0 / softness, softness
            )
            if step > 0 and not changed and not slides:
                break
            taken += 1
            anew = step >= 0
            if not _newton_step(b, count, law, work, slides, anew, 0.0, softness):
                return taken
    return taken


@kernel
def _start(b: Blocks, count, v_free, work: NewtonWorkspace):
    """No impulses, and the velocity without them."""
    for i in range(count):
        for k in range(ROWS):
            work.f[i, k] = 0.0
    for j in range(v_free.shape[0]):
        work.v[j] = v_free[j]
    row_velocities(b, count, work.v, work.u, work.size)


@kernel
def solve_blocks(b: Blocks, count, law, facets, v_free, work: NewtonWorkspace, warm):
    """(residual, iterations, factorizations, attempts): fills impulses f and velocity v of `work`;
    attempts is 0 if the guess was enough, -1 if it was and had to be built upon.

    v_free (nv,) and the rows' weights are the caller's. warm: 1 if f comes with a guess,
    2 if the step before had to build upon its own, else 0.
    """
    u, v, weight = work.u, work.v, work.weight
    for i in range(count):
        if b.head[i, Head.ROWS] > 2:
            weight[i, 1] = weight[i, 2] = max(weight[i, 1], weight[i, 2])
    row_velocities(b, count, v_free, u, work.size)
    load = load_of(b, count, law, u, weight)
    if load == 0.0:
        _start(b, count, v_free, work)
        return 0.0, 0, 0, 0
    residual, iterations, factorizations = np.inf, 0, 0
    # What held in the last step held at the velocity that this one begins with, and its impulses
    # tell the modes. They are built upon only if the least ones that these modes give do not do:
    # where contacts can push against each other, the least may lie outside a cone.
    for turn in range(2 if warm > 0 else 0):
        keep = turn if warm == 1 else 1 - turn
        for i in range(count):
            for k in range(ROWS):
                if turn == 0:
                    work.guess[i, k] = work.f[i, k]
                else:
                    work.f[i, k] = work.guess[i, k]
        for j in range(v.shape[0]):
            v[j] = b.velocity[j]
        row_velocities(b, count, v, u, work.size)
        residual, more, again = iterate(
            b, count, law, facets, work, load, 1.0, 1.0, np.int64(keep), np.int64(WARM)
        )
        iterations += more
        factorizations += again
        if residual <= CONVERGED:
            enter_cones(b, count, law, facets, work.f)
            return residual, iterations, factorizations, -keep
    best, least = 0, np.inf
    taken = 0
    for turn in range(len(TRIES) + 1):
        attempt = turn if turn < len(TRIES) else best  # the best one once more if none converged
        taken += 1
        press, rub = TRIES[attempt]
        _start(b, count, v_free, work)
        # Without friction Newton's method seldom needs help.
        helped = attempt == (0 if law == Law.COULOMB else 1)
        soft = stiffen(b, count, law, facets, work) if helped else 0
        residual, more, again = iterate(
            b, count, law, facets, work, load, press, rub, np.int64(0), np.int64(COLD)
        )
        iterations += soft + more
        factorizations += soft + again
        if residual <= CONVERGED:
            break
        if residual < least:
            best, least = attempt, residual
        if turn == len(TRIES) - 1 and (best == attempt or least > TOLERABLE):
            break
    enter_cones(b, count, law, facets, work.f)
    return residual, iterations, factorizations, taken
