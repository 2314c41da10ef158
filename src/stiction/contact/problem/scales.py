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
1e-14 of all that goes on in it. So no speed counts as less than LEAST_SPEED of the largest one, the
two compared by energy, sqrt(M_jj) sigma_j, which is the same in all units.

At the end s_i = max(push_i, sum_j |a_ij| sigma_j): absolute values, because a small difference
of large speeds carries their rounding. A contact has one velocity scale for its three rows,
max(normal, |(tangent 1, tangent 2)|), and two inverse inertias, W_nn and, for friction, the
larger of W_nn and the mean of the tangents' W.

With a contact-space matrix W and free velocity q, rows play the degrees of freedom:
s_i = max(|q_i|, push_i), then s_i = max(s_i, |W_ij| s_j / W_jj), energy s_i / sqrt(W_ii). That is
the spreading above with W for the mass and the impulses s_i / W_ii for the speeds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stiction.contact.problem.arrays import Array, Arrays, Whitened
from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind, are_six
from stiction.contact.problem.dense_blocks import blocks_of, from_contact_space
from stiction.kernels import six
from stiction.kernels.block import BODY
from stiction.kernels.compile import kernel, lean, lean_leaf

LEAST_SPEED = 1e-6
"""Least speed over the largest, by energy. Without it a body at rest but for noise of 1e-17 m/s
would have its noise certified; with the tolerance of 1e-8 an error of 1e-14 is forgiven."""


SWEEP_GROWTH = 1.0 + 1e-9
"""Growth that calls for another sweep. Near one, so that scales do not depend on the order of
rows; above it, because rounding alone makes the last digit go round."""


class Scales(NamedTuple):
    """Scales of a problem by blocks; velocities in the unit of the row per second."""

    own: Array  # (nv,) speeds of the degrees of freedom before they are spread
    sigma: Array  # (nv,) the same when they are
    speed: Array  # (count,) velocity of each block: contacts, joints, then box rows
    weight: Array  # (count, ROWS) inverse inertia of each row
    contacts: int
    boxes: int

    @property
    def contact(self) -> Array:
        """(nc,) velocity of each contact."""
        return self.speed[: self.contacts]

    @property
    def box(self) -> Array:
        """(nb,) velocity of each box row."""
        return self.speed[len(self.speed) - self.boxes :]

    @property
    def inverse_normal(self) -> Array:
        """(nc,) inverse inertia along each normal."""
        return self.weight[: self.contacts, 0]

    @property
    def inverse_tangent(self) -> Array:
        """(nc,) inverse inertia for the friction of each contact."""
        across = self.weight[: self.contacts, 1:3].mean(axis=1)
        return np.maximum(self.inverse_normal, across)

    @property
    def inverse_box(self) -> Array:
        """(nb,) inverse inertia of each box row."""
        return self.weight[len(self.speed) - self.boxes :, 0]


@lean_leaf
def _is_rough(b: Blocks, i):
    """Whether contact i has tangential impulses under any law."""
    return b.data[i, Datum.SLIDE] > 0.0 or b.data[i, Datum.DRAG] > 0.0


@lean
def row_speed(b: Blocks, i, r, sigma):
    """Speed along row r of block i at the speeds sigma, whatever their signs."""
    head, column, value = b.head, b.column, b.value
    width, c0 = head[i, Head.WIDTH], head[i, Head.COLUMN]
    a0 = head[i, Head.VALUE] + r * width
    total = abs(b.data[i, Datum.SURFACE + r - 1]) if 0 < r < 4 else 0.0
    k = 0
    while k + BODY <= width and are_six(b, c0 + k):
        total += six.dot_of_sizes(value, a0 + k, sigma, column[c0 + k])
        k += BODY
    while k < width:
        total += abs(value[a0 + k]) * sigma[column[c0 + k]]
        k += 1
    return total


@lean_leaf
def block_speed(b: Blocks, i, sigma):
    """Velocity scale of block i; of a contact, that of its first three rows."""
    kind = b.head[i, Head.KIND]
    speed = row_speed(b, i, 0, sigma)
    if kind == Kind.CONTACT:
        speed = max(speed, b.data[i, Datum.BOUND])
        if b.head[i, Head.ROWS] > 2 and _is_rough(b, i):
            x, y = row_speed(b, i, 1, sigma), row_speed(b, i, 2, sigma)
            speed = max(speed, np.sqrt(x * x + y * y))
    elif kind == Kind.HOLD:
        speed = max(speed, abs(b.data[i, Datum.BOUND]))
    return speed


@lean_leaf
def friction_weight(weight, i):
    """Inverse inertia of contact i for its friction."""
    return max(weight[i, 0], 0.5 * (weight[i, 1] + weight[i, 2]))


@lean
def _raise_to_floor(inverse, sigma):
    """Raises speeds to `LEAST_SPEED` of the largest by energy; inverse (nv,): of inertias, or 0."""
    hardest = 0.0
    for j in range(sigma.shape[0]):
        if inverse[j] > 0.0:
            hardest = max(hardest, sigma[j] / np.sqrt(inverse[j]))
    for j in range(sigma.shape[0]):
        sigma[j] = max(sigma[j], LEAST_SPEED * hardest * np.sqrt(inverse[j]))


@lean
def _invert_diagonal(b: Blocks, inverse):
    """inverse (nv,) := of the mass' diagonal."""
    for j in range(inverse.shape[0]):
        own = b.mass[b.row[j] + j]
        inverse[j] = 1.0 / own if own > 0.0 else 0.0


@lean
def own_speeds(b: Blocks, v_free, inverse, own):
    """own (nv,) := the speeds of the degrees of freedom before they are spread; inverse (nv,) :=
    that of the mass' diagonal."""
    _invert_diagonal(b, inverse)
    for j in range(v_free.shape[0]):
        own[j] = abs(b.velocity[j]) + abs(v_free[j] - b.velocity[j])
    _raise_to_floor(inverse, own)


@lean
def pass_on(b: Blocks, i, r, speed, inverse, sigma):
    """Raises sigma to what an impulse along row r of block i passes on of `speed`; whether any
    grew. inverse (nv,): of the mass' diagonal."""
    head, column, value = b.head, b.column, b.value
    width, c0 = head[i, Head.WIDTH], head[i, Head.COLUMN]
    a0 = head[i, Head.VALUE] + r * width
    lightest = 0.0
    for k in range(width):
        lightest = max(lightest, value[a0 + k] * value[a0 + k] * inverse[column[c0 + k]])
    grew = False
    if speed > 0.0 and lightest > 0.0:
        share = speed / lightest
        for k in range(width):
            j = column[c0 + k]
            grown = share * abs(value[a0 + k]) * inverse[j]
            if grown > sigma[j]:
                grew |= grown > SWEEP_GROWTH * sigma[j]
                sigma[j] = grown
    return grew


@lean
def _spread_row(b: Blocks, i, r, inverse, sigma, passed):
    """Passes on what row r of block i has; whether any grew. passed[i, r] is the speed that it has
    passed on before (-1: none yet): a row whose speed has not grown has nothing new."""
    head, column, value = b.head, b.column, b.value
    width, c0 = head[i, Head.WIDTH], head[i, Head.COLUMN]
    a0 = head[i, Head.VALUE] + r * width
    speed = 0.0
    if r == 0:
        bound = b.data[i, Datum.BOUND]
        kind = head[i, Head.KIND]
        if kind == Kind.CONTACT:
            speed = max(bound, 0.0)
        elif kind == Kind.HOLD:
            speed = abs(bound)
    elif r < 4:
        speed = abs(b.data[i, Datum.SURFACE + r - 1])
    for k in range(width):
        speed = max(speed, abs(value[a0 + k]) * sigma[column[c0 + k]])
    if speed <= passed[i, r]:
        return False
    passed[i, r] = speed
    return pass_on(b, i, r, speed, inverse, sigma)


@lean_leaf
def _couple(size, j, k, inverse, sigma):
    """Passes speeds on along an entry of that size, both ways; whether one grew."""
    grew = False
    here, there = size * sigma[k] * inverse[j], size * sigma[j] * inverse[k]
    if here > sigma[j]:
        grew |= here > SWEEP_GROWTH * sigma[j]
        sigma[j] = here
    if there > sigma[k]:
        grew |= there > SWEEP_GROWTH * sigma[k]
        sigma[k] = there
    return grew


@lean
def _spread_couplings(b: Blocks, inverse, sigma):
    """Passes speeds on along every entry of the mass once; whether any grew."""
    mass, first, grew = b.mass, b.first, False
    for j in range(sigma.shape[0]):
        at = b.row[j]
        for k in range(first[j], j):
            if mass[at + k] != 0.0:
                grew |= _couple(abs(mass[at + k]), j, k, inverse, sigma)
    return grew


@kernel
def _spread_entries(pointers, columns, values, inverse, sigma):
    """The same along a symmetric matrix by compressed rows, from its lower part."""
    grew = False
    for j in range(sigma.shape[0]):
        for x in range(pointers[j], pointers[j + 1]):
            if columns[x] < j:
                grew |= _couple(abs(values[x]), j, columns[x], inverse, sigma)
    return grew


@lean
def spread(b: Blocks, count, inverse, passed, sigma):
    """Spreads the speeds sigma (nv,) over what can pass them on; inverse (nv,): of the mass'
    diagonal. Overwrites passed (count, ROWS)."""
    nv = sigma.shape[0]
    for i in range(count):
        for r in range(ROWS):
            passed[i, r] = -1.0
    # A path visits each dof once, so more than nv sweeps cannot help. Back and forth, because
    # neighbours mostly have neighbouring indices: a stack is through in two.
    for sweep in range(nv + 1):
        grew = False
        for at in range(count):
            i = count - 1 - at if sweep % 2 == 1 else at
            rows = b.head[i, Head.ROWS]
            if rows > 2 and not _is_rough(b, i):
                rows = np.int64(1)
            for r in range(rows):
                grew |= _spread_row(b, i, r, inverse, sigma, passed)
        grew |= _spread_couplings(b, inverse, sigma)
        if not grew:
            break
    _raise_to_floor(inverse, sigma)


@lean
def _square(rows: Array, i: int) -> float:
    total = 0.0
    for j in range(rows.shape[1]):
        total += rows[i, j] * rows[i, j]
    return total


@kernel
def weights(whitened: Whitened) -> Array:
    """(count, ROWS) inverse inertias of all rows of a problem with dense arrays."""
    nc, nj = whitened.rows_normal.shape[0], whitened.rows_joint.shape[0]
    nb, rank = whitened.rows_box.shape
    across = whitened.rows_tangent.reshape(2 * nc, rank)
    weight = np.zeros((nc + nj + nb, ROWS))
    for i in range(nc):
        weight[i, 0] = _square(whitened.rows_normal, i)
        weight[i, 1], weight[i, 2] = _square(across, 2 * i), _square(across, 2 * i + 1)
    for k in range(nj):
        weight[nc + k, 0] = _square(whitened.rows_joint, k)
    for k in range(nb):
        weight[nc + nj + k, 0] = _square(whitened.rows_box, k)
    return weight


@kernel
def _finish(b: Blocks, own: Array, sigma: Array, weight: Array) -> Scales:
    count = weight.shape[0]
    speed = np.empty(count)
    contacts, boxes = 0, 0
    for i in range(count):
        speed[i] = block_speed(b, i, sigma)
        contacts += b.head[i, Head.KIND] == Kind.CONTACT
        boxes += b.head[i, Head.KIND] == Kind.BOX
    return Scales(own, sigma, speed, weight, contacts, boxes)


@kernel
def measure_blocks(b: Blocks, weight: Array, v_free: Array) -> Scales:
    """Scales of a problem with mass; weight (count, ROWS): inverse inertias of its rows."""
    nv, count = v_free.shape[0], weight.shape[0]
    own, inverse = np.empty(nv), np.empty(nv)
    own_speeds(b, v_free, inverse, own)
    sigma = own.copy()
    spread(b, count, inverse, np.empty((count, ROWS)), sigma)
    return _finish(b, own, sigma, weight)


@kernel
def _measure_contact_space(
    b: Blocks, weight: Array, diagonal: Array, pointers, columns, values
) -> Scales:
    """Scales of a problem u = W f + q, whose blocks have q for a velocity; W by its diagonal and by
    compressed rows."""
    n, count = b.velocity.shape[0], weight.shape[0]
    own, impulse, inverse = np.abs(b.velocity), np.zeros(n), np.zeros(n)
    for i in range(count):
        dimension, at = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN]
        own[at] = max(own[at], b.data[i, Datum.BOUND])
        for k in range(1, dimension):
            if not _is_rough(b, i):
                own[at + k] = 0.0
    _raise_to_floor(diagonal, own)
    for i in range(n):
        if diagonal[i] > 0.0:
            inverse[i] = 1.0 / diagonal[i]
            impulse[i] = own[i] / diagonal[i]
    for _ in range(n + 1):
        if not _spread_entries(pointers, columns, values, inverse, impulse):
            break
    _raise_to_floor(inverse, impulse)
    sigma = own.copy()
    for i in range(n):
        if diagonal[i] > 0.0:
            sigma[i] = impulse[i] * diagonal[i]
    return _finish(b, own, sigma, weight)


@kernel
def _compress(matrix):
    """(pointers, columns, values) of what is not zero in a dense matrix."""
    n, count = matrix.shape[0], 0
    for i in range(n):
        for j in range(n):
            count += matrix[i, j] != 0.0
    pointers, columns, values = (
        np.zeros(n + 1, np.int64),
        np.empty(count, np.int64),
        np.empty(count),
    )
    at = 0
    for i in range(n):
        for j in range(n):
            if matrix[i, j] != 0.0:
                columns[at], values[at] = j, matrix[i, j]
                at += 1
        pointers[i + 1] = at
    return pointers, columns, values


@kernel
def measure(
    arrays: Arrays, dt: float, whitened: Whitened, v_free: Array, delassus: Array
) -> Scales:
    """Scales of a problem with dense arrays; delassus: see `blocks_of`."""
    b, weight = blocks_of(arrays, dt, delassus), weights(whitened)
    if delassus.shape[0] > 0:
        diagonal = np.empty(delassus.shape[0])
        for i in range(delassus.shape[0]):
            diagonal[i] = delassus[i, i]
        return _measure_contact_space(b, weight, diagonal, *_compress(delassus))
    return measure_blocks(b, weight, v_free)


def measure_sparse_contact_space(arrays: Arrays, dt: float, delassus: Any) -> Scales:
    """Scales of a problem u = W f + q with a sparse W (n, n)."""
    nc, diagonal = len(arrays.bound), delassus.diagonal()
    dimension = len(diagonal) // max(nc, 1)
    weight = np.zeros((nc, ROWS))
    weight[:, :dimension] = diagonal.reshape(nc, dimension)
    pointers, columns = (part.astype(np.int64) for part in (delassus.indptr, delassus.indices))
    b = from_contact_space(arrays, dt, dimension)
    found: Scales = _measure_contact_space(
        b, weight, diagonal, pointers, columns, delassus.data.copy()
    )
    return found
