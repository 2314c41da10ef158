"""Trees of bodies that turn fast: Coriolis forces that add no energy.

A step takes the Coriolis and centrifugal forces c of joints as they are at its beginning. That is
accurate while bodies turn little in a step, and feeds energy into a chain that whips: explicit, or
linearly implicit, it runs away. Energy is bounded where these forces come from momentum. With P the
momenta of the bodies of a tree, linear and angular, J their velocities by joint, and q- = q - h v
the positions that the tree comes from, as it moved there with v,

    h c ~ J(q)' (P(q, v) - P(q-, v))                                                           (1)

to the first order in h, as c itself is. The velocity M v* = M v - h c that follows from (1) is what
bodies that keep their momenta, and are then caught by their joints, have: the projection of their
motion onto what the joints allow, which has no more kinetic energy than they had at q-, with

    K(v*) <= K- := 1/2 sum of m |x'|^2 + w' I w, at q-

if no body gains by turning alone: its angular momentum, the same in the world, may need more energy
in the body's new attitude, and is then lessened to what needs as much. Contact and its friction
take energy away at q, and so K falls but for the work of forces.

But (1) brakes: a pendulum would lose a share (h w)^2 of its energy in every step. So momentum is
taken between the two, h c + t (h c(1) - h c), with the least t from 0 to 1 at which the energy is
not more than K-: a quadratic equation for each tree. A body that turns about a fixed axis, and all
else whose energy does not grow, has t = 0. Free bodies without joints have their own way
(`bridge/gyroscopic.py`).

It is asked about trees one of whose joints turns by more than `FAST_TURN` in a step; others cost
the comparison of their speeds.
"""

from __future__ import annotations

import mujoco
import numpy as np

from stiction.bridge import library as mj
from stiction.bridge.layout import integer, integers, number, numbers, offset, pointer
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.stage import stage
from stiction.simulate.time_stepping.workspace import Step, unpack_step

FAST_TURN = 0.1
"""Turn of a joint within a step beyond which the energy of its tree is looked at [rad]."""

GAINED = 1e-12
"""Energy over that of the tree that is rounding."""

SLIDE, FREE = int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_FREE)
NO_GRAVITY = int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)

_TIMESTEP, _GRAVITY, _DISABLED = (
    offset("mjModel", "opt", name) for name in ("timestep", "gravity", "disableflags")
)
_NQ, _NV, _NBODY, _NJNT = (offset("mjModel", name) for name in ("nq", "nv", "nbody", "njnt"))
_JNT_TYPE, _JNT_DOF = offset("mjModel", "jnt_type"), offset("mjModel", "jnt_dofadr")
_PARENT, _ROOT, _BODY_TREE, _MASS, _INERTIA = (
    offset("mjModel", f"body_{name}")
    for name in ("parentid", "rootid", "treeid", "mass", "inertia")
)
_DOF_TREE, _DOF_BODY = offset("mjModel", "dof_treeid"), offset("mjModel", "dof_bodyid")
_QPOS, _QVEL, _CVEL, _CDOF, _COM, _XIPOS, _XIMAT = (
    offset("mjData", name)
    for name in ("qpos", "qvel", "cvel", "cdof", "subtree_com", "xipos", "ximat")
)
_BIAS, _SMOOTH, _ACC = (offset("mjData", n) for n in ("qfrc_bias", "qfrc_smooth", "qacc_smooth"))


@lean
def turns_fast(m, d, step: Step):
    """Whether any tree turns by more than `FAST_TURN` in the step; step.fast (ntree,) := which."""
    njnt, nv = pointer(m + _NJNT), pointer(m + _NV)
    limit = FAST_TURN / number(m + _TIMESTEP)
    kinds, start = integers(pointer(m + _JNT_TYPE), njnt), integers(pointer(m + _JNT_DOF), njnt)
    tree, qvel = integers(pointer(m + _DOF_TREE), nv), numbers(pointer(d + _QVEL), nv)
    for k in range(step.fast.shape[0]):
        step.fast[k] = 0
    for i in range(njnt):
        if kinds[i] == SLIDE:
            continue
        begin = start[i] + 3 if kinds[i] == FREE else start[i]
        end = start[i + 1] if i + 1 < njnt else nv
        for j in range(begin, end):
            if abs(qvel[j]) > limit:
                step.fast[tree[j]] = 1
    for n in range(step.free.shape[0]):
        step.fast[tree[step.free[n, 0]]] = 0
    found = False
    for k in range(step.fast.shape[0]):
        found = found or step.fast[k] == 1
    return found


@lean_leaf
def _momentum(m, d, i, out):
    """out (6,) := linear and angular momentum of body i, the latter about its centre of mass;
    returns its kinetic energy."""
    mass, inertia = numbers(pointer(m + _MASS) + 8 * i, 1)[0], pointer(m + _INERTIA) + 24 * i
    root = integers(pointer(m + _ROOT) + 4 * i, 1)[0]
    com, x = numbers(pointer(d + _COM) + 24 * root, 3), numbers(pointer(d + _XIPOS) + 24 * i, 3)
    c, turn = numbers(pointer(d + _CVEL) + 48 * i, 6), numbers(pointer(d + _XIMAT) + 72 * i, 9)
    r0, r1, r2 = x[0] - com[0], x[1] - com[1], x[2] - com[2]
    out[0] = mass * (c[3] + c[1] * r2 - c[2] * r1)
    out[1] = mass * (c[4] + c[2] * r0 - c[0] * r2)
    out[2] = mass * (c[5] + c[0] * r1 - c[1] * r0)
    energy = 0.0
    if mass > 0.0:
        energy = 0.5 * (out[0] * out[0] + out[1] * out[1] + out[2] * out[2]) / mass
    out[3] = out[4] = out[5] = 0.0
    for k in range(3):
        w = turn[k] * c[0] + turn[3 + k] * c[1] + turn[6 + k] * c[2]
        spin = numbers(inertia, 3)[k] * w
        energy += 0.5 * spin * w
        for r in range(3):
            out[3 + r] += turn[3 * r + k] * spin
    return energy


@lean_leaf
def _turning_energy(m, d, i, spin):
    """Kinetic energy with which body i, as it lies, has the angular momentum spin[3:]."""
    inertia = numbers(pointer(m + _INERTIA) + 24 * i, 3)
    turn = numbers(pointer(d + _XIMAT) + 72 * i, 9)
    energy = 0.0
    for k in range(3):
        along = turn[k] * spin[3] + turn[3 + k] * spin[4] + turn[6 + k] * spin[5]
        if inertia[k] > 0.0:
            energy += 0.5 * along * along / inertia[k]
    return energy


@stage("void(intp, intp, intp)", eager=False)
def note_momenta(m, d, address):
    """Notes the momenta of the bodies, and the energy of the trees, at the positions that they come
    from: `Step.past` (nbody, 7), the last its energy of turning alone, and `Step.energy` (ntree,).
    What MuJoCo has evaluated is then of these positions, and to be evaluated anew."""
    _, step = unpack_step(address)
    nq, nbody = pointer(m + _NQ), pointer(m + _NBODY)
    tree, qpos = integers(pointer(m + _BODY_TREE), nbody), numbers(pointer(d + _QPOS), nq)
    for k in range(nq):
        step.qpos[k] = qpos[k]
    mj.integrate_pos(m, pointer(d + _QPOS), pointer(d + _QVEL), -number(m + _TIMESTEP))
    mj.kinematics(m, d)
    mj.com_pos(m, d)
    mj.com_vel(m, d)
    for k in range(step.energy.shape[0]):
        step.energy[k] = 0.0
    for i in range(1, nbody):
        if tree[i] >= 0 and step.fast[tree[i]] == 1:
            step.energy[tree[i]] += _momentum(m, d, i, step.past[i])
            step.past[i, 6] = _turning_energy(m, d, i, step.past[i])
    for k in range(nq):
        qpos[k] = step.qpos[k]


@lean
def _gather(m, d, step: Step):
    """step.past := how much the momenta of each body and of all behind it have fallen since, as a
    wrench about the centre of mass of its tree, with `Step.gravity` the same of gravity's impulse;
    step.energy := by how much kinetic energies have grown since."""
    nbody, dt = pointer(m + _NBODY), number(m + _TIMESTEP)
    tree, parent = integers(pointer(m + _BODY_TREE), nbody), integers(pointer(m + _PARENT), nbody)
    root, mass = integers(pointer(m + _ROOT), nbody), numbers(pointer(m + _MASS), nbody)
    com, x = numbers(pointer(d + _COM), 3 * nbody), numbers(pointer(d + _XIPOS), 3 * nbody)
    pull = numbers(m + _GRAVITY, 3)
    weighs = integer(m + _DISABLED) & NO_GRAVITY == 0
    past, gravity, now = step.past, step.gravity, step.six[0]
    for k in range(step.energy.shape[0]):
        step.energy[k] = -step.energy[k]
    for i in range(nbody):
        if tree[i] < 0 or step.fast[tree[i]] == 0:
            for k in range(6):
                past[i, k] = gravity[i, k] = 0.0
            continue
        needed = _turning_energy(m, d, i, past[i])
        if needed > past[i, 6]:
            share = np.sqrt(past[i, 6] / needed)
            for k in range(3, 6):
                past[i, k] *= share
        step.energy[tree[i]] += _momentum(m, d, i, now)
        for k in range(6):
            past[i, k] -= now[k]
        for k in range(3):
            gravity[i, k] = dt * mass[i] * pull[k] if weighs else 0.0
            gravity[i, 3 + k] = 0.0
        c = 3 * root[i]
        for wrench in (past, gravity):
            p, q, r = wrench[i, 0], wrench[i, 1], wrench[i, 2]
            a, b, e = x[3 * i] - com[c], x[3 * i + 1] - com[c + 1], x[3 * i + 2] - com[c + 2]
            wrench[i, 3] += b * r - e * q
            wrench[i, 4] += e * p - a * r
            wrench[i, 5] += a * q - b * p
    for i in range(nbody - 1, 0, -1):
        for k in range(6):
            past[parent[i], k] += past[i, k]
            gravity[parent[i], k] += gravity[i, k]


@lean_leaf
def _least_share(gain, slope, bend):
    """Least t from 0 to 1 with gain + slope t + bend t^2 / 2 <= 0, or 1."""
    inside = slope * slope - 2.0 * bend * gain
    if inside < 0.0 or slope >= 0.0:
        return 1.0
    return min(1.0, 2.0 * gain / (-slope + np.sqrt(inside)))


@stage("void(intp, intp, intp)", eager=False)
def bound_energy(m, d, address):
    """Adds to qfrc_smooth and qacc_smooth what keeps the energy of fast trees from growing by their
    Coriolis forces: the second rows of `Step.coriolis` and `Step.coriolis_speed`. After
    `note_momenta`, with everything evaluated at the positions as they are."""
    _, step = unpack_step(address)
    nv, dt = pointer(m + _NV), number(m + _TIMESTEP)
    tree, body = integers(pointer(m + _DOF_TREE), nv), integers(pointer(m + _DOF_BODY), nv)
    cdof, bias = numbers(pointer(d + _CDOF), 6 * nv), numbers(pointer(d + _BIAS), nv)
    qvel = numbers(pointer(d + _QVEL), nv)
    _gather(m, d, step)
    # Of the forces as they are, and what would make them those of the momenta.
    change, answer = step.coriolis, step.coriolis_speed
    for j in range(nv):
        change[0, j] = change[1, j] = 0.0
        if step.fast[tree[j]] == 0:
            continue
        of_momenta, i = 0.0, body[j]
        change[0, j] = -dt * bias[j]
        for k in range(3):
            turn, shift = cdof[6 * j + k], cdof[6 * j + 3 + k]
            of_momenta += turn * step.past[i, 3 + k] + shift * step.past[i, k]
            change[0, j] -= turn * step.gravity[i, 3 + k] + shift * step.gravity[i, k]
        change[1, j] = of_momenta - change[0, j]
    mj.solve_mass(m, d, answer.ctypes.data, change.ctypes.data, np.intc(2))
    begin = 0
    while begin < nv:
        gain, slope, bend = step.energy[tree[begin]], 0.0, 0.0
        most, end = 0.0, begin
        while end < nv and tree[end] == tree[begin]:
            gain += (qvel[end] + 0.5 * answer[0, end]) * change[0, end]
            slope += qvel[end] * change[1, end] + change[0, end] * answer[1, end]
            bend += change[1, end] * answer[1, end]
            most += abs(qvel[end] * change[0, end])
            end += 1
        share = 0.0
        if step.fast[tree[begin]] == 1 and gain > GAINED * most:
            share = _least_share(gain, slope, bend)
        for j in range(begin, end):
            change[1, j] *= share
            answer[1, j] *= share
        begin = end
    add_bound(m, d, step)


@lean
def add_bound(m, d, step: Step):
    """Adds what `bound_energy` has found to the smooth forces and accelerations."""
    nv, dt = pointer(m + _NV), number(m + _TIMESTEP)
    force, acceleration = numbers(pointer(d + _SMOOTH), nv), numbers(pointer(d + _ACC), nv)
    for j in range(nv):
        force[j] += step.coriolis[1, j] / dt
        acceleration[j] += step.coriolis_speed[1, j] / dt


note_past, keep_energy = note_momenta.external, bound_energy.external
