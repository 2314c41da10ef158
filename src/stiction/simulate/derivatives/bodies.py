"""Derivatives of the inverse dynamics of trees of bodies, by positions and by velocities.

With S_j the motion that degree of freedom j gives to all that it moves, v and a the velocity and
the acceleration of a body (gravity is an upward acceleration of the world), I its inertia, x the
cross product of motions and x* that of forces, the force of joint j is

    tau_j = S_j . F_j,    F_j = sum of  I a + v x* I v  over the bodies that j moves

Moving k carries all that it moves along: S_j becomes S_j + S_k x S_j where k comes before j. What
is not carried along are the velocity v_k and the acceleration a_k of what k is fixed to:

    p_k = v_k x S_k,    q_k = a_k x S_k + v_k x p_k,    c_k = (v_k + v_k') x S_k
    B y = I (y x v) + y x* I v + v x* I y
        = (tr(J) a x w - 2 J a x w + 2 h x (a x u), 2 a x f)

    dtau_j / dq_k = S_j . (I_j q_k + B_j p_k)                  where k comes before j
                    S_j . (S_k x* F_k + I_k q_k + B_k p_k)     where it does not, and j moves k
    dtau_j / dv_k = S_j . (I q_k' + B S_k), q_k' = c_k         I and B of the farther one

with I, B and F summed over all that is moved, v_k' the velocity after k, and what contacts with the
world add beside (`loads.py`). Of B y only the turn a
of y matters, by Jacobi's identity: v = (w, u), I = (J, h, m) with the inertia J of turns and the
first moment h, and f the linear momentum. A ball joint's three turns, and a free joint's, come
before one another, and v_k is that before all three.

Garofalo, Ott & Albu-Schaeffer (2013); Carpentier & Mansard (2018); the form is that of Singh,
Russell & Wensing (2022). Motions and forces are MuJoCo's, six numbers, the turn first, about the
centre of mass of their tree, which is taken as a point fixed in the world.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge.layout import offset, pointer, table
from stiction.contact.problem.arrays import Array
from stiction.kernels import six
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.packing import packed
from stiction.simulate.derivatives.loads import Load, describe_load
from stiction.simulate.derivatives.motions import (
    cross_force,
    cross_motion,
    six_dot,
    times_inertia,
)

Indices = NDArray[np.int64]

_CDOF, _CINERT = offset("mjData", "cdof"), offset("mjData", "cinert")

BALL, FREE = int(mujoco.mjtJoint.mjJNT_BALL), int(mujoco.mjtJoint.mjJNT_FREE)


@packed
class Tree(NamedTuple):
    """How the degrees of freedom of a model stand; nv of them, nbody bodies."""

    parent: Indices  # (nbody,)
    root: Indices  # (nbody,)
    begin: Indices  # (nbody,) first degree of freedom of each body
    dofs: Indices  # (nbody,) how many
    last: Indices  # (nbody,) the last one that moves each body, or -1
    before: Indices  # (nv,) the one before each, or -1
    body: Indices  # (nv,)
    lead: Indices  # (nv,) the first of the turns of its ball or free joint; itself elsewhere
    tail: Indices  # (nv,) the last of them
    base: Array  # (6,) acceleration of the world: gravity, upside down


def read_tree(model: mujoco.MjModel) -> Tree:
    """Of a model."""
    last = np.full(model.nbody, -1)
    for i in range(1, model.nbody):
        n = model.body_dofnum[i]
        last[i] = model.body_dofadr[i] + n - 1 if n else last[model.body_parentid[i]]
    lead, tail = np.arange(model.nv), np.arange(model.nv)
    for kind, dof in zip(model.jnt_type, model.jnt_dofadr, strict=True):
        if kind in (BALL, FREE):
            first = int(dof) + (3 if kind == FREE else 0)
            lead[first : first + 3], tail[first : first + 3] = first, first + 2
    base = np.zeros(6)
    if not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY:
        base[3:] = -model.opt.gravity
    whole: Any = (
        model.body_parentid, model.body_rootid, model.body_dofadr, model.body_dofnum, last,
        model.dof_parentid, model.dof_bodyid, lead, tail,
    )  # fmt: skip
    parts: list[Any] = [*(np.asarray(part).astype(np.int64) for part in whole), base]
    return Tree(*parts)


@packed
class Motion(NamedTuple):
    """How bodies move at given speeds and accelerations, and what that takes."""

    velocity: Array  # (nbody, 6)
    start: Array  # (nv, 6) velocity of what each degree of freedom is fixed to
    end: Array  # (nv, 6) velocity after it, and after the other turns of its joint
    acceleration: Array  # (nbody, 6)
    push: Array  # (nv, 6) acceleration of what each degree of freedom is fixed to
    force: Array  # (nbody, 6) this and the next two: of a body and all that it carries
    inertia: Array  # (nbody, 10) as MuJoCo's cinert
    bias: Array  # (nbody, 4, 3) B: the turns it makes of turns, a matrix, and 2 f
    six: Array  # (nv, 8, 6) vectors of each degree of freedom


def allocate_motion(nbody: int, nv: int) -> Motion:
    """Room for a model."""
    return Motion(
        np.zeros((nbody, 6)), np.zeros((nv, 6)), np.zeros((nv, 6)), np.zeros((nbody, 6)),
        np.zeros((nv, 6)), np.zeros((nbody, 6)), np.zeros((nbody, 10)), np.zeros((nbody, 4, 3)),
        np.zeros((nv, 8, 6)),
    )  # fmt: skip


@lean
def spread_velocity(d, tree: Tree, v, motion: Motion):
    """Fills velocities of the bodies, and of what joints are fixed to, at joint speeds v (nv,)."""
    nv = v.shape[0]
    cdof, velocity = table(pointer(d + _CDOF), nv, 6), motion.velocity
    for c in range(6):
        velocity[0, c] = 0.0
    for i in range(1, tree.parent.shape[0]):
        six.put(velocity, 6 * i, velocity, 6 * tree.parent[i])
        for j in range(tree.begin[i], tree.begin[i] + tree.dofs[i]):
            if tree.lead[j] == j:
                for k in range(j, tree.tail[j] + 1):
                    six.put(motion.start, 6 * k, velocity, 6 * i)
            six.take_scaled(velocity, 6 * i, -v[j], cdof, 6 * j)
            if tree.tail[j] == j:
                for k in range(tree.lead[j], j + 1):
                    six.put(motion.end, 6 * k, velocity, 6 * i)


@lean
def spread_acceleration(d, tree: Tree, v, a, motion: Motion):
    """The same of accelerations, at speeds v and accelerations a (nv,) of the joints, and p, the
    first of motion.six."""
    nv = v.shape[0]
    cdof, acceleration = table(pointer(d + _CDOF), nv, 6), motion.acceleration
    six.put(acceleration, 0, tree.base, 0)
    for i in range(1, tree.parent.shape[0]):
        six.put(acceleration, 6 * i, acceleration, 6 * tree.parent[i])
        for j in range(tree.begin[i], tree.begin[i] + tree.dofs[i]):
            own = motion.six[j]
            if tree.lead[j] == j:
                for k in range(j, tree.tail[j] + 1):
                    six.put(motion.push, 6 * k, acceleration, 6 * i)
            for c in range(6):
                own[0, c] = 0.0
            cross_motion(motion.start, j, cdof, j, 1.0, own, 0)
            six.take_scaled(acceleration, 6 * i, -a[j], cdof, 6 * j)
            six.take_scaled(acceleration, 6 * i, -v[j], own, 0)


@lean_leaf
def _put_bias(inertia, i, velocity, out):
    """out (4, 3) := B of body i."""
    xx, yy, zz = inertia[i, 0], inertia[i, 1], inertia[i, 2]
    xy, xz, yz = inertia[i, 3], inertia[i, 4], inertia[i, 5]
    h0, h1, h2, mass = inertia[i, 6], inertia[i, 7], inertia[i, 8], inertia[i, 9]
    w0, w1, w2 = velocity[i, 0], velocity[i, 1], velocity[i, 2]
    u0, u1, u2 = velocity[i, 3], velocity[i, 4], velocity[i, 5]
    # tr(J) - 2 J, then -w x of it; and 2 h x (a x u) = 2 ((h . u) a - u (h . a))
    a0, a1, a2 = yy + zz - xx, xx + zz - yy, xx + yy - zz
    b0, b1, b2 = -2.0 * xy, -2.0 * xz, -2.0 * yz
    along = 2.0 * (h0 * u0 + h1 * u1 + h2 * u2)
    out[0, 0] = w2 * b0 - w1 * b1 + along - 2.0 * u0 * h0
    out[0, 1] = w2 * a1 - w1 * b2 - 2.0 * u0 * h1
    out[0, 2] = w2 * b2 - w1 * a2 - 2.0 * u0 * h2
    out[1, 0] = w0 * b1 - w2 * a0 - 2.0 * u1 * h0
    out[1, 1] = w0 * b2 - w2 * b0 + along - 2.0 * u1 * h1
    out[1, 2] = w0 * a2 - w2 * b1 - 2.0 * u1 * h2
    out[2, 0] = w1 * a0 - w0 * b0 - 2.0 * u2 * h0
    out[2, 1] = w1 * b0 - w0 * a1 - 2.0 * u2 * h1
    out[2, 2] = w1 * b1 - w0 * b2 + along - 2.0 * u2 * h2
    out[3, 0] = 2.0 * (mass * u0 - h1 * w2 + h2 * w1)
    out[3, 1] = 2.0 * (mass * u1 - h2 * w0 + h0 * w2)
    out[3, 2] = 2.0 * (mass * u2 - h0 * w1 + h1 * w0)


@lean_leaf
def _add_bias(bias, x, j, out, k):
    """out[k] += B x[j]."""
    a, b, c = x[j, 0], x[j, 1], x[j, 2]
    f0, f1, f2 = bias[3, 0], bias[3, 1], bias[3, 2]
    out[k, 0] += bias[0, 0] * a + bias[0, 1] * b + bias[0, 2] * c
    out[k, 1] += bias[1, 0] * a + bias[1, 1] * b + bias[1, 2] * c
    out[k, 2] += bias[2, 0] * a + bias[2, 1] * b + bias[2, 2] * c
    out[k, 3] += b * f2 - c * f1
    out[k, 4] += c * f0 - a * f2
    out[k, 5] += a * f1 - b * f0


@lean_leaf
def _put_bias_transposed(bias, x, j, out, k):
    """out[k] := B' x[j], whose first three numbers are all that is not zero."""
    a, b, c, u, v, w = x[j, 0], x[j, 1], x[j, 2], x[j, 3], x[j, 4], x[j, 5]
    f0, f1, f2 = bias[3, 0], bias[3, 1], bias[3, 2]
    out[k, 0] = bias[0, 0] * a + bias[1, 0] * b + bias[2, 0] * c + f1 * w - f2 * v
    out[k, 1] = bias[0, 1] * a + bias[1, 1] * b + bias[2, 1] * c + f2 * u - f0 * w
    out[k, 2] = bias[0, 2] * a + bias[1, 2] * b + bias[2, 2] * c + f0 * v - f1 * u


@lean
def _carry(cinert, tree: Tree, motion: Motion):
    """Forces, inertias and B of bodies and all that they carry."""
    nbody = tree.parent.shape[0]
    force, inertia, bias = motion.force, motion.inertia, motion.bias
    velocity, momentum = motion.velocity, motion.six[0]
    for i in range(1, nbody):
        for c in range(10):
            inertia[i, c] = cinert[i, c]
        for c in range(6):
            force[i, c] = momentum[1, c] = 0.0
        times_inertia(inertia, i, motion.acceleration, i, force, i)
        _put_bias(inertia, i, velocity, bias[i])
        times_inertia(inertia, i, velocity, i, momentum, 1)
        cross_force(velocity, i, momentum, 1, force, i)
    for i in range(nbody - 1, 0, -1):
        p = tree.parent[i]
        if p > 0:
            for c in range(10):
                inertia[p, c] += inertia[i, c]
            for c in range(6):
                force[p, c] += force[i, c]
            ours, theirs = bias[p], bias[i]
            for r in range(4):
                for c in range(3):
                    ours[r, c] += theirs[r, c]


@lean
def _describe(cdof, tree: Tree, motion: Motion, load: Load):
    """motion.six := of each degree of freedom p (there already), q, S x* F + I q + B p, I S,
    B'S, c, I c + B S; and what contacts do, beside the third and as the eighth."""
    inertia = motion.inertia
    for k in range(tree.before.shape[0]):
        i, own = tree.body[k], motion.six[k]
        for c in range(6):
            own[1, c] = own[2, c] = own[3, c] = own[6, c] = 0.0
        cross_motion(motion.push, k, cdof, k, 1.0, own, 1)
        cross_motion(motion.start, k, own, 0, 1.0, own, 1)
        cross_force(cdof, k, motion.force, i, own, 2)
        times_inertia(inertia, i, own, 1, own, 2)
        _add_bias(motion.bias[i], own, 0, own, 2)
        times_inertia(inertia, i, cdof, k, own, 3)
        _put_bias_transposed(motion.bias[i], cdof, k, own, 4)
        six.put(own, 30, own, 0)
        cross_motion(motion.end, k, cdof, k, 1.0, own, 5)
        times_inertia(inertia, i, own, 5, own, 6)
        _add_bias(motion.bias[i], cdof, k, own, 6)
        if load.bears[i] == 1:
            describe_load(load, i, cdof, k, own)


@lean_leaf
def _turn_dot(a, i, b, j):
    """a[i] . b[j], of their turns alone."""
    return a[i, 0] * b[j, 0] + a[i, 1] * b[j, 1] + a[i, 2] * b[j, 2]


@lean_leaf
def _behind(ours, theirs):
    """dtau_j / dq_k where k comes before j, by what `_describe` has of j and of k."""
    return six_dot(ours, 3, theirs, 1) + _turn_dot(ours, 4, theirs, 0)


@lean
def _add_forces(cdof, tree: Tree, motion: Motion, load: Load, scale, by_place, by_speed):
    for j in range(tree.before.shape[0]):
        k, own, bears = j, motion.six[j], load.bears[tree.body[j]] == 1
        while k >= 0:
            theirs = motion.six[k]
            if j == k:
                by_place[k, j] += scale * six_dot(cdof, k, own, 2)
            else:
                by_place[j, k] += scale * _behind(own, theirs)
                if bears:
                    by_place[j, k] += scale * six_dot(own, 7, cdof, k)
                if tree.lead[j] == tree.lead[k]:  # turns of one joint
                    by_place[k, j] += scale * _behind(theirs, own)
                    if bears:
                        by_place[k, j] += scale * six_dot(theirs, 7, cdof, j)
                else:
                    by_place[k, j] += scale * six_dot(cdof, k, own, 2)
                by_speed[j, k] += scale * (six_dot(own, 3, theirs, 5) + _turn_dot(own, 4, cdof, k))
            by_speed[k, j] += scale * six_dot(cdof, k, own, 6)
            k = tree.before[k]


@lean
def differentiate_forces(d, tree: Tree, motion: Motion, load: Load, scale, by_place, by_speed):
    """by_place[j, k] += scale dtau_j / dq_k and by_speed[j, k] += scale dtau_j / dv_k, both (nv,
    nv). Velocities and accelerations have been spread. load: of contacts, over the scale."""
    nv, nbody = tree.before.shape[0], tree.parent.shape[0]
    cdof = table(pointer(d + _CDOF), nv, 6)
    cinert = table(pointer(d + _CINERT), nbody, 10)
    _carry(cinert, tree, motion)
    _describe(cdof, tree, motion, load)
    _add_forces(cdof, tree, motion, load, scale, by_place, by_speed)


@lean
def _carry_momentum(cinert, tree: Tree, motion: Motion):
    """motion.force := the momentum of bodies and all that they carry."""
    force = motion.force
    for i in range(1, tree.parent.shape[0]):
        for c in range(6):
            force[i, c] = 0.0
        times_inertia(cinert, i, motion.velocity, i, force, i)
    for i in range(tree.parent.shape[0] - 1, 0, -1):
        p = tree.parent[i]
        if p > 0:
            for c in range(6):
                force[p, c] += force[i, c]


@lean
def differentiate_momentum(d, tree: Tree, motion: Motion, known: Motion, load: Load, scale, out):
    """out[j, k] += scale times the change of the momentum of j with position k, at the velocities
    of `motion`: as `differentiate_forces` where nothing moves, these as accelerations. known: a
    motion whose inertias are summed, and I S known."""
    nv, nbody = tree.before.shape[0], tree.parent.shape[0]
    cdof = table(pointer(d + _CDOF), nv, 6)
    cinert = table(pointer(d + _CINERT), nbody, 10)
    _carry_momentum(cinert, tree, motion)
    for j in range(nv):
        i, own, heavy = tree.body[j], motion.six[j], known.six[j]
        bears = load.bears[i] == 1
        for c in range(6):
            own[1, c] = own[2, c] = 0.0
        cross_motion(motion.start, j, cdof, j, 1.0, own, 1)
        cross_force(cdof, j, motion.force, i, own, 2)
        times_inertia(known.inertia, i, own, 1, own, 2)
        if bears:
            describe_load(load, i, cdof, j, own)
        out[j, j] += scale * six_dot(cdof, j, own, 2)
        k = tree.before[j]
        while k >= 0:
            theirs = motion.six[k]
            out[j, k] += scale * six_dot(heavy, 3, theirs, 1)
            if bears:
                out[j, k] += scale * six_dot(own, 7, cdof, k)
            if tree.lead[j] == tree.lead[k]:
                out[k, j] += scale * six_dot(known.six[k], 3, own, 1)
                if bears:
                    out[k, j] += scale * six_dot(theirs, 7, cdof, j)
            else:
                out[k, j] += scale * six_dot(cdof, k, own, 2)
            k = tree.before[k]
