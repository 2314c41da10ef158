"""Links, their inertia and their joints, from MuJoCo's arrays.

A link is a body with degrees of freedom and all that is welded to it. Vectors are spatial, angular
part first, at the link's centre of mass in world axes. Motions are (l w, v), wrenches (t / l, f),
with a length l of the order of the links' radii of gyration: then both halves are of one size, and
a joint's axes can be completed to an orthonormal basis without mixing large and small.

The joint of link b, seen at its centre of mass, lets it move against its parent by S a, for joint
accelerations a (d,). The wrench f that it transmits obeys S'f = tau - A a: A is the armature, tau
the joint force. Where A is 0 the force along S is known; where it is not, the joint is held there,
but gives way by a = A^-1 (tau - S'f). S = Q R, with columns without armature first, brings this to

    f~ = Q'f     f~[:free] = R[:free, :free]^-T tau[:free]     and for the other rows c of Q'
    Q_c' (acceleration of b against its parent) + K f~_c = g      K = R_c A^-1 R_c'

which holds for loops as well: there K and g are zero, and the first rows of Q' are the rotations,
which a `connect` leaves free.

Nothing here depends on velocities but `velocity_products`: MuJoCo has put their forces into
qfrc_smooth, and what they add to accelerations is known beforehand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import kernel, leaf
from stiction.kernels.triples import cross, minus

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Ints = NDArray[np.int32]

STATIC = -1

DEPENDENT_AXIS = 1e-12
"""A joint axis this near to the span of those before it, relative to its length, makes the mass
matrix singular, if it has no armature: the square, 1e-24, is what its inverse would rest on."""


class Bodies(NamedTuple):
    """MuJoCo's arrays, by MuJoCo's names: the model's, then the data's."""

    parentid: Ints  # (nbody,)
    rootid: Ints  # (nbody,)
    weldid: Ints  # (nbody,)
    dofadr: Ints  # (nbody,)
    dofnum: Ints  # (nbody,)
    mass: Array  # (nbody,)
    inertia: Array  # (nbody, 3)
    armature: Array  # (nv,)
    xipos: Array  # (nbody, 3)
    ximat: Array  # (nbody, 9)
    subtree_com: Array  # (nbody, 3)
    cdof: Array  # (nv, 6)
    cdof_dot: Array  # (nv, 6)
    cvel: Array  # (nbody, 6)
    qvel: Array  # (nv,)
    qfrc_smooth: Array  # (nv,)


class Links(NamedTuple):
    """The n links of a model."""

    body: Indices  # (n,) the body whose joints are the link's
    center: Array  # (n, 3) centre of mass [m]
    mobility: Array  # (n, 6, 6) inverse inertia, in the units above
    length: float  # l [m]


class Joints(NamedTuple):
    """Edges between links: a joint for each link, then loops."""

    arm: Array  # (edges, 2, 3) from the centres of both links to where the edge holds them, / l
    basis: Array  # (edges, 6, 6) Q
    free: Indices  # (edges,) rows of Q' in which the force is known
    load: Array  # (edges, 6) that force, as a wrench
    give: Array  # (edges, 6, 6) K, in rows of Q'
    drift: Array  # (edges, 6) g, in rows of Q'
    gap: Array  # (edges, 6) what velocities add to the acceleration of b against a
    triangle: Array  # (edges, 6, 6) R
    dof: Indices  # (edges, 6) degrees of freedom by column of R, -1 beyond
    locked: Indices  # (edges,) 1 where the edge leaves no rotation free, otherwise 0


@kernel
def number_links(parentid: Ints, weldid: Ints, dofnum: Ints) -> tuple[Indices, Indices]:
    """(nbody,) link of each body, or STATIC; (n,) link that each link's joint leads from."""
    nbody = weldid.shape[0]
    link = np.full(nbody, STATIC)
    parent = np.empty(nbody, np.int64)
    n = 0
    for body in range(1, nbody):
        if weldid[body] != body:
            link[body] = link[weldid[body]]
        elif dofnum[body] > 0:
            link[body] = n
            parent[n] = link[parentid[body]]
            n += 1
    return link, parent[:n]


@kernel
def gather_links(bodies: Bodies, link: Indices, n: int) -> Links:
    """Centres of mass and inverse inertias of the links."""
    owner, mass = np.empty(n, np.int64), np.zeros(n)
    center, inertia = np.zeros((n, 3)), np.zeros((n, 3, 3))
    nbody = link.shape[0]
    for body in range(nbody):
        i = link[body]
        if i != STATIC:
            if bodies.weldid[body] == body:
                owner[i] = body
            mass[i] += bodies.mass[body]
            for k in range(3):
                center[i, k] += bodies.mass[body] * bodies.xipos[body, k]
    for i in range(n):
        for k in range(3):
            center[i, k] /= mass[i]
    for body in range(nbody):
        i = link[body]
        if i != STATIC:
            axes, r = bodies.ximat[body], minus(bodies.xipos[body], center[i])
            square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
            for j in range(3):
                inertia[i, j, j] += bodies.mass[body] * square
                for k in range(3):
                    total = -bodies.mass[body] * r[j] * r[k]
                    for a in range(3):
                        total += bodies.inertia[body, a] * axes[3 * j + a] * axes[3 * k + a]
                    inertia[i, j, k] += total
    size = 0.0
    for i in range(n):
        trace = inertia[i, 0, 0] + inertia[i, 1, 1] + inertia[i, 2, 2]
        size += np.log(trace / (3.0 * mass[i]))
    length = np.exp(0.5 * size / max(n, 1))
    mobility = np.zeros((n, 6, 6))
    for i in range(n):
        _invert(inertia[i], length * length, mobility[i])
        for k in range(3, 6):
            mobility[i, k, k] = 1.0 / mass[i]
    return Links(owner, center, mobility, length)


@kernel
def _invert(matrix: Array, scale: float, inverse: Array) -> None:
    """The leading block of `inverse` := scale times that of the symmetric `matrix` (3, 3).

    By elimination: the adjugate would lose half of the digits to a thin rod's inertia.
    """
    d0 = matrix[0, 0]
    l10, l20 = matrix[1, 0] / d0, matrix[2, 0] / d0
    d1 = matrix[1, 1] - l10 * matrix[1, 0]
    l21 = (matrix[2, 1] - l20 * matrix[1, 0]) / d1
    d2 = matrix[2, 2] - l20 * matrix[2, 0] - l21 * l21 * d1
    # Columns of L^-1, whose last row is (l20, l21, 1) with these signs.
    u10, u21 = -l10, -l21
    u20 = l10 * l21 - l20
    inverse[0, 0] = scale * (1.0 / d0 + u10 * u10 / d1 + u20 * u20 / d2)
    inverse[1, 0] = inverse[0, 1] = scale * (u10 / d1 + u20 * u21 / d2)
    inverse[2, 0] = inverse[0, 2] = scale * u20 / d2
    inverse[1, 1] = scale * (1.0 / d1 + u21 * u21 / d2)
    inverse[2, 1] = inverse[1, 2] = scale * u21 / d2
    inverse[2, 2] = scale / d2


@kernel
def build_joints(bodies: Bodies, links: Links, parent: Indices, loops: int) -> tuple[Joints, int]:
    """The links' joints, with room for `loops` more edges; and -1, or the link whose joint has
    axes that depend on each other."""
    n = parent.shape[0]
    edges = n + loops
    free, dof = np.zeros(edges, np.int64), np.full((edges, 6), -1)
    arm, load, drift = np.zeros((edges, 2, 3)), np.zeros((edges, 6)), np.zeros((edges, 6))
    gap = np.zeros((edges, 6))
    basis, give = np.zeros((edges, 6, 6)), np.zeros((edges, 6, 6))
    triangle = np.zeros((edges, 6, 6))
    locked = np.ones(edges, np.int64)
    joints = Joints(arm, basis, free, load, give, drift, gap, triangle, dof, locked)
    singular = -1
    for e in range(edges):
        for k in range(6):
            basis[e, k, k] = 1.0
        if e < n:
            if parent[e] != STATIC:
                for k in range(3):
                    arm[e, 0, k] = (links.center[e, k] - links.center[parent[e], k]) / links.length
            if _joint(bodies, links, e, joints) and singular < 0:
                singular = e
    return joints, singular


@kernel
def _joint(bodies: Bodies, links: Links, e: int, joints: Joints) -> bool:
    """Fills the rows of link e's joint; returns whether its axes are dependent."""
    body = links.body[e]
    R, dof = joints.triangle[e], joints.dof[e]
    offset = minus(links.center[e], bodies.subtree_com[bodies.rootid[body]])
    d = 0
    for armored in range(2):
        for j in range(bodies.dofadr[body], bodies.dofadr[body] + bodies.dofnum[body]):
            if (bodies.armature[j] > 0.0) == (armored == 1):
                axis = bodies.cdof[j]
                shift = cross(axis, offset)
                for k in range(3):
                    R[k, d] = links.length * axis[k]
                    R[3 + k, d] = axis[3 + k] + shift[k]
                    if axis[k] != 0.0:
                        joints.locked[e] = 0
                dof[d] = j
                d += 1
        if armored == 0:
            joints.free[e] = d
    free = joints.free[e]
    singular = _orthogonalize(R, joints.basis[e], d, free)
    force = np.zeros(6)  # f~ in the rows where it is known
    for i in range(free):
        total = bodies.qfrc_smooth[dof[i]]
        for j in range(i):
            total -= R[j, i] * force[j]
        force[i] = total / R[i, i]
        for k in range(6):
            joints.load[e, k] += joints.basis[e, k, i] * force[i]
    for c in range(free, d):
        total = bodies.qfrc_smooth[dof[c]]
        for j in range(free):
            total -= R[j, c] * force[j]
        for i in range(free, c + 1):
            share = R[i, c] / bodies.armature[dof[c]]
            joints.drift[e, i] += share * total
            for j in range(free, c + 1):
                joints.give[e, i, j] += share * R[j, c]
    return singular


@kernel
def _orthogonalize(R: Array, Q: Array, d: int, free: int) -> bool:
    """R (6, 6), of which d columns count, := its triangle, and Q := the product of reflections.

    Q must be the identity. Returns whether one of the first `free` columns is dependent.
    """
    singular = False
    v = np.empty(6)
    for j in range(d):
        above, below = 0.0, 0.0
        for i in range(6):
            v[i] = R[i, j]
            if i < j:
                above += v[i] * v[i]
            else:
                below += v[i] * v[i]
        if j < free and below <= DEPENDENT_AXIS * DEPENDENT_AXIS * above:
            singular = True
        if below == 0.0 or j == 5:
            continue
        v[j] += np.copysign(np.sqrt(below), v[j])
        square = 0.0
        for i in range(j, 6):
            square += v[i] * v[i]
        for k in range(d):
            _reflect_column(R, k, v, j, square)
        for i in range(j + 1, 6):
            R[i, j] = 0.0
        for k in range(6):
            total = 0.0
            for i in range(j, 6):
                total += Q[k, i] * v[i]
            total *= 2.0 / square
            for i in range(j, 6):
                Q[k, i] -= total * v[i]
    return singular


@leaf
def _reflect_column(R: Array, k: int, v: Array, j: int, square: float) -> None:
    """Column k of R, from row j on, reflected along v of squared length `square`."""
    total = 0.0
    for i in range(j, 6):
        total += R[i, k] * v[i]
    total *= 2.0 / square
    for i in range(j, 6):
        R[i, k] -= total * v[i]


@kernel
def velocity_products(bodies: Bodies) -> Array:
    """(nbody, 6) acceleration of each body without joint accelerations: spatial, at the point
    and in the axes that MuJoCo's cvel has [rad/s^2, m/s^2]."""
    nbody = bodies.parentid.shape[0]
    out = np.zeros((nbody, 6))
    for body in range(1, nbody):
        for k in range(6):
            out[body, k] = out[bodies.parentid[body], k]
        for j in range(bodies.dofadr[body], bodies.dofadr[body] + bodies.dofnum[body]):
            for k in range(6):
                out[body, k] += bodies.cdof_dot[j, k] * bodies.qvel[j]
    return out


@kernel
def point_product(bodies: Bodies, products: Array, body: int, point: Array, out: Array) -> None:
    """out (6,) := angular acceleration of `body` and acceleration of its point [rad/s^2, m/s^2],
    without joint accelerations: `velocity_products` shifted, and w x v of the moving point."""
    offset = minus(point, bodies.subtree_com[bodies.rootid[body]])
    omega, moving, product = bodies.cvel[body, :3], bodies.cvel[body, 3:], products[body]
    shift, turn = cross(product, offset), cross(omega, offset)
    speed = moving[0] + turn[0], moving[1] + turn[1], moving[2] + turn[2]
    turn = cross(omega, speed)
    for k in range(3):
        out[k] = product[k]
        out[3 + k] = product[3 + k] + shift[k] + turn[k]
