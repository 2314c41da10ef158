"""Servos at their largest force: when they come off it.

A servo with damping pushes with

    clamp(u),   u = (g0 + g1 length + g2 speed) ctrl + b0 + b1 length + b2 speed

and its damping does not act while u is beyond the clamp. On a light link that lasts for a
small part of a step: the link is thrown forward, u falls as its speed grows, and from then on it
moves along slowly. A step over that moment would throw the link for all of its length, and the next
one back. So phases end where u comes back to the clamp, as the speed at their beginning and its
change tell, and damping is implicit (`stiffness.py`) from there on.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

OFF_CLAMP = 1.01
"""Of that time, the part that is waited for: the servo is then off its clamp."""

_NONE, _AFFINE = int(mujoco.mjtBias.mjBIAS_NONE), int(mujoco.mjtBias.mjBIAS_AFFINE)
_JOINTS = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
_GAINS = (int(mujoco.mjtGain.mjGAIN_FIXED), int(mujoco.mjtGain.mjGAIN_AFFINE))


def clamps(model: mujoco.MjModel) -> tuple[Array, Array]:
    """(lowest, highest) forces of actuators, by their own ranges and by that of the joint
    that one acts on, infinite where there is none."""
    low, high = np.full(model.nactuator, -np.inf), np.full(model.nactuator, np.inf)
    own = model.actuator_forcelimited != 0
    low[own], high[own] = model.actuator_forcerange[own].T
    for k in np.flatnonzero(np.isin(model.actuator_trntype, _JOINTS)):
        joint, gear = model.actuator_trnid[k, 0], model.actuator_gear[model.actuator_outadr[k], 0]
        if model.jnt_actfrclimited[joint] and gear != 0.0:
            ends = np.sort(model.jnt_actfrcrange[joint] / gear)
            low[k], high[k] = max(low[k], ends[0]), min(high[k], ends[1])
    return low, high


class Servos:
    """Actuators of a model whose damping a clamp takes away."""

    def __init__(self, model: mujoco.MjModel) -> None:
        gain = np.where(model.actuator_gaintype == _GAINS[1], 1.0, 0.0)[:, None]
        gain = model.actuator_gainprm[:, :3] * np.hstack([np.ones_like(gain), gain, gain])
        bias = model.actuator_biasprm[:, :3] * (model.actuator_biastype == _AFFINE)[:, None]
        damped = (gain[:, 2] != 0.0) | (bias[:, 2] != 0.0)
        known = np.isin(model.actuator_gaintype, _GAINS)
        known &= np.isin(model.actuator_biastype, (_NONE, _AFFINE))
        known &= (model.actuator_ctrlnum == 1) & (model.actuator_outnum == 1)
        low, high = clamps(model)
        self._index = np.flatnonzero(known & damped & (np.isfinite(low) | np.isfinite(high)))
        self._low, self._high = low[self._index], high[self._index]
        self._gain, self._bias = gain[self._index], bias[self._index]
        self._control = model.actuator_ctrladr[self._index]
        self._output = model.actuator_outadr[self._index]
        self._model = model

    def __len__(self) -> int:
        return len(self._index)

    def _forces(self, data: mujoco.MjData) -> tuple[Array, Array]:
        """(forces before the clamp, how they change with the speed), at the lengths and moments
        that were last evaluated, and at the speeds of now."""
        model, index = self._model, self._index
        last = model.actuator_actadr + model.actuator_actnum - 1
        ctrl = data.ctrl[self._control].copy()
        low, high = model.actuator_ctrlrange[self._control].T
        clamped = model.actuator_ctrllimited[self._control] != 0
        if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL:
            clamped[:] = False
        ctrl[clamped] = np.clip(ctrl, low, high)[clamped]
        active = model.actuator_actnum[index] > 0
        ctrl[active] = data.act[last[index[active]]]
        speed = [self._along(data, k, data.qvel) for k in range(len(index))]
        state = np.stack([np.ones(len(index)), data.actuator_length[self._output], speed])
        force = (self._gain.T * state).sum(axis=0) * ctrl + (self._bias.T * state).sum(axis=0)
        return force, self._gain[:, 2] * ctrl + self._bias[:, 2]

    def _along(self, data: mujoco.MjData, k: int, velocity: Array) -> float:
        """What the k-th servo sees of a velocity (nv,)."""
        begin = int(data.moment_rowadr[self._output[k]])
        end = begin + int(data.moment_rownnz[self._output[k]])
        columns = data.moment_colind[begin:end]
        return float(data.actuator_moment[begin:end] @ velocity[columns])

    def are_clamped(self, data: mujoco.MjData) -> bool:
        """Whether any is beyond its clamp, of data that was evaluated."""
        if not len(self):
            return False
        force, _ = self._forces(data)
        return bool(((force > self._high) | (force < self._low)).any())

    def time_left(self, data: mujoco.MjData, acceleration: Array) -> float:
        """Time [s] until the first one comes off its clamp, at that acceleration (nv,); infinite
        where none does."""
        if not len(self):
            return np.inf
        force, slope = self._forces(data)
        over = np.maximum(force - self._high, 0.0) + np.minimum(force - self._low, 0.0)
        left = np.inf
        for k in np.flatnonzero(over):
            change = slope[k] * self._along(data, int(k), acceleration)
            if change * over[k] < 0.0:
                left = min(left, -over[k] / change)
        return OFF_CLAMP * left
