"""Margins on the simulator's own copy of a model: what may come into contact within the step.

A geom gets the distance that its body can travel in a step, h (|v| + |w| r), half as much again
because contact may speed it up, with the faster of its present motion and of the motion that it
would have without contact; and a hundredth of its own size (none if it is part of the world,
which may be large, or only to be looked at). A pair has the sum of its geoms' margins. Then a
contact is seen before it closes, and its gap enters the solve. Joints have the same for their
limits, at the speed of the fastest one, and tendons at their own.
"""

from __future__ import annotations

import mujoco
import numpy as np

from stiction.bridge.layout import flags, integers, number, numbers, offset, pointer
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.triples import dot, velocity_at

SLIDE = int(mujoco.mjtJoint.mjJNT_SLIDE)
"""The first of the joint types with one degree of freedom."""

AHEAD = 1.5
"""Steps of motion that a margin covers."""

REST_MARGIN = 0.01
"""Of a geom's radius, or of a limit's range: the margin at rest."""

_NBODY, _NGEOM, _NJNT, _NTENDON, _NPAIR, _NV = (
    offset("mjModel", name) for name in ("nbody", "ngeom", "njnt", "ntendon", "npair", "nv")
)
_TIMESTEP = offset("mjModel", "opt", "timestep")
_O_MARGIN = offset("mjModel", "opt", "o_margin")
_GEOM_BODY, _GEOM_MARGIN, _RBOUND, _TYPE, _AFFINITY = (
    offset("mjModel", f"geom_{name}")
    for name in ("bodyid", "margin", "rbound", "contype", "conaffinity")
)
_BODY_MARGIN, _ROOT, _WELD, _PARENT, _DOF_NUM, _DOF_ADR = (
    offset("mjModel", f"body_{name}")
    for name in ("margin", "rootid", "weldid", "parentid", "dofnum", "dofadr")
)
_PAIR_A, _PAIR_B, _PAIR_MARGIN = (
    offset("mjModel", f"pair_{name}") for name in ("geom1", "geom2", "margin")
)
_JNT_MARGIN, _JNT_RANGE, _JNT_TYPE, _JNT_DOF, _JNT_QPOS, _JNT_LIMITED = (
    offset("mjModel", f"jnt_{name}")
    for name in ("margin", "range", "type", "dofadr", "qposadr", "limited")
)
_NQ, _QPOS = offset("mjModel", "nq"), offset("mjData", "qpos")
_TEN_MARGIN, _TEN_RANGE = (offset("mjModel", f"tendon_{name}") for name in ("margin", "range"))
_TEN_NNZ, _TEN_ADR, _TEN_COL = (
    offset("mjModel", f"ten_J_{name}") for name in ("rownnz", "rowadr", "colind")
)
_CVEL, _CDOF, _TEN_J, _XPOS, _COM = (
    offset("mjData", name) for name in ("cvel", "cdof", "ten_J", "geom_xpos", "subtree_com")
)


@kernel
def free_motion(m, d, v, out):
    """out (nbody, 6) := velocities of the bodies when the joints move at v (nv,), as cvel."""
    nbody = out.shape[0]
    parent = integers(pointer(m + _PARENT), nbody)
    count, start = integers(pointer(m + _DOF_NUM), nbody), integers(pointer(m + _DOF_ADR), nbody)
    cdof = numbers(pointer(d + _CDOF), 6 * v.shape[0])
    for k in range(6):
        out[0, k] = 0.0
    for i in range(1, nbody):
        for k in range(6):
            out[i, k] = out[parent[i], k]
        for j in range(start[i], start[i] + count[i]):
            for k in range(6):
                out[i, k] += cdof[6 * j + k] * v[j]


@leaf
def _speed(c0, c1, c2, c3, c4, c5, r0, r1, r2, radius):
    """Largest speed of a geom whose centre is at r from where the velocity (w, v) is taken."""
    if c0 == 0.0 and c1 == 0.0 and c2 == 0.0 and c3 == 0.0 and c4 == 0.0 and c5 == 0.0:
        return 0.0
    v = velocity_at((c3, c4, c5), (c0, c1, c2), (r0, r1, r2))
    return np.sqrt(dot(v, v)) + radius * np.sqrt(c0 * c0 + c1 * c1 + c2 * c2)


@leaf
def _margin_of(g, i, c, x, com, radius, now, free, time):
    """Margin of geom g of body i, whose tree has its centre of mass at com[c:]; now, free: bodies'
    velocities."""
    w = 6 * i
    r0, r1, r2 = x[3 * g] - com[c], x[3 * g + 1] - com[c + 1], x[3 * g + 2] - com[c + 2]
    speed = max(
        _speed(
            now[w], now[w + 1], now[w + 2], now[w + 3], now[w + 4], now[w + 5],
            r0, r1, r2, radius[g],
        ),
        _speed(
            free[i, 0], free[i, 1], free[i, 2], free[i, 3], free[i, 4], free[i, 5],
            r0, r1, r2, radius[g],
        ),
    )  # fmt: skip
    return time * speed + REST_MARGIN * radius[g]


@kernel
def set_margins(m, d, v, v_free, free, extra):
    """Writes geom, pair, body, joint and tendon margins of the model at m for the state of d.

    v, v_free (nv,): joint speeds now and in free motion; free (nbody, 6): `free_motion`; extra:
    least margin of joints [m, rad].
    """
    dt = number(m + _TIMESTEP)
    nbody, ngeom = pointer(m + _NBODY), pointer(m + _NGEOM)
    njnt, ntendon, npair = pointer(m + _NJNT), pointer(m + _NTENDON), pointer(m + _NPAIR)
    body = integers(pointer(m + _GEOM_BODY), ngeom)
    root, weld = integers(pointer(m + _ROOT), nbody), integers(pointer(m + _WELD), nbody)
    margin, radius = numbers(pointer(m + _GEOM_MARGIN), ngeom), numbers(pointer(m + _RBOUND), ngeom)
    by_body = numbers(pointer(m + _BODY_MARGIN), nbody)
    now, x = numbers(pointer(d + _CVEL), 6 * nbody), numbers(pointer(d + _XPOS), 3 * ngeom)
    com = numbers(pointer(d + _COM), 3 * nbody)
    for i in range(nbody):
        by_body[i] = 0.0
    widest = 0.0
    kind, other = integers(pointer(m + _TYPE), ngeom), integers(pointer(m + _AFFINITY), ngeom)
    for g in range(ngeom):
        i = body[g]
        margin[g] = 0.0
        if weld[i] == 0 or (kind[g] | other[g]) == 0:
            continue
        margin[g] = _margin_of(g, i, 3 * root[i], x, com, radius, now, free, AHEAD * dt)
        by_body[i] = max(by_body[i], margin[g])
        widest = max(widest, margin[g])
    first, second = integers(pointer(m + _PAIR_A), npair), integers(pointer(m + _PAIR_B), npair)
    pair = numbers(pointer(m + _PAIR_MARGIN), npair)
    for k in range(npair):
        pair[k] = 0.0
        for g in (first[k], second[k]):
            i = body[g]
            if weld[i] != 0:
                ahead = _margin_of(g, i, 3 * root[i], x, com, radius, now, free, AHEAD * dt)
                pair[k] += ahead
                widest = max(widest, ahead)
    numbers(m + _O_MARGIN, 1)[0] = 2.0 * widest
    fastest = 0.0  # contact may pass on to a joint what others have
    for j in range(v.shape[0]):
        fastest = max(fastest, max(abs(v[j]), abs(v_free[j])))
    limit, span = (
        numbers(pointer(m + _JNT_MARGIN), njnt),
        numbers(pointer(m + _JNT_RANGE), 2 * njnt),
    )
    for k in range(njnt):
        limit[k] = max(extra, AHEAD * dt * fastest + REST_MARGIN * (span[2 * k + 1] - span[2 * k]))
    ten, range_ = (
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
        speed, later = 0.0, 0.0
        for e in range(start[k], start[k] + count[k]):
            speed += rate[e] * v[column[e]]
            later += rate[e] * v_free[column[e]]
        fast = max(abs(speed), abs(later))
        ten[k] = AHEAD * dt * fast + REST_MARGIN * (range_[2 * k + 1] - range_[2 * k])


@kernel
def travel_past_limits(m, d, v, touch):
    """Farthest that a hinge or slide joint, moving at v (nv,), travels in a step that takes it out
    of its range by more than `touch`; 0 if none does. Where that happens, contact has flung it
    faster than any margin foresaw."""
    dt = number(m + _TIMESTEP)
    njnt = pointer(m + _NJNT)
    kind, dof = integers(pointer(m + _JNT_TYPE), njnt), integers(pointer(m + _JNT_DOF), njnt)
    at, limited = integers(pointer(m + _JNT_QPOS), njnt), flags(pointer(m + _JNT_LIMITED), njnt)
    span = numbers(pointer(m + _JNT_RANGE), 2 * njnt)
    qpos = numbers(pointer(d + _QPOS), pointer(m + _NQ))
    farthest = 0.0
    for k in range(njnt):
        if limited[k] and kind[k] >= SLIDE:
            step = dt * v[dof[k]]
            now = qpos[at[k]]
            low, high = span[2 * k] - touch, span[2 * k + 1] + touch
            out = (now + step < low and now > low) or (now + step > high and now < high)
            if out:
                farthest = max(farthest, abs(step))
    return farthest
