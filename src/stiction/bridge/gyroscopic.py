"""The gyroscopic force of free bodies, taken implicitly, as MuJoCo's implicitfast takes it.

Explicit, w x I w feeds energy into whatever tumbles. A body on a free joint of its own (six
degrees of freedom, no others in its tree) has the bias

    c(w) = (m R g,  m p x g + w x I w),   g = w x (w x p)

with p its centre of mass and I its inertia about it, in the body's frame, R the body's rotation.
Linearized over the step, (M - h D + h dc/dv) dv = h f with D the other forces' derivatives. dc/dv
is not symmetric, nor is D in a fluid, and contact needs a symmetric mass S, M less h times the
symmetric part of D: so dv is found here, and the momentum is set to S dv, which has the same free
motion.

The block of M gives all: m = M_00, M_wv = m [p] R', M_ww = I - m [p] [p], [p] the cross product.

Most bodies turn about their centre and principal axes: p = 0, and M and S are diagonal. Then the
momentum of translation stays, and that of rotation is y = S dv with

    (1 + E) y = h f,   E_ij = h (I_k - I_j) w_k / S_j,   E_ik = h (I_k - I_j) w_j / S_k

for (i, j, k) the axes in cyclic order: Euler's equations.
"""

from __future__ import annotations

import mujoco
import numpy as np

from stiction.bridge.layout import integers, number, numbers, offset, pointer
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import Blocks, Indices
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.linear import solve_dense

_TIMESTEP = offset("mjModel", "opt", "timestep")
_M_NNZ, _M_ADR, _M_COL = (offset("mjModel", f"M_{k}") for k in ("rownnz", "rowadr", "colind"))
_D_NNZ, _D_ADR, _D_COL = (offset("mjModel", f"D_{k}") for k in ("rownnz", "rowadr", "colind"))
_DERIV = offset("mjData", "qDeriv")
_NBODY = offset("mjModel", "nbody")
_M, _XMAT = offset("mjData", "M"), offset("mjData", "xmat")

LEAST_DETERMINANT = 0.25
"""Of 1 + E, above which Cramer's rule keeps all digits but one. It is 1 at rest, and less than that
where a body turns by a radian or so in a step about its middle axis."""


def standalone(model: mujoco.MjModel) -> Indices:
    """(n, 2) first degree of freedom and body of each free body whose tree has no others."""
    found = []
    for joint in np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
        dof, body = int(model.jnt_dofadr[joint]), int(model.jnt_bodyid[joint])
        alone = model.tree_dofnum[model.body_treeid[body]] == 6
        if alone and not model.dof_armature[dof : dof + 6].any():
            found.append((dof, body))
    return np.array(found, np.int64).reshape(-1, 2)


@leaf
def _cross(x, out):
    """out (3, 3) := the matrix of x times."""
    out[0, 0] = out[1, 1] = out[2, 2] = 0.0
    out[2, 1], out[1, 2] = x[0], -x[0]
    out[0, 2], out[2, 0] = x[1], -x[1]
    out[1, 0], out[0, 1] = x[2], -x[2]


@kernel
def bias_rate(mass, block, rotation, w, work, rate):
    """rate (6, 3) := dc/dw. block: the lower rows of M, one after the other; work (6, 3, 3)."""
    P, inertia, G, W, L = work[0], work[1], work[2], work[3], work[4]
    x = work[5]
    for i in range(3):
        row = (3 + i) * (4 + i) // 2  # lower rows of 1, 2, ... entries before it
        for j in range(3):
            total = 0.0
            for k in range(3):
                total += block[row + k] * rotation[3 * k + j]
            P[i, j] = total / mass
        for j in range(i + 1):
            inertia[i, j] = inertia[j, i] = block[row + 3 + j]
    p = x[0]
    p[0], p[1], p[2] = P[2, 1], P[0, 2], P[1, 0]
    _cross(p, P)
    for i in range(3):
        for j in range(3):
            for k in range(3):
                inertia[i, j] += mass * P[i, k] * P[k, j]
    spin = x[1]  # I w
    along = 0.0
    for i in range(3):
        spin[i] = 0.0
        for k in range(3):
            spin[i] += inertia[i, k] * w[k]
        along += w[i] * p[i]
    _cross(w, W)
    _cross(spin, L)
    for i in range(3):
        for j in range(3):
            G[i, j] = w[i] * p[j] - 2.0 * p[i] * w[j] + (along if i == j else 0.0)
    for i in range(3):
        for j in range(3):
            push, turn = 0.0, -L[i, j]
            for k in range(3):
                push += rotation[3 * i + k] * G[k, j]
                turn += mass * P[i, k] * G[k, j] + W[i, k] * inertia[k, j]
            rate[i, j] = mass * push
            rate[3 + i, j] = turn


@leaf
def in_skyline(b, a, i, j):
    """Whether the mass of the six degrees of freedom from a on has the entry (i, j)."""
    return b.first[a + max(i, j)] <= a + min(i, j)


@leaf
def _derivatives(m, d, a):
    """(count, start, column, value) of the rows of qDeriv of the six degrees of freedom from a
    on."""
    count, start = (
        integers(pointer(m + _D_NNZ) + 4 * a, 6),
        integers(pointer(m + _D_ADR) + 4 * a, 6),
    )
    total = start[5] + count[5]
    column, value = integers(pointer(m + _D_COL), total), numbers(pointer(d + _DERIV), total)
    return count, start, column, value


@kernel
def _is_one_sided(m, d, a):
    """Whether qDeriv couples any two of the six degrees of freedom from a on."""
    count, start, column, value = _derivatives(m, d, a)
    for i in range(6):
        for k in range(start[i], start[i] + count[i]):
            if value[k] != 0.0 and column[k] != a + i:
                return True
    return False


@kernel
def _add_one_sided(m, d, dt, a, A):
    """A (6, 6) -= h times the antisymmetric part of qDeriv at the six degrees of freedom from a
    on."""
    count, start, column, value = _derivatives(m, d, a)
    for i in range(6):
        for k in range(start[i], start[i] + count[i]):
            j = column[k] - a
            if 0 <= j < 6 and j != i and value[k] != 0.0:
                A[i, j] -= 0.5 * dt * value[k]
                A[j, i] += 0.5 * dt * value[k]


@leaf
def _is_simple(start, count, a):
    """Whether MuJoCo keeps the diagonal of M alone for the six degrees of freedom from a on."""
    simple = True
    for i in range(a, a + 6):
        simple = simple and count[i] == 1
    return simple


@leaf
def _is_diagonal(b, a):
    """Whether the mass of the six degrees of freedom from a on has no entry off its diagonal."""
    for i in range(1, 6):
        at = b.row[a + i]
        for j in range(max(b.first[a + i], a), a + i):
            if b.mass[at + j] != 0.0:
                return False
    return True


@leaf
def _steady_about_axes(b, a, dt, I0, I1, I2):
    """Changes the momentum of a body with those inertias about its axes, whose mass is diagonal;
    whether it did."""
    w0, w1, w2 = b.velocity[a + 3], b.velocity[a + 4], b.velocity[a + 5]
    h0, h1, h2 = (
        dt / b.mass[b.row[a + 3] + a + 3],
        dt / b.mass[b.row[a + 4] + a + 4],
        dt / b.mass[b.row[a + 5] + a + 5],
    )
    e01, e02 = h1 * (I2 - I1) * w2, h2 * (I2 - I1) * w1
    e10, e12 = h0 * (I0 - I2) * w2, h2 * (I0 - I2) * w0
    e20, e21 = h0 * (I1 - I0) * w1, h1 * (I1 - I0) * w0
    c00, c01, c02 = 1.0 - e12 * e21, e02 * e21 - e01, e01 * e12 - e02
    c10, c11, c12 = e12 * e20 - e10, 1.0 - e02 * e20, e02 * e10 - e12
    c20, c21, c22 = e10 * e21 - e20, e01 * e20 - e21, 1.0 - e01 * e10
    determinant = c00 + e01 * c10 + e02 * c20
    if not determinant > LEAST_DETERMINANT:
        return False
    p0, p1, p2 = b.push[a + 3], b.push[a + 4], b.push[a + 5]
    b.push[a + 3] = (c00 * p0 + c01 * p1 + c02 * p2) / determinant
    b.push[a + 4] = (c10 * p0 + c11 * p1 + c12 * p2) / determinant
    b.push[a + 5] = (c20 * p0 + c21 * p1 + c22 * p2) / determinant
    return True


@kernel
def steady_spin(m, d, b: Blocks, derivatives, free, work):
    """Changes the momentum of the `free` bodies; before other rows are folded into the mass.

    derivatives: whether qDeriv holds those of this step; work: as from `scratch`.
    """
    dt = number(m + _TIMESTEP)
    nv, nbody = b.first.shape[0], pointer(m + _NBODY)
    count, start = integers(pointer(m + _M_NNZ), nv), integers(pointer(m + _M_ADR), nv)
    total = start[nv - 1] + count[nv - 1]
    column, value = integers(pointer(m + _M_COL), total), numbers(pointer(d + _M), total)
    xmat = numbers(pointer(d + _XMAT), 9 * nbody)
    small, A, rate, x, block = work
    for n in range(free.shape[0]):
        a, body = free[n, 0], free[n, 1]
        w = b.velocity[a + 3 : a + 6]
        spins = w[0] != 0.0 or w[1] != 0.0 or w[2] != 0.0
        one_sided = derivatives and _is_one_sided(m, d, a)
        if not spins and not one_sided:
            continue
        if not one_sided and _is_simple(start, count, a) and _is_diagonal(b, a):
            I0, I1, I2 = value[start[a + 3]], value[start[a + 4]], value[start[a + 5]]
            if _steady_about_axes(b, a, dt, I0, I1, I2):
                continue
        for i in range(6):
            for j in range(6):
                A[i, j] = (
                    b.mass[b.row[a + max(i, j)] + a + min(i, j)] if in_skyline(b, a, i, j) else 0.0
                )
        if one_sided:
            _add_one_sided(m, d, dt, a, A)
        for i in range(6):  # a row of M holds its diagonal alone where that is all there is
            for j in range(i + 1):
                block[i * (i + 1) // 2 + j] = 0.0
            for k in range(start[a + i], start[a + i] + count[a + i]):
                block[i * (i + 1) // 2 + column[k] - a] = value[k]
        bias_rate(block[0], block, xmat[9 * body : 9 * body + 9], w, small, rate)
        for i in range(6):
            x[i, 0] = b.push[a + i]
            for j in range(3):
                A[i, 3 + j] += dt * rate[i, j]
        solve_dense(A, x, 6, 0.0)
        for i in range(6):
            moved = 0.0
            for j in range(6):
                if in_skyline(b, a, i, j):
                    moved += b.mass[b.row[a + max(i, j)] + a + min(i, j)] * x[j, 0]
            b.push[a + i] = moved


def scratch() -> tuple[Array, Array, Array, Array, Array]:
    """The arrays that `steady_spin` works in."""
    return np.zeros((6, 3, 3)), np.zeros((6, 6)), np.zeros((6, 3)), np.zeros((6, 1)), np.zeros(21)
