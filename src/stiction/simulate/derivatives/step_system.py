"""The two linear systems of a step: that of its velocity, by the law of contact, and that of its
correction of overlap."""

from __future__ import annotations

from stiction.bridge.rows import Place
from stiction.contact.derivatives.held_rows import Held, Size, add_row, fill_inertia, fill_rows
from stiction.contact.derivatives.held_system import Solved, factor_inertia, hold_rows
from stiction.contact.derivatives.soft_system import Softened, gives_way, soften
from stiction.contact.problem.blocks import Blocks
from stiction.kernels.compile import lean, lean_leaf
from stiction.simulate.derivatives.memory import Working
from stiction.simulate.time_stepping.workspace import Step


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
        return soften(h, s, z)
    if not factor_inertia(s):
        return -1
    return hold_rows(h.size[Size.HELD], h.held, h.along, h.size[Size.SLOPED] == 1, s)


@lean_leaf
def has_factored_mass(h: Held):
    """Whether the inertia alone is what `hold_velocity` has factored."""
    return h.size[Size.CURVED] == 0 and not gives_way(h)


@lean
def hold_correction(lifted, factored, b: Blocks, count, s: Solved, w: Working):
    """The same of the correction, which holds the first `lifted` of w.lifted; factored: whether the
    inertia alone is what was factored last."""
    nv = w.sigma.shape[0]
    if not factored:
        fill_inertia(b, count, s.inertia)
        if not factor_inertia(s):
            return -1
    for a in range(lifted):
        for j in range(nv):
            w.normal[a, j] = 0.0
        add_row(b, w.lifted[a, 0], 0, 1.0, w.normal, a)
    return hold_rows(lifted, w.normal, w.normal, False, s)


@lean_leaf
def share_rate(i, dt, step: Step, w: Working):
    """What the share of block i changes by as the deepest gap does, or 0."""
    if w.deepest[i] < 0:
        return 0.0
    return w.share[i] * step.place[i, Place.GAP] / step.place[w.deepest[i], Place.GAP] / dt
