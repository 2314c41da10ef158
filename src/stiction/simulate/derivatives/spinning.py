"""Free bodies, whose gyroscopic force is implicit (`bridge/gyroscopic.py`): the momentum that a
step begins them with, by how they are turned and by how fast they move.

A body alone has six degrees of freedom and a closed form for each part of its momentum; central
differences of it in nine variables (where it is does not matter) are evaluated here, by itself. In
how fast it moves along, undamped, the momentum is S times that.

    z = S (v - v+) + S A^-1 h f,    A = S + h dc/dv,    f: gravity, -c(w), damping, applied forces
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.bridge.gyroscopic import bias_rate
from stiction.bridge.layout import integers, numbers, offset, pointer
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import Blocks
from stiction.kernels.compile import kernel, lean
from stiction.kernels.linear import solve_dense
from stiction.kernels.packing import packed
from stiction.simulate.derivatives.bodies import Tree
from stiction.simulate.derivatives.contacts import Slopes

_M_NNZ, _M_ADR, _M_COL = (offset("mjModel", f"M_{k}") for k in ("rownnz", "rowadr", "colind"))
_M, _XMAT, _SMOOTH, _XFRC = (
    offset("mjData", name) for name in ("M", "xmat", "qfrc_smooth", "xfrc_applied")
)

TURN_STEP = 1e-5
"""How far turns are moved [rad], and speeds [m/s, rad/s]."""


@packed
class Spin(NamedTuple):
    """What one body is worked out in."""

    small: Array  # (6, 3, 3) of `gyroscopic.scratch`
    rate: Array  # (6, 3)
    block: Array  # (21,) lower rows of the inertia
    mass: Array  # (6, 6) S
    matrix: Array  # (6, 6) A
    x: Array  # (6, 1)
    turn: Array  # (9,) rotation, as it is
    turned: Array  # (9,) as it is moved
    given: Array  # (8, 6) v, v+, damping, constant force, and what is worked out; see `_momentum`
    inertia: Array  # (4, 3) that of the turns, and the centre of mass
    ends: Array  # (2, 6)


def allocate_spin() -> Spin:
    """Room for one body."""
    return Spin(
        np.zeros((6, 3, 3)), np.zeros((6, 3)), np.zeros(21), np.zeros((6, 6)), np.zeros((6, 6)),
        np.zeros((6, 1)), np.zeros(9), np.zeros(9), np.zeros((8, 6)), np.zeros((4, 3)),
        np.zeros((2, 6)),
    )  # fmt: skip


@lean
def _fill_inertia(mass, rotation, spin: Spin):
    """block := the lower rows of the inertia of a body that is so turned, one after the other."""
    block, inertia = spin.block, spin.inertia
    for k in range(21):
        block[k] = 0.0
    block[0] = block[2] = block[5] = mass
    x, y, z = inertia[3, 0], inertia[3, 1], inertia[3, 2]
    for j in range(3):
        a, b, c = rotation[3 * j], rotation[3 * j + 1], rotation[3 * j + 2]
        # column j of m [p] R'
        block[6 + j] = mass * (y * c - z * b)
        block[10 + j] = mass * (z * a - x * c)
        block[15 + j] = mass * (x * b - y * a)
    for i in range(3):
        for j in range(i + 1):
            block[(3 + i) * (4 + i) // 2 + 3 + j] = inertia[i, j]


@kernel
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


@kernel
def _momentum(mass, rotation, dt, base, spin: Spin, out):
    """out (6,) := z. Rows of spin.given: v, v+, damping, constant force, applied wrench."""
    given, S, A, x = spin.given, spin.mass, spin.matrix, spin.x
    _fill_inertia(mass, rotation, spin)
    for i in range(6):
        for j in range(i + 1):
            S[i, j] = S[j, i] = spin.block[i * (i + 1) // 2 + j]
        S[i, i] += dt * given[2, i]
    for i in range(6):
        for j in range(6):
            A[i, j] = S[i, j]
    w = given[0, 3:6]
    bias_rate(mass, spin.block, rotation, w, spin.small, spin.rate)
    _bias(mass, rotation, w, base, spin, given[5])
    _applied(rotation, given[4], spin, given[6])
    for i in range(6):
        x[i, 0] = dt * (given[3, i] + given[6, i] - given[5, i] - given[2, i] * given[0, i])
        for j in range(3):
            A[i, 3 + j] += dt * spin.rate[i, j]
    solve_dense(A, x, 6, 0.0)
    for i in range(6):
        total = 0.0
        for j in range(6):
            total += S[i, j] * (given[0, j] - given[1, j] + x[j, 0])
        out[i] = total


@lean
def _turn(kept, axis, angle, out):
    """out (9,) := a rotation, turned about an axis of its own."""
    a, b = (axis + 1) % 3, (axis + 2) % 3
    cosine, sine = np.cos(angle), np.sin(angle)
    for i in range(3):
        out[3 * i + axis] = kept[3 * i + axis]
        out[3 * i + a] = cosine * kept[3 * i + a] + sine * kept[3 * i + b]
        out[3 * i + b] = cosine * kept[3 * i + b] - sine * kept[3 * i + a]


@kernel
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


@kernel
def differentiate_spins(m, d, dt, tree: Tree, b: Blocks, free, v, v_plus, spin: Spin, out: Slopes):
    """Puts the momentum's derivatives of the `free` bodies in the place of those of other trees."""
    for n in range(free.shape[0]):
        a, body = free[n, 0], free[n, 1]
        mass = _read_body(m, d, dt, a, body, b, v, v_plus, tree.base, spin)
        drags = spin.given[2, 0] != 0.0 or spin.given[2, 1] != 0.0 or spin.given[2, 2] != 0.0
        for k in range(9):
            if 3 <= k < 6 and not drags:  # push_v has S already
                continue
            for side in range(2):
                eps = TURN_STEP - 2.0 * TURN_STEP * side
                for c in range(9):
                    spin.turned[c] = spin.turn[c]
                if k < 3:
                    _turn(spin.turn, k, eps, spin.turned)
                else:
                    spin.given[0, k - 3] += eps
                _momentum(mass, spin.turned, dt, tree.base, spin, spin.ends[side])
                if k >= 3:
                    spin.given[0, k - 3] -= eps
            for j in range(6):
                slope = (spin.ends[0, j] - spin.ends[1, j]) / (2.0 * TURN_STEP)
                if k < 3:
                    out.push_q[a + j, a + 3 + k] = slope
                    out.push_q[a + j, a + k] = 0.0
                else:
                    out.push_v[a + j, a + k - 3] = slope
