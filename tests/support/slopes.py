"""Derivatives of a step beside central differences of whole steps."""

import mujoco
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
EPS = 3e-7


def swell(model, by=1e-5):
    """Makes geoms a little larger, so that what touches overlaps: differences then stay on one side
    of contact."""
    types = mujoco.mjtGeom
    for g in range(model.ngeom):
        kind = types(int(model.geom_type[g]))
        if kind in (types.mjGEOM_SPHERE, types.mjGEOM_CAPSULE):
            model.geom_size[g, 0] += by
        elif kind in (types.mjGEOM_BOX, types.mjGEOM_ELLIPSOID):
            model.geom_size[g] += by
        elif kind == types.mjGEOM_CYLINDER:
            model.geom_size[g, :2] += by
        if kind != types.mjGEOM_PLANE:
            model.geom_rbound[g] += 2.0 * by
            model.geom_aabb[g, 3:] += by


def differences(sim, data, eps=EPS, ends=(1.0, -1.0)):
    """(A, B) of the simulator's own step, in tangent space; ends: of the differences, in eps."""
    m = sim.model
    start = np.empty(mujoco.mj_stateSize(m, STATE))
    mujoco.mj_getState(m, data, start, STATE)
    moved, n = mujoco.MjData(m), 2 * m.nv + m.na

    def end(k, amount):
        mujoco.mj_setState(m, moved, start, STATE)
        if k < m.nv:
            mujoco.mj_integratePos(m, moved.qpos, np.eye(m.nv)[k], amount)
        else:
            part = moved.qvel if k < 2 * m.nv else moved.act if k < n else moved.ctrl
            part[k - (m.nv if k < 2 * m.nv else 2 * m.nv if k < n else n)] += amount
        sim.forget()
        sim.step(moved)
        return moved.qpos.copy(), np.concatenate([moved.qvel, moved.act])

    out = np.zeros((n, n + m.nu))
    for k in range(n + m.nu):
        (ahead, fast), (behind, slow) = (end(k, far * eps) for far in ends)
        place, apart = np.zeros(m.nv), (ends[0] - ends[1]) * eps
        mujoco.mj_differentiatePos(m, place, apart, behind, ahead)
        out[:, k] = np.concatenate([place, (fast - slow) / apart])
    return out[:, :n], out[:, n:]


def assert_agree(sim, data, tolerance=1e-5, eps=EPS):
    """The derivatives are those of the step; returns them."""
    before = data.qpos.copy(), data.qvel.copy(), data.time
    found = sim.derivatives(data)
    assert before[2] == data.time
    assert_array_equal(before[0], data.qpos)
    assert_array_equal(before[1], data.qvel)
    for have, want in zip((found.A, found.B), differences(sim, data, eps), strict=True):
        size = max(1.0, np.abs(want).max(initial=0.0))
        assert_allclose(have / size, want / size, atol=tolerance)
    return found
