"""Motions and forces of bodies, six numbers each, the turn or torque first: their products."""

from __future__ import annotations

from stiction.kernels.compile import lean_leaf
from stiction.kernels.six import dot_by_pairs


@lean_leaf
def cross_motion(a, i, b, j, sign, out, k):
    """out[k] += sign a[i] x b[j], of motions."""
    a0, a1, a2, a3, a4, a5 = a[i, 0], a[i, 1], a[i, 2], a[i, 3], a[i, 4], a[i, 5]
    b0, b1, b2, b3, b4, b5 = b[j, 0], b[j, 1], b[j, 2], b[j, 3], b[j, 4], b[j, 5]
    out[k, 0] += sign * (a1 * b2 - a2 * b1)
    out[k, 1] += sign * (a2 * b0 - a0 * b2)
    out[k, 2] += sign * (a0 * b1 - a1 * b0)
    out[k, 3] += sign * (a1 * b5 - a2 * b4 + a4 * b2 - a5 * b1)
    out[k, 4] += sign * (a2 * b3 - a0 * b5 + a5 * b0 - a3 * b2)
    out[k, 5] += sign * (a0 * b4 - a1 * b3 + a3 * b1 - a4 * b0)


@lean_leaf
def cross_force(a, i, f, j, out, k):
    """out[k] += a[i] x* f[j], a motion and a force."""
    a0, a1, a2, a3, a4, a5 = a[i, 0], a[i, 1], a[i, 2], a[i, 3], a[i, 4], a[i, 5]
    f0, f1, f2, f3, f4, f5 = f[j, 0], f[j, 1], f[j, 2], f[j, 3], f[j, 4], f[j, 5]
    out[k, 0] += a1 * f2 - a2 * f1 + a4 * f5 - a5 * f4
    out[k, 1] += a2 * f0 - a0 * f2 + a5 * f3 - a3 * f5
    out[k, 2] += a0 * f1 - a1 * f0 + a3 * f4 - a4 * f3
    out[k, 3] += a1 * f5 - a2 * f4
    out[k, 4] += a2 * f3 - a0 * f5
    out[k, 5] += a0 * f4 - a1 * f3


@lean_leaf
def times_inertia(inertia, i, x, j, out, k):
    """out[k] += inertia[i] x[j], by MuJoCo's ten numbers."""
    c3, c4, c5, mass = inertia[i, 6], inertia[i, 7], inertia[i, 8], inertia[i, 9]
    w0, w1, w2, v0, v1, v2 = x[j, 0], x[j, 1], x[j, 2], x[j, 3], x[j, 4], x[j, 5]
    xy, xz, yz = inertia[i, 3], inertia[i, 4], inertia[i, 5]
    out[k, 0] += inertia[i, 0] * w0 + xy * w1 + xz * w2 + c4 * v2 - c5 * v1
    out[k, 1] += xy * w0 + inertia[i, 1] * w1 + yz * w2 + c5 * v0 - c3 * v2
    out[k, 2] += xz * w0 + yz * w1 + inertia[i, 2] * w2 + c3 * v1 - c4 * v0
    out[k, 3] += mass * v0 - c4 * w2 + c5 * w1
    out[k, 4] += mass * v1 - c5 * w0 + c3 * w2
    out[k, 5] += mass * v2 - c3 * w1 + c4 * w0


@lean_leaf
def six_dot(a, i, b, j):
    """a[i] . b[j], six numbers each."""
    return dot_by_pairs(a, 6 * i, b, 6 * j)
