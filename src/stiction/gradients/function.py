"""A step as a function of arrays: next state, and gradients taken back through it.

Positions are qpos, with quaternions as they are. A quaternion is made unit before the step, so that
its length does not matter, and gradients have no part along it:

    q = q0 exp(change)     dq = 1/2 q0 (0, change),    change = 2 vec(q0* dq)
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.errors import InvalidInput
from stiction.simulate.simulator import Simulator

Array = NDArray[np.float64]

BALL, FREE = int(mujoco.mjtJoint.mjJNT_BALL), int(mujoco.mjtJoint.mjJNT_FREE)


class State(NamedTuple):
    """Arrays (..., n) of a batch of states, or of gradients with respect to them."""

    qpos: Array
    qvel: Array
    act: Array


class StepFunction:
    """The step of a simulator. Everything that is no argument (applied forces, mocap bodies, time)
    is as in fresh data, and no step begins with the impulses of another."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        self._data = mujoco.MjData(simulator.model)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Of qpos, qvel, act and ctrl."""
        m = self.simulator.model
        return int(m.nq), int(m.nv), int(m.na), int(m.nu)

    def forward(self, qpos: Array, qvel: Array, act: Array, ctrl: Array) -> State:
        """The state after one step."""
        batch = self._check(qpos, qvel, act, ctrl)
        out = State(*(np.empty((*batch, n)) for n in self.sizes[:3]))
        for k in np.ndindex(batch):
            self._put(qpos[k], qvel[k], act[k], ctrl[k])
            self.simulator.forget()
            self.simulator.step(self._data)
            out.qpos[k], out.qvel[k], out.act[k] = self._data.qpos, self._data.qvel, self._data.act
        return out

    def backward(
        self, qpos: Array, qvel: Array, act: Array, ctrl: Array, gradient: State
    ) -> tuple[Array, Array, Array, Array]:
        """Gradients with respect to qpos, qvel, act and ctrl, from those with respect to the state
        after the step."""
        batch = self._check(qpos, qvel, act, ctrl)
        out = tuple(np.empty((*batch, n)) for n in self.sizes)
        m = self.simulator.model
        for k in np.ndindex(batch):
            self._put(qpos[k], qvel[k], act[k], ctrl[k])
            start = self._data.qpos.copy()
            self.simulator.forget()
            slopes = self.simulator.derivatives(self._data)
            end = slopes.next_qpos
            by_state, by_control = slopes.vjp(
                np.concatenate(
                    [tangent_gradient(m, end, gradient.qpos[k]), gradient.qvel[k], gradient.act[k]]
                )
            )
            out[0][k] = ambient_gradient(m, start, by_state[: m.nv])
            out[1][k], out[2][k] = by_state[m.nv : 2 * m.nv], by_state[2 * m.nv :]
            out[3][k] = by_control
        return out[0], out[1], out[2], out[3]

    def _check(self, *arrays: Array) -> tuple[int, ...]:
        """The shape of the batch that all arrays have."""
        batch = arrays[0].shape[:-1]
        for name, array, size in zip(
            ("qpos", "qvel", "act", "ctrl"), arrays, self.sizes, strict=True
        ):
            if array.shape != (*batch, size):
                raise InvalidInput(name, f"must have shape {(*batch, size)}", array.shape)
        return batch

    def _put(self, qpos: Array, qvel: Array, act: Array, ctrl: Array) -> None:
        model, data = self.simulator.model, self._data
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = qpos, qvel, act, ctrl
        mujoco.mj_normalizeQuat(model, data.qpos)


def tangent_gradient(model: mujoco.MjModel, qpos: Array, gradient: Array) -> Array:
    """(nv,) with respect to a change of position, from that with respect to qpos (nq,)."""
    out = np.empty(model.nv)
    for at, dof, lengths, turns in _joints(model):
        out[dof : dof + lengths] = gradient[at : at + lengths]
        if turns:
            four, three = slice(at + lengths, at + lengths + 4), dof + lengths
            out[three : three + 3] = 0.5 * _times(qpos[four]).T @ gradient[four]
    return out


def ambient_gradient(model: mujoco.MjModel, qpos: Array, gradient: Array) -> Array:
    """(nq,) with respect to qpos, from that with respect to a change of position (nv,)."""
    out = np.empty(model.nq)
    for at, dof, lengths, turns in _joints(model):
        out[at : at + lengths] = gradient[dof : dof + lengths]
        if turns:
            four, three = slice(at + lengths, at + lengths + 4), dof + lengths
            out[four] = 2.0 * _times(qpos[four]) @ gradient[three : three + 3]
    return out


def _joints(model: mujoco.MjModel) -> list[tuple[int, int, int, bool]]:
    """(place in qpos, degree of freedom, how many coordinates add up, whether a quaternion follows)
    of each joint."""
    found = []
    for kind, at, dof in zip(model.jnt_type, model.jnt_qposadr, model.jnt_dofadr, strict=True):
        lengths = {BALL: 0, FREE: 3}.get(int(kind), 1)
        found.append((int(at), int(dof), lengths, kind in (BALL, FREE)))
    return found


def _times(quaternion: Array) -> Array:
    """(4, 3) the product of a quaternion with a pure one, as a matrix."""
    w, x, y, z = quaternion
    return np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])
