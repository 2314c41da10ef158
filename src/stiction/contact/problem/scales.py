"""How fast and how hard things move in a problem: the scales that a certificate divides by.

An error of 1e-9 m/s is rounding beside a hammer and everything beside a grain of sand, and
units must not matter at all. So each row i of the problem has a velocity scale s_i in its own
units, and s_i / W_ii is the impulse that goes with it, W_ii = a_i M^-1 a_i' its inverse inertia.
Scales come from the data alone: an answer cannot hide its errors behind large impulses.

    sigma_j = |v_j| + |h M^-1 f|_j                 speed of degree of freedom j, then spread:
    s_i     = max(push_i, max_j |a_ij| sigma_j)    push: max(b_i, 0) of a contact, |c_i| of a joint
    sigma_j = max(sigma_j, s_i |a_ij| / (M_jj d_i), |M_jk| sigma_k / M_jj)
              d_i = max_j a_ij^2 / M_jj

until none grows any more. Spreading is what a body at rest needs that others run into: its
own speed says nothing about how exactly it can be held. An impulse passes speed on by inertia,
so a ton's speed reaches the gram that it pushes, the gram's does not reach the ton. Changing
the unit of a row or of a degree of freedom changes its scale alike, because every term above
has the unit of its left side. No round trip gains (each factor is a product of normalized
entries <= 1), so it ends. A bound b_i < 0 (a gap ahead) is no push: it does not act unless
the speed is there anyway.

Rounding does not stop at what passes speed on: a solver that sees a whole problem errs by some
1e-14 of all that goes on in it. So no speed counts as less than FLOOR of the largest one, the
two compared by energy, sqrt(M_jj) sigma_j, which is the same in all units.

At the end s_i = max(push_i, sum_j |a_ij| sigma_j): absolute values, because a small difference
of large speeds carries their rounding. A contact has one velocity scale for its three rows,
max(normal, |(tangent 1, tangent 2)|), and two inverse inertias, W_nn and, for friction, the
larger of W_nn and the mean of the tangents' W.

With a contact-space matrix W and free velocity q, rows play the degrees of freedom:
s_i = max(|q_i|, push_i), then s_i = max(s_i, |W_ij| s_j / W_jj), energy s_i / sqrt(W_ii).
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.arrays import Array, Arrays, Scales, Whitened
from stiction.kernels.compile import kernel

FLOOR = 1e-6
"""Least speed over the largest, by energy. Without it a body at rest but for noise of 1e-17 m/s
would have its noise certified; with the tolerance of 1e-8 an error of 1e-14 is forgiven."""


GROWTH = 1.0 + 1e-9
"""Growth that calls for another sweep. Near one, so that scales do not depend on the order of
rows; above it, because rounding alone makes the last digit go round."""


Memory = tuple[Array, Array, Array, Array]
"""What normals, tangents, joints and boxes have passed on: each (2, rows)."""


@kernel
def _spread_row(
    rows: Array, i: int, push: float, inverse: Array, sigma: Array, passed: Array, light: Array
) -> bool:
    """Raises `sigma` to what an impulse along row i passes on of it; whether any grew.

    passed[i] is the speed that the row has passed on before (-1: none yet), light[i] its
    lightest inertia's inverse: a row whose speed has not grown has nothing new to pass on.
    """
    speed = push
    for j in range(sigma.shape[0]):
        speed = max(speed, abs(rows[i, j]) * sigma[j])
    if speed <= passed[i]:
        return False
    if passed[i] < 0.0:
        light[i] = 0.0
        for j in range(sigma.shape[0]):
            light[i] = max(light[i], rows[i, j] * rows[i, j] * inverse[j])
    passed[i] = speed
    grew = False
    if speed > 0.0 and light[i] > 0.0:
        share = speed / light[i]
        for j in range(sigma.shape[0]):
            grown = share * abs(rows[i, j]) * inverse[j]
            if grown > sigma[j]:
                grew |= grown > GROWTH * sigma[j]
                sigma[j] = grown
    return grew


@kernel
def _is_rough(arrays: Arrays, i: int) -> bool:
    """Whether contact i has tangential impulses under any law."""
    return arrays.friction[i] > 0.0 or arrays.viscosity[i] > 0.0


@kernel
def _sweep(arrays: Arrays, inverse: Array, sigma: Array, back: bool, memory: Memory) -> bool:
    """Passes speeds on along every row and coupling once, from the first or `back` from the
    last; whether any grew."""
    mass, normal, joint, box = arrays.mass, arrays.normal, arrays.joint, arrays.box
    bound, friction, viscosity = arrays.bound, arrays.friction, arrays.viscosity
    nv, nc = mass.shape[0], normal.shape[0]
    across = arrays.tangent.reshape(2 * nc, nv)
    normals, tangents, joints, boxes = memory
    grew = False
    for at in range(nc):
        i = nc - 1 - at if back else at
        push = max(bound[i], 0.0)
        grew |= _spread_row(normal, i, push, inverse, sigma, normals[0], normals[1])
        if friction[i] > 0.0 or viscosity[i] > 0.0:
            for t in range(2 * i, 2 * i + 2):
                grew |= _spread_row(across, t, 0.0, inverse, sigma, tangents[0], tangents[1])
    nj = joint.shape[0]
    for at in range(nj):
        i = nj - 1 - at if back else at
        push = abs(arrays.joint_target[i])
        grew |= _spread_row(joint, i, push, inverse, sigma, joints[0], joints[1])
    for i in range(box.shape[0]):
        grew |= _spread_row(box, i, 0.0, inverse, sigma, boxes[0], boxes[1])
    for j in range(nv):
        for k in range(nv):
            if mass[j, k] != 0.0:
                grown = abs(mass[j, k]) * sigma[k] * inverse[j]
                if grown > sigma[j]:
                    grew |= grown > GROWTH * sigma[j]
                    sigma[j] = grown
    return grew


@kernel
def _spread(arrays: Arrays, sigma: Array) -> None:
    """Spreads the dof speeds `sigma` (nv,), in place, over what can pass them on."""
    nv, nc = sigma.shape[0], arrays.normal.shape[0]
    inverse = np.empty(nv)
    for j in range(nv):
        inverse[j] = 1.0 / arrays.mass[j, j]
    memory = (
        np.full((2, nc), -1.0),
        np.full((2, 2 * nc), -1.0),
        np.full((2, arrays.joint.shape[0]), -1.0),
        np.full((2, arrays.box.shape[0]), -1.0),
    )
    # A path visits each dof once, so more than nv sweeps cannot help. Back and forth, because
    # neighbours mostly have neighbouring indices: a stack is through in two.
    for sweep in range(nv + 1):
        if not _sweep(arrays, inverse, sigma, sweep % 2 == 1, memory):
            break
    hardest = 0.0
    for j in range(nv):
        hardest = max(hardest, sigma[j] / np.sqrt(inverse[j]))
    for j in range(nv):
        sigma[j] = max(sigma[j], FLOOR * hardest * np.sqrt(inverse[j]))


@kernel
def _speed(rows: Array, i: int, sigma: Array) -> float:
    total = 0.0
    for j in range(sigma.shape[0]):
        total += abs(rows[i, j]) * sigma[j]
    return total


@kernel
def _square(rows: Array, i: int) -> float:
    total = 0.0
    for j in range(rows.shape[1]):
        total += rows[i, j] * rows[i, j]
    return total


@kernel
def _inverse_inertias(whitened: Whitened) -> tuple[Array, Array, Array]:
    """W_nn, the contact's W for friction (nc,), and W of the box rows (nb,)."""
    nc, nb = whitened.rows_normal.shape[0], whitened.rows_box.shape[0]
    normal, tangent, box = np.empty(nc), np.empty(nc), np.empty(nb)
    along, beside = whitened.rows_normal, whitened.rows_box
    across = whitened.rows_tangent.reshape(2 * nc, along.shape[1])
    for i in range(nc):
        normal[i] = _square(along, i)
        mean = 0.5 * (_square(across, 2 * i) + _square(across, 2 * i + 1))
        tangent[i] = max(normal[i], mean)
    for i in range(nb):
        box[i] = _square(beside, i)
    return normal, tangent, box


@kernel
def measure(arrays: Arrays, whitened: Whitened, v_free: Array) -> Scales:
    """Scales of a problem with mass."""
    nc, nj, nb = arrays.normal.shape[0], arrays.joint.shape[0], arrays.box.shape[0]
    sigma = np.abs(arrays.velocity) + np.abs(v_free - arrays.velocity)
    _spread(arrays, sigma)
    contact, joint, box = np.empty(nc), np.empty(nj), np.empty(nb)
    normal, bound, joints, boxes = arrays.normal, arrays.bound, arrays.joint, arrays.box
    friction, viscosity = arrays.friction, arrays.viscosity
    across = arrays.tangent.reshape(2 * nc, sigma.shape[0])
    for i in range(nc):
        contact[i] = max(bound[i], _speed(normal, i, sigma))
        if friction[i] > 0.0 or viscosity[i] > 0.0:
            a, b = _speed(across, 2 * i, sigma), _speed(across, 2 * i + 1, sigma)
            contact[i] = max(contact[i], np.sqrt(a * a + b * b))
    for i in range(nj):
        joint[i] = max(abs(arrays.joint_target[i]), _speed(joints, i, sigma))
    for i in range(nb):
        box[i] = _speed(boxes, i, sigma)
    for j in range(sigma.shape[0]):
        sigma[j] *= arrays.mass[j, j]
    inverse_normal, inverse_tangent, inverse_box = _inverse_inertias(whitened)
    return Scales(sigma, contact, inverse_normal, inverse_tangent, joint, box, inverse_box)


@kernel
def _spread_delassus(delassus: Array, speed: Array) -> None:
    """Spreads the row speeds (n,), in place, over a contact-space matrix (n, n)."""
    n = speed.shape[0]
    for sweep in range(n + 1):
        grew = False
        for at in range(n):
            i = n - 1 - at if sweep % 2 == 1 else at
            for j in range(n):
                size = abs(delassus[i, j])
                if size != 0.0 and delassus[j, j] > 0.0:
                    grown = size / delassus[j, j] * speed[j]
                    if grown > speed[i]:
                        grew |= grown > GROWTH * speed[i]
                        speed[i] = grown
        if not grew:
            break
    hardest = 0.0
    for i in range(n):
        if delassus[i, i] > 0.0:
            hardest = max(hardest, speed[i] / np.sqrt(delassus[i, i]))
    for i in range(n):
        speed[i] = max(speed[i], FLOOR * hardest * np.sqrt(delassus[i, i]))


@kernel
def measure_delassus(arrays: Arrays, whitened: Whitened, delassus: Array, dimension: int) -> Scales:
    """Scales of a Delassus problem."""
    nc = arrays.friction.shape[0]
    speed = np.abs(arrays.velocity)
    for i in range(nc):
        speed[dimension * i] = max(speed[dimension * i], arrays.bound[i])
        for k in range(1, dimension):
            if not _is_rough(arrays, i):
                speed[dimension * i + k] = 0.0
    _spread_delassus(delassus, speed)
    contact = np.empty(nc)
    for i in range(nc):
        contact[i] = speed[dimension * i]
        if _is_rough(arrays, i):
            across = 0.0
            for k in range(1, dimension):
                across = np.hypot(across, speed[dimension * i + k])
            contact[i] = max(contact[i], across)
    inverse_normal, inverse_tangent, inverse_box = _inverse_inertias(whitened)
    none = np.empty(0)
    return Scales(speed, contact, inverse_normal, inverse_tangent, none, none, inverse_box)
