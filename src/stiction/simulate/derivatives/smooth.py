"""Derivatives of springs, dampers and actuators, where each acts along coordinates of its own.

An actuator's force depends on its own length, speed, control and activation alone. So all of them
are moved at once, MuJoCo evaluates its actuators twice, and the difference of each one's force is
its derivative; along a joint or a tendon of joints its lever is a constant. Springs of hinges and
slides are treated alike. `plain` says whether a model has nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import library as mj
from stiction.bridge.layout import integers, numbers, offset, pointer
from stiction.bridge.margins import SLIDE
from stiction.contact.problem.arrays import Array
from stiction.kernels.compile import kernel
from stiction.kernels.packing import packed
from stiction.simulate.derivatives.contacts import Slopes

Indices = NDArray[np.int64]

_FORCE, _LENGTH, _SPEED, _CTRL, _ACT, _QPOS, _QVEL, _PASSIVE, _TIME = (
    offset("mjData", name)
    for name in (
        "actuator_force", "actuator_length", "actuator_velocity", "ctrl", "act", "qpos", "qvel",
        "qfrc_passive", "time",
    )
)  # fmt: skip
_NNZ, _ADR, _COL = (offset("mjData", f"moment_{name}") for name in ("rownnz", "rowadr", "colind"))
_MOMENT, _ACTUATION = offset("mjData", "actuator_moment"), offset("mjData", "qfrc_actuator")

_GAIN, _BIAS, _TRN, _DYN = (
    mujoco.mjtGain, mujoco.mjtBias, mujoco.mjtTrn, mujoco.mjtDyn,
)  # fmt: skip
_OFF = mujoco.mjtDisableBit

STRETCH = 1e-5
"""How far lengths, controls and the rest are moved: forces are all but linear in them."""


@packed
class Springs(NamedTuple):
    """What acts along joints, and what moving it works in."""

    damping: Array  # (nv,) of joints, 0 where dampers are off
    stiff: Indices  # (2, k) position and degree of freedom of each joint with a spring
    limited: Array  # (nv, 2) least and largest force of actuators on a degree of freedom
    owner: Indices  # (na,) the actuator of each activation
    ends: Array  # (2, nu) forces of actuators
    after: Array  # (2, na) activations after the step
    kept: Array  # (nq + nv + na,) the state
    rate: Array  # (nu,) derivatives of the actuators' forces


def read_springs(model: mujoco.MjModel) -> Springs:
    """Of a plain model."""
    m = model
    damping = m.dof_damping.copy()
    if m.opt.disableflags & _OFF.mjDSBL_DAMPER:
        damping[:] = 0.0
    stiff = np.flatnonzero(m.jnt_stiffness != 0.0)
    if m.opt.disableflags & _OFF.mjDSBL_SPRING:
        stiff = stiff[:0]
    limited = np.tile([-np.inf, np.inf], (m.nv, 1))
    for joint in np.flatnonzero(m.jnt_actfrclimited):
        limited[m.jnt_dofadr[joint]] = m.jnt_actfrcrange[joint]
    owner = np.zeros(m.na, np.int64)
    for k in range(m.nu):
        if m.actuator_actadr[k] >= 0:
            owner[m.actuator_actadr[k]] = k
    return Springs(
        damping,
        np.array([m.jnt_qposadr[stiff], m.jnt_dofadr[stiff]], np.int64).reshape(2, -1),
        limited,
        owner,
        np.zeros((2, m.nu)),
        np.zeros((2, m.na)),
        np.zeros(m.nq + m.nv + m.na),
        np.zeros(m.nu),
    )


def plain(model: mujoco.MjModel) -> bool:
    """Whether springs, dampers and actuators act along joints and tendons of joints alone, with
    dampers that are linear and servos that are affine, and nothing else depends on the state."""
    m = model
    single = m.jnt_type >= SLIDE
    if m.nflex or m.nplugin or m.ngravcomp or m.nhistory or m.opt.density or m.opt.viscosity:
        return False
    if m.flg_adhesion or m.flg_surfacevel:
        return False
    if m.jnt_stiffness[~single].any() or m.jnt_limited[~single].any():
        return False
    if m.jnt_actfrclimited[~single].any() or m.tendon_actfrclimited.any():
        return False
    curved = (m.dof_dampingpoly, m.tendon_dampingpoly, m.jnt_stiffnesspoly, m.tendon_stiffnesspoly)
    if any(values.any() for values in curved):
        return False
    if (m.wrap_type != mujoco.mjtWrap.mjWRAP_JOINT).any():
        return False
    if m.tendon_stiffness.any() or m.tendon_damping.any() or m.tendon_armature.any():
        return False
    return _plain_actuators(m)


def _plain_actuators(m: mujoco.MjModel) -> bool:
    if m.nu != m.nactuator or m.nu != m.nout or (m.actuator_actnum > 1).any():
        return False
    if m.actuator_damping.any() or m.actuator_dampingpoly.any():
        return False
    on_joint = np.isin(m.actuator_trntype, [_TRN.mjTRN_JOINT, _TRN.mjTRN_JOINTINPARENT])
    joints = m.jnt_type[m.actuator_trnid[on_joint, 0]]
    if not (on_joint | (m.actuator_trntype == _TRN.mjTRN_TENDON)).all():
        return False
    if (joints < SLIDE).any():
        return False
    affine = m.actuator_gaintype == _GAIN.mjGAIN_AFFINE
    if not (affine | (m.actuator_gaintype == _GAIN.mjGAIN_FIXED)).all():
        return False
    if m.actuator_gainprm[affine, 2].any():  # its damping would depend on the control
        return False
    dynamics = [_DYN.mjDYN_NONE, _DYN.mjDYN_INTEGRATOR, _DYN.mjDYN_FILTER, _DYN.mjDYN_FILTEREXACT]
    if not np.isin(m.actuator_dyntype, dynamics).all():
        return False
    return bool(np.isin(m.actuator_biastype, [_BIAS.mjBIAS_NONE, _BIAS.mjBIAS_AFFINE]).all())


@kernel
def _evaluate_ends(m, d, address, n, springs: Springs, activations):
    """Forces of actuators, and activations after the step, with the n numbers at the address moved
    to either side. They are put back."""
    nu, na = springs.ends.shape[1], springs.after.shape[1]
    moved, force = numbers(address, n), numbers(pointer(d + _FORCE), nu)
    act, time = numbers(pointer(d + _ACT), na), numbers(d + _TIME, 1)
    nv = springs.damping.shape[0]
    nq = springs.kept.shape[0] - nv - na
    qpos, qvel = numbers(pointer(d + _QPOS), nq), numbers(pointer(d + _QVEL), nv)
    for side in range(2):
        amount = STRETCH - 2.0 * STRETCH * side
        for k in range(n):
            moved[k] += amount
        mj.fwd_actuation(m, d)
        for k in range(nu):
            springs.ends[side, k] = force[k]
        if activations:
            kept, now = springs.kept, time[0]
            for k in range(nq):
                kept[k] = qpos[k]
            for k in range(nv):
                kept[nq + k] = qvel[k]
            for k in range(na):
                kept[nq + nv + k] = act[k]
            mj.euler(m, d)
            for k in range(na):
                springs.after[side, k] = act[k]
                act[k] = kept[nq + nv + k]
            for k in range(nq):
                qpos[k] = kept[k]
            for k in range(nv):
                qvel[k] = kept[nq + k]
            time[0] = now
        for k in range(n):
            moved[k] -= amount
    for k in range(nu):
        springs.rate[k] = (springs.ends[0, k] - springs.ends[1, k]) / (2.0 * STRETCH)


@kernel
def _add_servos(d, dt, springs: Springs, out):
    """out (nv, nv) += the forces' rates by length or speed, through their levers."""
    nu = springs.rate.shape[0]
    count, start = integers(pointer(d + _NNZ), nu), integers(pointer(d + _ADR), nu)
    total = start[nu - 1] + count[nu - 1]
    column, lever = integers(pointer(d + _COL), total), numbers(pointer(d + _MOMENT), total)
    push = numbers(pointer(d + _ACTUATION), out.shape[0])
    for i in range(nu):
        if springs.rate[i] != 0.0:
            for a in range(start[i], start[i] + count[i]):
                j = column[a]
                if push[j] > springs.limited[j, 0] and push[j] < springs.limited[j, 1]:
                    scale = dt * springs.rate[i] * lever[a]
                    for b in range(start[i], start[i] + count[i]):
                        out[j, column[b]] += scale * lever[b]


@kernel
def _put_inputs(d, dt, springs: Springs, owner, out):
    """out (nv, n) := forces by inputs; owner (n,): the actuator of each, or none where each has its
    own."""
    nu = springs.rate.shape[0]
    count, start = integers(pointer(d + _NNZ), nu), integers(pointer(d + _ADR), nu)
    total = start[nu - 1] + count[nu - 1]
    column, lever = integers(pointer(d + _COL), total), numbers(pointer(d + _MOMENT), total)
    push = numbers(pointer(d + _ACTUATION), out.shape[0])
    for k in range(out.shape[1]):
        i = owner[k] if owner.shape[0] > 0 else k
        for a in range(start[i], start[i] + count[i]):
            j = column[a]
            if push[j] > springs.limited[j, 0] and push[j] < springs.limited[j, 1]:
                out[j, k] += dt * springs.rate[i] * lever[a]


@kernel
def differentiate_actuators(m, d, dt, springs: Springs, none, out: Slopes):
    """Adds to `out` what actuators do; none (0,): no owners. The data's actuators are evaluated
    once more at the end."""
    nu, na = springs.rate.shape[0], springs.owner.shape[0]
    if nu == 0:
        return
    _evaluate_ends(m, d, pointer(d + _LENGTH), nu, springs, False)
    mj.fwd_actuation(m, d)
    _add_servos(d, dt, springs, out.push_q)
    _evaluate_ends(m, d, pointer(d + _SPEED), nu, springs, False)
    mj.fwd_actuation(m, d)
    _add_servos(d, dt, springs, out.push_v)
    _evaluate_ends(m, d, pointer(d + _CTRL), nu, springs, na > 0)
    mj.fwd_actuation(m, d)
    _put_inputs(d, dt, springs, none, out.push_u)
    if na == 0:
        return
    scale = 0.5 / STRETCH
    for k in range(na):
        out.act_u[k, springs.owner[k]] = (springs.after[0, k] - springs.after[1, k]) * scale
    _evaluate_ends(m, d, pointer(d + _ACT), na, springs, True)
    mj.fwd_actuation(m, d)
    _put_inputs(d, dt, springs, springs.owner, out.push_a)
    for k in range(na):
        out.act_a[k, k] = (springs.after[0, k] - springs.after[1, k]) * scale


@kernel
def differentiate_springs(m, d, dt, springs: Springs, out: Slopes):
    """Adds to `out` what springs and dampers of joints do."""
    nv, count = springs.damping.shape[0], springs.stiff.shape[1]
    for j in range(nv):
        out.push_v[j, j] -= dt * springs.damping[j]
    if count == 0:
        return
    nq = springs.kept.shape[0] - nv - springs.owner.shape[0]
    qpos, force = numbers(pointer(d + _QPOS), nq), numbers(pointer(d + _PASSIVE), nv)
    for side in range(2):
        amount = STRETCH - 2.0 * STRETCH * side
        for k in range(count):
            qpos[springs.stiff[0, k]] += amount
        mj.passive(m, d)
        for k in range(count):
            j = springs.stiff[1, k]
            out.push_q[j, j] += (1 - 2 * side) * dt * force[j] / (2.0 * STRETCH)
        for k in range(count):
            qpos[springs.stiff[0, k]] -= amount
