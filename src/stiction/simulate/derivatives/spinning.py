"""Free bodies, whose gyroscopic force is implicit (`bridge/gyroscopic.py`): the momentum that a
step begins them with, by how they are turned and by how fast they move.

    z = S (v - v+) + S y,    y = A^-1 h f,    A = S + h N,    N = dc/dw
    f: gravity, -c(w), damping D, applied forces

With w turned into N = N(w), linear in it, and r the axis that the body turns about, in the world,

    dz/dw_k = S e_k - h S A^-1 (N(w) e_k + D e_k + N(y) e_k)
    dz      = dS (v - v+ + y) + S A^-1 (h df - dS y - h r x N y)    as it turns
    dS x    = r x (S x) - S (r x x)                                 r x: of what moves along alone

because c is quadratic in w, and all but the damping is S, N and c of the body's own frame, turned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.bridge.gyroscopic import bias_rate
from stiction.bridge.layout import integers, numbers, offset, pointer
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import Blocks
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.linear import solve_dense
from stiction.kernels.packing import packed
from stiction.simulate.derivatives.bodies import Tree
from stiction.simulate.derivatives.contacts import Slopes

_M_NNZ, _M_ADR, _M_COL = (offset("mjModel", f"M_{k}") for k in ("rownnz", "rowadr", "colind"))
_M, _XMAT, _SMOOTH, _XFRC = (
    offset("mjData", name) for name in ("M", "xmat", "qfrc_smooth", "xfrc_applied")
)


@packed
class Spin(NamedTuple):
    """What one body is worked out in."""

    small: Array  # (6, 3, 3) of `gyroscopic.scratch`
    rate: Array  # (2, 6, 3) N(w), N(y)
    block: Array  # (21,) lower rows of the inertia
    mass: Array  # (6, 6) S, without damping
    matrix: Array  # (2, 6, 6) A
    y: Array  # (6, 1)
    x: Array  # (6, 9) for turns, then for speeds
    turn: Array  # (9,) rotation
    given: Array  # (7, 6) v, v+, D, constant force, applied wrench, c, that wrench along freedoms
    inertia: Array  # (4, 3) that of the turns, and the centre of mass
    three: Array  # (6, 3)


def allocate_spin() -> Spin:
    """Room for one body."""
    return Spin(
        np.zeros((6, 3, 3)), np.zeros((2, 6, 3)), np.zeros(21), np.zeros((6, 6)),
        np.zeros((2, 6, 6)), np.zeros((6, 1)), np.zeros((6, 9)), np.zeros(9), np.zeros((7, 6)),
        np.zeros((4, 3)), np.zeros((6, 3)),
    )  # fmt: skip


@lean
def _bias(mass, rotation, w, base, spin: Spin, out):
    """out (6,) := c(w), with gravity; base (6,): acceleration of the world. With the inertia about
    the body's origin the turns' part is w x I w alone."""
    p, inertia = spin.inertia[3], spin.inertia
    u0, u1, u2 = w[1] * p[2] - w[2] * p[1], w[2] * p[0] - w[0] * p[2], w[0] * p[1] - w[1] * p[0]
    g0, g1, g2 = w[1] * u2 - w[2] * u1, w[2] * u0 - w[0] * u2, w[0] * u1 - w[1] * u0
    for i in range(3):
        turned = rotation[3 * i] * g0 + rotation[3 * i + 1] * g1 + rotation[3 * i + 2] * g2
        out[i] = mass * (turned + base[3 + i])
    s0 = inertia[0, 0] * w[0] + inertia[0, 1] * w[1] + inertia[0, 2] * w[2]
    s1 = inertia[1, 0] * w[0] + inertia[1, 1] * w[1] + inertia[1, 2] * w[2]
    s2 = inertia[2, 0] * w[0] + inertia[2, 1] * w[1] + inertia[2, 2] * w[2]
    b0 = rotation[0] * base[3] + rotation[3] * base[4] + rotation[6] * base[5]
    b1 = rotation[1] * base[3] + rotation[4] * base[4] + rotation[7] * base[5]
    b2 = rotation[2] * base[3] + rotation[5] * base[4] + rotation[8] * base[5]
    out[3] = w[1] * s2 - w[2] * s1 + mass * (p[1] * b2 - p[2] * b1)
    out[4] = w[2] * s0 - w[0] * s2 + mass * (p[2] * b0 - p[0] * b2)
    out[5] = w[0] * s1 - w[1] * s0 + mass * (p[0] * b1 - p[1] * b0)


@lean
def _applied(rotation, wrench, spin: Spin, out):
    """out (6,) := the force and the torque (6,) that act on the body, along its freedoms."""
    p = spin.inertia[3]
    for c in range(3):
        out[c] = wrench[c]
    f0 = rotation[0] * wrench[0] + rotation[3] * wrench[1] + rotation[6] * wrench[2]
    f1 = rotation[1] * wrench[0] + rotation[4] * wrench[1] + rotation[7] * wrench[2]
    f2 = rotation[2] * wrench[0] + rotation[5] * wrench[1] + rotation[8] * wrench[2]
    for c in range(3):
        out[3 + c] = (
            rotation[c] * wrench[3] + rotation[3 + c] * wrench[4] + rotation[6 + c] * wrench[5]
        )
    out[3] += p[1] * f2 - p[2] * f1
    out[4] += p[2] * f0 - p[0] * f2
    out[5] += p[0] * f1 - p[1] * f0


@lean
def _read_body(m, d, dt, a, body, b: Blocks, v, v_plus, base, spin: Spin):
    """Fills `spin` for the body with degrees of freedom from a on; returns its mass."""
    nv = b.first.shape[0]
    count, start = integers(pointer(m + _M_NNZ), nv), integers(pointer(m + _M_ADR), nv)
    total = start[nv - 1] + count[nv - 1]
    column, value = integers(pointer(m + _M_COL), total), numbers(pointer(d + _M), total)
    rotation, force = numbers(pointer(d + _XMAT) + 72 * body, 9), numbers(pointer(d + _SMOOTH), nv)
    applied = numbers(pointer(d + _XFRC) + 48 * body, 6)
    block, inertia, given = spin.block, spin.inertia, spin.given
    for k in range(21):
        block[k] = 0.0
    for i in range(6):  # a row of M holds its diagonal alone where that is all there is
        for k in range(start[a + i], start[a + i] + count[a + i]):
            block[i * (i + 1) // 2 + column[k] - a] = value[k]
        given[2, i] = (b.mass[b.row[a + i] + a + i] - block[i * (i + 1) // 2 + i]) / dt
        given[0, i], given[1, i] = v[a + i], v_plus[a + i]
        given[4, i] = applied[i]
    mass = block[0]
    for k in range(9):
        spin.turn[k] = rotation[k]
    # [p] = M_wv R / m
    for r in range(3):
        row, c, i = ((5, 1, 0), (3, 2, 1), (4, 0, 2))[r]
        total_ = 0.0
        for k in range(3):
            total_ += block[row * (row + 1) // 2 + k] * rotation[3 * k + c]
        inertia[3, i] = total_ / mass
    for i in range(3):
        for j in range(i + 1):
            inertia[i, j] = inertia[j, i] = block[(3 + i) * (4 + i) // 2 + 3 + j]
    _bias(mass, rotation, given[0, 3:6], base, spin, given[5])
    _applied(rotation, given[4], spin, given[6])
    for i in range(6):
        given[3, i] = force[a + i] + given[5, i] + given[2, i] * given[0, i] - given[6, i]
    return mass


@lean
def _solve_free(mass, dt, spin: Spin):
    """Fills S, N(w), y, N(y) and both copies of A."""
    given, S, A, y = spin.given, spin.mass, spin.matrix, spin.y
    bias_rate(mass, spin.block, spin.turn, given[0, 3:6], spin.small, spin.rate[0])
    for i in range(6):
        for j in range(i + 1):
            S[i, j] = S[j, i] = spin.block[i * (i + 1) // 2 + j]
    for i in range(6):
        for j in range(6):
            A[0, i, j] = S[i, j] + (dt * spin.rate[0, i, j - 3] if j > 2 else 0.0)
        A[0, i, i] += dt * given[2, i]
        for j in range(6):
            A[1, i, j] = A[0, i, j]
        y[i, 0] = dt * (given[3, i] + given[6, i] - given[5, i] - given[2, i] * given[0, i])
    solve_dense(A[0], y, 6, 0.0)
    for c in range(3):
        spin.three[0, c] = y[3 + c, 0]
    bias_rate(mass, spin.block, spin.turn, spin.three[0], spin.small, spin.rate[1])


@lean_leaf
def _cross(a, i, b, j, out, k):
    """out[k] := a[i] x b[j]."""
    a0, a1, a2, b0, b1, b2 = a[i, 0], a[i, 1], a[i, 2], b[j, 0], b[j, 1], b[j, 2]
    out[k, 0], out[k, 1], out[k, 2] = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0


@lean
def _turn_mass(spin: Spin, axis, x, sign, out, k):
    """out[:, k] += sign dS x (6,), as the body turns about an axis of its own."""
    S, three = spin.mass, spin.three
    for c in range(3):
        three[0, c] = spin.turn[3 * c + axis]
        three[1, c], three[2, c] = x[c], 0.0
        for j in range(6):
            three[2, c] += S[c, j] * x[j]
    _cross(three, 0, three, 2, three, 3)
    _cross(three, 0, three, 1, three, 4)
    for i in range(6):
        total = three[3, i] if i < 3 else 0.0
        for c in range(3):
            total -= S[i, c] * three[4, c]
        out[i, k] += sign * total


@lean
def _turn_force(mass, dt, base, spin: Spin, axis, out, k):
    """out[:, k] += h df - h r x N y, as the body turns about an axis of its own."""
    given, three, inertia, turn = spin.given, spin.three, spin.inertia, spin.turn
    for c in range(3):
        three[0, c] = turn[3 * c + axis]
        three[1, c] = mass * base[3 + c] - given[5, c]
        for j in range(3):
            three[1, c] -= spin.rate[0, c, j] * spin.y[3 + j, 0]
    _cross(three, 0, three, 1, three, 2)
    for c in range(3):
        out[c, k] += dt * three[2, c]
    # In the body: what acts at its centre of mass, and the torque, turn back.
    for c in range(3):
        three[0, c] = 1.0 if c == axis else 0.0
        three[1, c] = three[2, c] = 0.0
        for j in range(3):
            three[1, c] += turn[3 * j + c] * (given[4, j] - mass * base[3 + j])
            three[2, c] += turn[3 * j + c] * given[4, 3 + j]
    _cross(three, 1, three, 0, three, 3)
    _cross(inertia, 3, three, 3, three, 4)
    _cross(three, 2, three, 0, three, 5)
    for c in range(3):
        out[3 + c, k] += dt * (three[4, c] + three[5, c])


@lean
def differentiate_spins(m, d, dt, tree: Tree, b: Blocks, free, v, v_plus, spin: Spin, out: Slopes):
    """Puts the momentum's derivatives of the `free` bodies in the place of those of other trees."""
    given, S, x, y = spin.given, spin.mass, spin.x, spin.y
    for n in range(free.shape[0]):
        a = free[n, 0]
        mass = _read_body(m, d, dt, a, free[n, 1], b, v, v_plus, tree.base, spin)
        _solve_free(mass, dt, spin)
        for k in range(3):
            for i in range(6):
                x[i, k] = 0.0
                x[i, 3 + k] = -dt * given[2, i] if i == k else 0.0
                x[i, 6 + k] = -dt * (spin.rate[0, i, k] + spin.rate[1, i, k])
            x[3 + k, 6 + k] -= dt * given[2, 3 + k]
            _turn_mass(spin, k, y[:, 0], -1.0, x, k)
            _turn_force(mass, dt, tree.base, spin, k, x, k)
        solve_dense(spin.matrix[1], x, 6, 0.0)
        for i in range(6):  # given[3] is read no more
            given[3, i] = given[0, i] - given[1, i] + y[i, 0]
        for k in range(9):
            for i in range(6):
                total = dt * given[2, i] * x[i, k]
                for j in range(6):
                    total += S[i, j] * x[j, k]
                if k < 3:
                    out.push_q[a + i, a + 3 + k], out.push_q[a + i, a + k] = total, 0.0
                else:
                    own = dt * given[2, i] if i == k - 3 else 0.0
                    out.push_v[a + i, a + k - 3] = total + S[i, k - 3] + own
        for k in range(3):
            _turn_mass(spin, k, given[3], 1.0, out.push_q[a : a + 6], a + 3 + k)
