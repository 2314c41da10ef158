"""Margins on the simulator's own copy of a model: what may come into contact within the step.

A geom gets the distance that its body can travel in a step, h (|v| + |w| r), twice over because
forces may speed it up, and a hundredth of its own size for a start from rest (none if it is part
of the world, which may be large). A pair has the sum of its geoms' margins. Then a contact is
seen before it closes, and its gap enters the solve. Joints have the same for their limits, at the
speed of the fastest one, and tendons at their own.
"""

from __future__ import annotations

import numpy as np

from stiction.bridge.layout import integers, number, numbers, offset, pointer
from stiction.kernels.compile import kernel

AHEAD = 2.0
"""Steps of motion that a margin covers."""

SHARE = 0.01
"""Of a geom's radius, or of a limit's range: the margin at rest."""

_NBODY, _NGEOM, _NJNT, _NTENDON, _NPAIR, _NV = (
    offset("mjModel", name) for name in ("nbody", "ngeom", "njnt", "ntendon", "npair", "nv")
)
_TIMESTEP = offset("mjModel", "opt", "timestep")
_O_MARGIN = offset("mjModel", "opt", "o_margin")
_GEOM_BODY, _GEOM_MARGIN, _RBOUND, _BODY_MARGIN = (
    offset("mjModel", name) for name in ("geom_bodyid", "geom_margin", "geom_rbound", "body_margin")
)
_PAIR_A, _PAIR_B, _PAIR_MARGIN = (
    offset("mjModel", name) for name in ("pair_geom1", "pair_geom2", "pair_margin")
)
_JNT_MARGIN, _JNT_RANGE, _JNT_DOF, _JNT_TYPE, _TEN_MARGIN, _TEN_RANGE = (
    offset("mjModel", name)
    for name in (
        "jnt_margin",
        "jnt_range",
        "jnt_dofadr",
        "jnt_type",
        "tendon_margin",
        "tendon_range",
    )
)
_TEN_NNZ, _TEN_ADR, _TEN_COL = (
    offset("mjModel", f"ten_J_{name}") for name in ("rownnz", "rowadr", "colind")
)
_CVEL, _QVEL, _TEN_J, _XPOS, _COM, _ROOT, _WELD = (
    offset("mjData", "cvel"),
    offset("mjData", "qvel"),
    offset("mjData", "ten_J"),
    offset("mjData", "geom_xpos"),
    offset("mjData", "subtree_com"),
    offset("mjModel", "body_rootid"),
    offset("mjModel", "body_weldid"),
)


@kernel
def set_margins(m, d):
    """Writes geom, pair, body, joint and tendon margins of the model at m for the state of d."""
    dt = number(m + _TIMESTEP)
    nbody, ngeom = pointer(m + _NBODY), pointer(m + _NGEOM)
    njnt, ntendon, npair = pointer(m + _NJNT), pointer(m + _NTENDON), pointer(m + _NPAIR)
    body = integers(pointer(m + _GEOM_BODY), ngeom)
    root, weld = integers(pointer(m + _ROOT), nbody), integers(pointer(m + _WELD), nbody)
    margin, radius = numbers(pointer(m + _GEOM_MARGIN), ngeom), numbers(pointer(m + _RBOUND), ngeom)
    by_body = numbers(pointer(m + _BODY_MARGIN), nbody)
    cvel, x = numbers(pointer(d + _CVEL), 6 * nbody), numbers(pointer(d + _XPOS), 3 * ngeom)
    com = numbers(pointer(d + _COM), 3 * nbody)
    for i in range(nbody):
        by_body[i] = 0.0
    widest = 0.0
    for g in range(ngeom):
        i = body[g]
        w = 6 * i
        c = 3 * root[i]
        spin = np.sqrt(cvel[w] ** 2 + cvel[w + 1] ** 2 + cvel[w + 2] ** 2)
        speed = 0.0
        if spin > 0.0 or cvel[w + 3] != 0.0 or cvel[w + 4] != 0.0 or cvel[w + 5] != 0.0:
            # Velocity of the geom's centre: cvel is taken at the tree's centre of mass.
            r0, r1, r2 = x[3 * g] - com[c], x[3 * g + 1] - com[c + 1], x[3 * g + 2] - com[c + 2]
            v0 = cvel[w + 3] + cvel[w + 1] * r2 - cvel[w + 2] * r1
            v1 = cvel[w + 4] + cvel[w + 2] * r0 - cvel[w] * r2
            v2 = cvel[w + 5] + cvel[w] * r1 - cvel[w + 1] * r0
            speed = np.sqrt(v0 * v0 + v1 * v1 + v2 * v2) + spin * radius[g]
        margin[g] = AHEAD * dt * speed
        if weld[i] > 0:
            margin[g] += SHARE * radius[g]
        by_body[i] = max(by_body[i], margin[g])
        widest = max(widest, margin[g])
    first, second = integers(pointer(m + _PAIR_A), npair), integers(pointer(m + _PAIR_B), npair)
    pair = numbers(pointer(m + _PAIR_MARGIN), npair)
    for k in range(npair):
        pair[k] = margin[first[k]] + margin[second[k]]
    numbers(m + _O_MARGIN, 1)[0] = 2.0 * widest
    qvel = numbers(pointer(d + _QVEL), pointer(m + _NV))
    fastest = 0.0  # an impact may pass on to a joint what others have
    for j in range(qvel.shape[0]):
        fastest = max(fastest, abs(qvel[j]))
    limit, span = (
        numbers(pointer(m + _JNT_MARGIN), njnt),
        numbers(pointer(m + _JNT_RANGE), 2 * njnt),
    )
    for k in range(njnt):
        near = SHARE * (span[2 * k + 1] - span[2 * k])
        limit[k] = AHEAD * dt * fastest + near
    ten, reach = (
        numbers(pointer(m + _TEN_MARGIN), ntendon),
        numbers(pointer(m + _TEN_RANGE), 2 * ntendon),
    )
    count, start = (
        integers(pointer(m + _TEN_NNZ), ntendon),
        integers(pointer(m + _TEN_ADR), ntendon),
    )
    total = start[ntendon - 1] + count[ntendon - 1] if ntendon > 0 else 0
    column, rate = integers(pointer(m + _TEN_COL), total), numbers(pointer(d + _TEN_J), total)
    for k in range(ntendon):
        speed = 0.0
        for e in range(start[k], start[k] + count[k]):
            speed += rate[e] * qvel[column[e]]
        ten[k] = AHEAD * dt * abs(speed) + SHARE * (reach[2 * k + 1] - reach[2 * k])
