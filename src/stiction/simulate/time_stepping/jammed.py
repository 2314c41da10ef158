"""Overlap that cannot all be taken back at once: bodies set up within each other, whose normals
contradict each other (a wrist between two fingers, both inside of it).

For the speeds x that would take overlap back no answer exists; the one that comes nearest is

    min  1/2 x'Dx + 1/2 sum over contacts of max(0, bound - a x)^2 / c,    c = SOFTNESS a D^-1 a'

with D the diagonal of the mass: least squares of what stays undone, and little motion. Sweeps of
Gauss-Seidel over f = max(0, bound - a x) / c raise the dual objective from f = 0 on, so that
wherever they end x is bounded. No contact is asked to part faster than PARTING, and x moves
positions alone: no kinetic energy comes of it.
"""

from __future__ import annotations

from stiction.contact.problem.blocks import Datum, Head, Kind
from stiction.contact.solvers.blocks.workspace import unpack_newton, unpack_problem
from stiction.kernels.stage import stage

PARTING = 0.3
"""Speed at which jammed bodies are moved apart at most [m/s, rad/s]."""

SWING = 10.0
"""Speed of a joint at most on that way: contacts close to its axis would turn it as fast as they
like [m/s, rad/s]."""

SOFTNESS = 0.05
"""How readily a contact gives way to others that contradict it, over how its bodies do. Less needs
as many times more sweeps; with much more, what agrees would be taken back late."""

PARTING_SWEEPS = 60
"""Over the blocks of an island, to and fro."""


@stage("void(intp, int64)", eager=False)
def part_island(address, k):
    """Velocity of a packed workspace := speeds that move the bodies of island k apart, each joint
    at most at SWING; its impulses are overwritten. The blocks are those of `pose_overlap`."""
    b, g, _, _ = unpack_problem(address)
    _, newton = unpack_newton(address)
    head, column, value, mass, row = b.head, b.column, b.value, b.mass, b.row
    f, v = newton.f, newton.v
    first, last = g.members[k], g.members[k + 1] - 1
    for at in range(first, last + 1):
        i = g.member[at]
        c0 = head[i, Head.COLUMN]
        for r in range(head[i, Head.ROWS]):
            f[i, r] = 0.0
        for c in range(head[i, Head.WIDTH]):
            v[column[c0 + c]] = 0.0
    for sweep in range(PARTING_SWEEPS):
        for turn in range(last - first + 1):
            i = g.member[first + turn if sweep % 2 == 0 else last - turn]
            kind, c0, a0 = head[i, Head.KIND], head[i, Head.COLUMN], head[i, Head.VALUE]
            if kind == Kind.BOX or newton.weight[i, 0] == 0.0:
                continue
            speed, gives = 0.0, 0.0
            for c in range(head[i, Head.WIDTH]):
                j, entry = column[c0 + c], value[a0 + c]
                speed += entry * v[j]
                gives += entry * entry / mass[row[j] + j]
            if gives == 0.0:
                continue
            soft = SOFTNESS * gives
            if kind == Kind.SOFT and b.data[i, Datum.DRAG] > 0.0:
                soft = 1.0 / b.data[i, Datum.DRAG]
            bound = max(-PARTING, min(b.data[i, Datum.BOUND], PARTING))
            if kind == Kind.CONTACT and b.data[i, Datum.BOUND] < 0.0:
                bound = b.data[i, Datum.BOUND]
            new = f[i, 0] + (bound - speed - soft * f[i, 0]) / (gives + soft)
            if kind == Kind.CONTACT:
                new = max(new, 0.0)
            change = new - f[i, 0]
            f[i, 0] = new
            if change != 0.0:
                for c in range(head[i, Head.WIDTH]):
                    j = column[c0 + c]
                    v[j] += change * value[a0 + c] / mass[row[j] + j]
    for at in range(first, last + 1):
        i = g.member[at]
        c0 = head[i, Head.COLUMN]
        for c in range(head[i, Head.WIDTH]):
            j = column[c0 + c]
            v[j] = max(-SWING, min(v[j], SWING))


part_jammed = part_island.external
