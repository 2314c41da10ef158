"""Derivatives of springs, dampers and actuators, where each acts along coordinates of its own.

An actuator's force is affine in its length, its speed, and its control or activation; along a joint
or a tendon of joints its lever is a constant. What stands at a limit of its range stays there;
controls at the very end of theirs are taken as moving inward. Springs of hinges and slides are
moved all at once, MuJoCo evaluates them twice, and the difference of each one's force is its
derivative. `plain` says whether a model has nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import library as mj
from stiction.bridge.layout import integer, integers, numbers, offset, pointer
from stiction.bridge.margins import SLIDE
from stiction.contact.problem.arrays import Array
from stiction.kernels.compile import lean
from stiction.kernels.packing import packed
from stiction.simulate.derivatives.contacts import Slopes

Indices = NDArray[np.int64]

_FORCE, _LENGTH, _CTRL, _ACT, _QPOS, _PASSIVE = (
    offset("mjData", name)
    for name in ("actuator_force", "actuator_length", "ctrl", "act", "qpos", "qfrc_passive")
)
_NNZ, _ADR, _COL = (offset("mjData", f"moment_{name}") for name in ("rownnz", "rowadr", "colind"))
_MOMENT, _ACTUATION = offset("mjData", "actuator_moment"), offset("mjData", "qfrc_actuator")

_GAIN, _BIAS, _TRN, _DYN = (
    mujoco.mjtGain, mujoco.mjtBias, mujoco.mjtTrn, mujoco.mjtDyn,
)  # fmt: skip
_OFF = mujoco.mjtDisableBit
_NQ = offset("mjModel", "nq")
_INTEGRATOR, _FILTER, _FILTER_EXACT = (
    int(kind) for kind in (_DYN.mjDYN_INTEGRATOR, _DYN.mjDYN_FILTER, _DYN.mjDYN_FILTEREXACT)
)

STRETCH = 1e-5
"""How far springs are stretched: forces are all but linear in it."""

LEAST_LAG = float(mujoco.mjMINVAL)
"""Of filters [s], as MuJoCo has it."""


@packed
class Springs(NamedTuple):
    """What acts along joints, and what moving it works in."""

    damping: Array  # (nv,) of joints, 0 where dampers are off
    stiff: Indices  # (2, k) position and degree of freedom of each joint with a spring
    limited: Array  # (nv, 2) least and largest force of actuators on a degree of freedom
    owner: Indices  # (na,) the actuator of each activation
    state: Indices  # (nu,) the activation of each actuator, or -1
    early: Indices  # (nu,) 1 where the force is that of the next activation
    gain: Array  # (nu, 2) force by control or activation: constant, and by length
    bias: Array  # (nu, 2) force by length, and by speed
    dynamics: Indices  # (na,) of each activation, `mjtDyn`; -1 where it stays as it is
    lag: Array  # (na,) of filters [s]
    control: Array  # (nu, 2) least and largest control, force and activation
    force: Array  # (nu, 2)
    activation: Array  # (na, 2)
    next: Array  # (na, 2) the next activation by itself, and by the control
    rate: Array  # (3, nu) an actuator's force by length, speed, and control or activation


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
    owner, state = np.zeros(m.na, np.int64), np.full(m.nu, -1)
    for k in np.flatnonzero(m.actuator_actadr[: m.nu] >= 0):
        owner[m.actuator_actadr[k]], state[k] = k, m.actuator_actadr[k]
    off = _disabled(m)
    gain, bias = m.actuator_gainprm[:, :2].copy(), m.actuator_biasprm[:, 1:3].copy()
    gain[m.actuator_gaintype != _GAIN.mjGAIN_AFFINE, 1] = 0.0
    bias[m.actuator_biastype != _BIAS.mjBIAS_AFFINE] = 0.0
    gain[off], bias[off] = 0.0, 0.0
    clamped = not m.opt.disableflags & _OFF.mjDSBL_CLAMPCTRL
    control = _ranges(m.actuator_ctrlrange, m.actuator_ctrllimited & clamped)
    activation = _ranges(m.actuator_actrange, m.actuator_actlimited)[owner]
    return Springs(
        damping,
        np.array([m.jnt_qposadr[stiff], m.jnt_dofadr[stiff]], np.int64).reshape(2, -1),
        limited,
        owner,
        state,
        np.asarray(m.actuator_actearly).astype(np.int64),
        gain,
        bias,
        np.where(off, -1, m.actuator_dyntype)[owner].astype(np.int64),
        np.maximum(LEAST_LAG, m.actuator_dynprm[:, 0])[owner],
        control,
        _ranges(m.actuator_forcerange, m.actuator_forcelimited),
        activation,
        np.zeros((m.na, 2)),
        np.zeros((3, m.nu)),
    )


def _disabled(m: mujoco.MjModel) -> NDArray[np.bool_]:
    """(nu,) whether each actuator is off."""
    if m.opt.disableflags & _OFF.mjDSBL_ACTUATION:
        return np.ones(m.nu, bool)
    group = np.asarray(m.actuator_group)
    grouped = (group >= 0) & (group <= 30)
    return grouped & ((int(m.opt.disableactuator) >> np.where(grouped, group, 0)) & 1).astype(bool)


def _ranges(ends: Array, limited: NDArray[np.uint8]) -> Array:
    """(n, 2) least and largest, where there are limits."""
    return np.where(np.asarray(limited, bool)[:, None], ends, [-np.inf, np.inf])


def plain(model: mujoco.MjModel) -> bool:
    """Whether springs, dampers and actuators act along joints and tendons of joints alone, with
    dampers that are linear and servos that are affine, and nothing else depends on the state."""
    m = model
    single = m.jnt_type >= SLIDE
    if m.nflex or m.nplugin or m.nhistory or m.opt.density or m.opt.viscosity:
        return False
    free = m.body_dofnum[m.body_rootid] == 6
    if m.body_gravcomp[free].any() or (m.ngravcomp and m.jnt_actgravcomp.any()):
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


@lean
def _next_activations(dt, ctrl, act, springs: Springs):
    """springs.next := of all activations."""
    for k in range(springs.owner.shape[0]):
        u, kind, lag = ctrl[springs.owner[k]], springs.dynamics[k], springs.lag[k]
        low, high = springs.control[springs.owner[k], 0], springs.control[springs.owner[k], 1]
        stay, share = 1.0, 0.0
        if kind == _INTEGRATOR:
            share = dt
        elif kind == _FILTER:
            stay, share = 1.0 - dt / lag, dt / lag
        elif kind == _FILTER_EXACT:
            stay = np.exp(-dt / lag)
            share = 1.0 - stay
        after = stay * act[k] + share * min(max(u, low), high)
        moves = springs.activation[k, 0] < after < springs.activation[k, 1]
        springs.next[k, 0] = stay if moves else 0.0
        springs.next[k, 1] = share if moves and low <= u <= high else 0.0


@lean
def _find_rates(force, length, ctrl, act, springs: Springs):
    """springs.rate := of all forces."""
    rate, gain, bias = springs.rate, springs.gain, springs.bias
    for i in range(rate.shape[1]):
        rate[0, i] = rate[1, i] = rate[2, i] = 0.0
        if not springs.force[i, 0] < force[i] < springs.force[i, 1]:
            continue
        at = springs.state[i]
        u = min(max(ctrl[i], springs.control[i, 0]), springs.control[i, 1])
        rate[0, i] = gain[i, 1] * (act[at] if at >= 0 else u) + bias[i, 0]
        rate[1, i] = bias[i, 1]
        if at >= 0 or u == ctrl[i]:
            rate[2, i] = gain[i, 0] + gain[i, 1] * length[i]


@lean
def _add_forces(start, count, column, lever, push, dt, springs: Springs, out: Slopes):
    """Adds the forces' rates to `out`, through their levers."""
    for i in range(springs.rate.shape[1]):
        at = springs.state[i]
        for a in range(start[i], start[i] + count[i]):
            j = column[a]
            if not springs.limited[j, 0] < push[j] < springs.limited[j, 1]:
                continue
            scale = dt * lever[a]
            for b in range(start[i], start[i] + count[i]):
                out.push_q[j, column[b]] += scale * springs.rate[0, i] * lever[b]
                out.push_v[j, column[b]] += scale * springs.rate[1, i] * lever[b]
            by = scale * springs.rate[2, i]
            if at < 0:
                out.push_u[j, i] += by
            elif springs.early[i] == 0:
                out.push_a[j, at] += by
            else:
                out.push_a[j, at] += by * springs.next[at, 0]
                out.push_u[j, i] += by * springs.next[at, 1]


@lean
def differentiate_actuators(d, dt, springs: Springs, out: Slopes):
    """Adds to `out` what actuators do."""
    nu, na, nv = springs.rate.shape[1], springs.owner.shape[0], springs.damping.shape[0]
    if nu == 0:
        return
    ctrl, act = numbers(pointer(d + _CTRL), nu), numbers(pointer(d + _ACT), na)
    _next_activations(dt, ctrl, act, springs)
    for k in range(na):
        out.act_a[k, k] = springs.next[k, 0]
        out.act_u[k, springs.owner[k]] = springs.next[k, 1]
    force, length = numbers(pointer(d + _FORCE), nu), numbers(pointer(d + _LENGTH), nu)
    _find_rates(force, length, ctrl, act, springs)
    count, start = integers(pointer(d + _NNZ), nu), integers(pointer(d + _ADR), nu)
    total = start[nu - 1] + count[nu - 1]
    column, lever = integers(pointer(d + _COL), total), numbers(pointer(d + _MOMENT), total)
    push = numbers(pointer(d + _ACTUATION), nv)
    _add_forces(start, count, column, lever, push, dt, springs, out)


@lean
def differentiate_springs(m, d, dt, springs: Springs, out: Slopes):
    """Adds to `out` what springs and dampers of joints do."""
    nv, count = springs.damping.shape[0], springs.stiff.shape[1]
    for j in range(nv):
        out.push_v[j, j] -= dt * springs.damping[j]
    if count == 0:
        return
    qpos, force = numbers(pointer(d + _QPOS), integer(m + _NQ)), numbers(pointer(d + _PASSIVE), nv)
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
