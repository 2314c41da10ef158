"""Trees of bodies that turn fast: Coriolis forces that add no energy.

A step takes the Coriolis and centrifugal forces c of joints as they are at its beginning. That is
accurate while bodies turn little in a step, and feeds energy into what turns far: the nutation of a
flywheel, or of a top, grows by the share (h w)^2 / 2 in every step until it tumbles. So they are
taken at the mean of the velocities before and after,

    M v* = M v - h c(q, (v + v*) / 2)                                                          (0)

found by iteration. c does no work on the velocity that it is taken at where M is constant in the
coordinates of the tree, and so neither energy nor angular momentum of a flywheel in its frame
change. Where the iteration does not converge, c stays as it was.

Nor is that enough for a chain that whips, whose M changes within the step: explicit, or linearly
implicit, it runs away. Energy is bounded where these forces come from momentum. With P the
momenta of the bodies of a tree, linear and angular, J their velocities by joint, and q- the
positions that the tree comes from, as it moved there with v,

    h c ~ J(q)' (P(q, v) - P(q-, v))                                                           (1)

to the first order in h, as c itself is. They are q - h v, but after a step that corrected
positions: then `Step.origin` has them, since the same v at others has another energy. The velocity
M v* = M v - h c that follows from (1) is what bodies that keep their momenta, and are then caught
by their joints, have: the projection of their motion onto what the joints allow, which has no more
kinetic energy than they had at q-,

    K(v*) <= K- := 1/2 sum of m |x'|^2 + w' I w, at q-

if no body gains by turning alone: its angular momentum, the same in the world, may need more energy
in the body's new attitude, and is then lessened to what needs as much. Contact and its friction
take energy away at q, and so K falls but for the work of forces.

But (1) brakes: a pendulum would lose a share (h w)^2 of its energy in every step. So momentum is
taken between the two, h c + t (h c(1) - h c), with the least t from 0 to 1 at which the energy is
not more than K-: a quadratic equation for each tree. A body that turns about a fixed axis, and all
else whose energy does not grow, has t = 0. Free bodies without joints have their own way
(`bridge/gyroscopic.py`).

Both are for trees one of whose joints turns by more than `FAST_TURN` in a step, (0) alone for those
so fast that nutation with that speed would grow by the share `NUTATION_GROWTH` in a second,
h w^2 / 2: of free joints and balls their own speed, of hinges, which may be flywheels, the part
`FLYWHEEL` of it. Other trees cost the comparison of their speeds.
"""

from __future__ import annotations

import mujoco
import numpy as np

from stiction.bridge import library as mj
from stiction.bridge.bodies import motion_at
from stiction.bridge.layout import integer, integers, number, numbers, offset, pointer, table
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.stage import stage
from stiction.simulate.time_stepping.workspace import Count, Step, unpack_step

FAST_TURN = 0.1
"""Turn of a joint within a step beyond which the energy of its tree is looked at [rad]."""

NUTATION_GROWTH = 0.25
"""Of nutation in a second beyond which it is, too [1/s]."""

FLYWHEEL = 0.2
"""Inertia of a wheel about its axis over that of all about the axes across."""

SLOW, FAST, SPINNING = 0, 1, 2
"""Trees that are left alone, that have both, and that have (0) alone."""

GAINED = 1e-12
"""Energy over that of the tree that is rounding."""

MEAN_SWEEPS = 16
"""Most for (0): a top that turns by a radian in a step takes as many."""

MEAN_FOUND, MEAN_TAKEN = 1e-10, 1e-6
"""Last change of v* over the speeds of a tree with which the iteration ends, and with which it is
taken if it has to end."""

SLIDE, FREE = int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_FREE)
HINGE = int(mujoco.mjtJoint.mjJNT_HINGE)
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
    """Whether any tree turns fast in the step; step.fast (ntree,) := how."""
    njnt, nv = pointer(m + _NJNT), pointer(m + _NV)
    dt = number(m + _TIMESTEP)
    spin = min(np.sqrt(2.0 * NUTATION_GROWTH / dt), FAST_TURN / dt)
    turn = min(spin / FLYWHEEL, FAST_TURN / dt)
    kinds, start = integers(pointer(m + _JNT_TYPE), njnt), integers(pointer(m + _JNT_DOF), njnt)
    tree, qvel = integers(pointer(m + _DOF_TREE), nv), numbers(pointer(d + _QVEL), nv)
    for k in range(step.fast.shape[0]):
        step.fast[k] = SLOW
    for i in range(njnt):
        if kinds[i] == SLIDE:
            continue
        limit = turn if kinds[i] == HINGE else spin
        begin = start[i] + 3 if kinds[i] == FREE else start[i]
        end = start[i + 1] if i + 1 < njnt else nv
        for j in range(begin, end):
            if abs(qvel[j]) > FAST_TURN / dt:
                step.fast[tree[j]] = FAST
            elif abs(qvel[j]) > limit and step.fast[tree[j]] == SLOW:
                step.fast[tree[j]] = SPINNING
    for n in range(step.free.shape[0]):
        step.fast[tree[step.free[n, 0]]] = SLOW
    found = False
    for k in range(step.fast.shape[0]):
        found = found or step.fast[k] != SLOW
    return found


@lean_leaf
def _momentum(m, d, i, out):
    """out (6,) := linear and angular momentum of body i, the latter about its centre of mass;
    returns its kinetic energy."""
    mass, inertia = numbers(pointer(m + _MASS) + 8 * i, 1)[0], pointer(m + _INERTIA) + 24 * i
    c, turn = table(pointer(d + _CVEL), i + 1, 6), numbers(pointer(d + _XIMAT) + 72 * i, 9)
    w, v = motion_at(m, d, i, c, numbers(pointer(d + _XIPOS) + 24 * i, 3))
    out[0], out[1], out[2] = mass * v[0], mass * v[1], mass * v[2]
    energy = 0.0
    if mass > 0.0:
        energy = 0.5 * (out[0] * out[0] + out[1] * out[1] + out[2] * out[2]) / mass
    out[3] = out[4] = out[5] = 0.0
    for k in range(3):
        turning = turn[k] * w[0] + turn[3 + k] * w[1] + turn[6 + k] * w[2]
        spin = numbers(inertia, 3)[k] * turning
        energy += 0.5 * spin * turning
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


@lean
def _is_left(m, d, step: Step):
    """Whether the state is, to the bit, what a step has left that corrected positions."""
    nq, nv = pointer(m + _NQ), pointer(m + _NV)
    qpos, qvel = numbers(pointer(d + _QPOS), nq), numbers(pointer(d + _QVEL), nv)
    left = step.counts[Count.CORRECTED] == 1
    for k in range(nq):
        left = left and qpos[k] == step.origin[nq + k]
    for j in range(nv):
        left = left and qvel[j] == step.origin[2 * nq + j]
    return left


@stage("void(intp, intp, intp)", eager=False)
def note_momenta(m, d, address):
    """Notes the momenta of the bodies, and the energy of the trees, at the positions that they come
    from: `Step.past` (nbody, 7), the last its energy of turning alone, and `Step.energy` (ntree,).
    What MuJoCo has evaluated is then of these positions, and to be evaluated anew."""
    _, step = unpack_step(address)
    fast = False
    for k in range(step.fast.shape[0]):
        fast = fast or step.fast[k] == FAST
    if not fast:
        return
    nq, nbody = pointer(m + _NQ), pointer(m + _NBODY)
    tree, qpos = integers(pointer(m + _BODY_TREE), nbody), numbers(pointer(d + _QPOS), nq)
    for k in range(nq):
        step.qpos[k] = qpos[k]
    if _is_left(m, d, step):
        for k in range(nq):
            qpos[k] = step.origin[k]
    else:
        mj.integrate_pos(m, pointer(d + _QPOS), pointer(d + _QVEL), -number(m + _TIMESTEP))
    mj.kinematics(m, d)
    mj.com_pos(m, d)
    mj.com_vel(m, d)
    for k in range(step.energy.shape[0]):
        step.energy[k] = 0.0
    for i in range(1, nbody):
        if tree[i] >= 0 and step.fast[tree[i]] == FAST:
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
        kind = SLOW if tree[i] < 0 else step.fast[tree[i]]
        if kind != FAST:
            for k in range(6):
                past[i, k] = gravity[i, k] = 0.0
        if kind == SLOW:
            continue
        if kind == FAST:
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


@lean
def _take_mean(m, d, step: Step):
    """`Step.coriolis`[0], impulses of Coriolis forces as they are, := those of (0) for fast trees
    whose iteration converges; what that changes remains in the first of `Step.gravity`, (nv,)."""
    nv, dt = pointer(m + _NV), number(m + _TIMESTEP)
    tree, qvel = integers(pointer(m + _DOF_TREE), nv), numbers(pointer(d + _QVEL), nv)
    change, answer, speed = step.coriolis, step.coriolis_speed, step.qpos
    base = step.gravity.reshape(6 * step.gravity.shape[0])  # a body has six of them at most
    mj.rne(m, d, np.intc(0), base.ctypes.data)
    for j in range(nv):
        speed[j] = qvel[j]
        base[j] = change[0, j] + dt * base[j]
        change[1, j] = change[0, j]
        answer[0, j] = 0.0
    largest = np.inf
    for sweep in range(MEAN_SWEEPS):
        mj.solve_mass(m, d, answer[1].ctypes.data, change[1].ctypes.data, np.intc(1))
        last, largest, scale = largest, 0.0, 0.0
        for j in range(nv):
            if step.fast[tree[j]] != SLOW:
                largest = max(largest, abs(answer[1, j] - answer[0, j]))
                scale = max(scale, abs(speed[j]))
        parts = sweep > 3 and not largest < last
        if largest <= MEAN_FOUND * scale or parts or sweep == MEAN_SWEEPS - 1:
            break
        for j in range(nv):
            fast = step.fast[tree[j]] != SLOW
            answer[0, j] = answer[1, j]
            qvel[j] = speed[j] + 0.5 * answer[1, j] if fast else speed[j]
        mj.com_vel(m, d)
        mj.rne(m, d, np.intc(0), change[1].ctypes.data)
        for j in range(nv):
            change[1, j] = base[j] - dt * change[1, j] if step.fast[tree[j]] != SLOW else 0.0
    for j in range(nv):
        qvel[j] = speed[j]
    mj.com_vel(m, d)
    begin = 0
    while begin < nv:
        scale, end, taken = 0.0, begin, step.fast[tree[begin]] != SLOW
        while end < nv and tree[end] == tree[begin]:
            scale = max(scale, abs(speed[end]))
            end += 1
        for j in range(begin, end):  # what is no number is not, either
            taken = taken and abs(answer[1, j] - answer[0, j]) <= MEAN_TAKEN * scale
        for j in range(begin, end):
            base[j] = change[1, j] - change[0, j] if taken else 0.0
            change[0, j] += base[j]
        begin = end


@lean_leaf
def _least_share(gain, slope, bend):
    """Least t from 0 to 1 with gain + slope t + bend t^2 / 2 <= 0, or 1."""
    inside = slope * slope - 2.0 * bend * gain
    if inside < 0.0 or slope >= 0.0:
        return 1.0
    return min(1.0, 2.0 * gain / (-slope + np.sqrt(inside)))


@stage("void(intp, intp, intp)", eager=False)
def bound_energy(m, d, address):
    """Adds to qfrc_smooth and qacc_smooth what takes Coriolis forces of fast trees at their mean
    velocity, and keeps energy from growing by them: the second rows of `Step.coriolis` and
    `Step.coriolis_speed`. After `note_momenta`, with everything evaluated at the positions as they
    are."""
    _, step = unpack_step(address)
    nv, dt = pointer(m + _NV), number(m + _TIMESTEP)
    tree, body = integers(pointer(m + _DOF_TREE), nv), integers(pointer(m + _DOF_BODY), nv)
    cdof, bias = numbers(pointer(d + _CDOF), 6 * nv), numbers(pointer(d + _BIAS), nv)
    qvel = numbers(pointer(d + _QVEL), nv)
    _gather(m, d, step)
    # Of the forces as they are, and what would make them those of the momenta.
    change, answer = step.coriolis, step.coriolis_speed
    for j in range(nv):
        change[0, j] = 0.0
        if step.fast[tree[j]] != SLOW:
            change[0, j], i = -dt * bias[j], body[j]
            for k in range(3):
                change[0, j] -= cdof[6 * j + k] * step.gravity[i, 3 + k]
                change[0, j] -= cdof[6 * j + 3 + k] * step.gravity[i, k]
    _take_mean(m, d, step)
    moved = step.gravity.reshape(6 * step.gravity.shape[0])
    for j in range(nv):
        change[1, j] = 0.0
        if step.fast[tree[j]] == FAST:
            i = body[j]
            for k in range(3):
                change[1, j] += cdof[6 * j + k] * step.past[i, 3 + k]
                change[1, j] += cdof[6 * j + 3 + k] * step.past[i, k]
            change[1, j] -= change[0, j]
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
        if step.fast[tree[begin]] == FAST and gain > GAINED * most:
            share = _least_share(gain, slope, bend)
        for j in range(begin, end):
            change[1, j] = share * change[1, j] + moved[j]
        begin = end
    mj.solve_mass(m, d, answer[1].ctypes.data, change[1].ctypes.data, np.intc(1))
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
