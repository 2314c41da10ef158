"""From MuJoCo's arrays to inverse inertias and accelerations, without returning to Python."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.articulated.assemble import DEPENDENT_ROW, Parts, assemble
from stiction.articulated.disassemble import disassemble
from stiction.articulated.links import (
    STATIC,
    Bodies,
    Joints,
    Links,
    build_joints,
    gather_links,
    number_links,
    point_product,
    velocity_products,
)
from stiction.articulated.order import Order, order_of_assembly
from stiction.articulated.spatial import copy, shift_columns, shift_rows
from stiction.kernels.compile import kernel
from stiction.kernels.triples import cross, minus

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Loops(NamedTuple):
    """Pairs of bodies that are held together at a point of each."""

    body: Indices  # (loops, 2)
    point: Array  # (loops, 2, 3) world [m]
    free: Indices  # (loops,) 3 where rotations are free, otherwise 0


@kernel
def _edges(link: Indices, parent: Indices, loops: Loops) -> tuple[Indices, Indices]:
    """(edges, 2) links at the ends of joints and loops, and for each loop kept its index,
    twice, plus one where its ends were exchanged. Left out are loops from a link to itself."""
    n, count = parent.shape[0], loops.body.shape[0]
    ends, kept = np.empty((n + count, 2), np.int64), np.empty(count, np.int64)
    for i in range(n):
        ends[i, 0], ends[i, 1] = parent[i], i
    edges = n
    for i in range(count):
        a, b = link[loops.body[i, 0]], link[loops.body[i, 1]]
        if a != b:
            swap = b == STATIC
            ends[edges, 0], ends[edges, 1] = (b, a) if swap else (a, b)
            kept[edges - n] = 2 * i + swap
            edges += 1
    return ends[:edges], kept[: edges - n]


@kernel
def _add_loops(
    bodies: Bodies, links: Links, ends: Indices, loops: Loops, kept: Indices, joints: Joints
) -> Array:
    """Fills the rows of the loops; returns `velocity_products`."""
    products = velocity_products(bodies)
    n, motion = links.body.shape[0], np.empty(6)
    for i in range(kept.shape[0]):
        e, loop = n + i, kept[i] // 2
        joints.free[e] = loops.free[loop]
        joints.locked[e] = 1 if loops.free[loop] == 0 else 0
        for side in range(2):
            here = (side + kept[i]) % 2
            if ends[e, side] != STATIC:
                point = loops.point[loop, here]
                sign = 1.0 if side == 1 else -1.0
                point_product(bodies, products, loops.body[loop, here], point, motion)
                for k in range(3):
                    offset = point[k] - links.center[ends[e, side], k]
                    joints.arm[e, side, k] = offset / links.length
                    joints.gap[e, k] += sign * motion[k] * links.length
                    joints.gap[e, 3 + k] += sign * motion[3 + k]
    return products


@kernel
def _wrenches_on_links(
    bodies: Bodies, link: Indices, links: Links, handles: Indices, wrenches: Array
) -> Array:
    """(n, 6) sums of the bodies' wrenches (k, 6), at the links' centres."""
    total = np.zeros((links.body.shape[0], 6))
    for i in range(handles.shape[0]):
        a = link[handles[i]]
        if a != STATIC:
            moment = cross(minus(bodies.xipos[handles[i]], links.center[a]), wrenches[i, 3:])
            for k in range(3):
                total[a, k] += (wrenches[i, k] + moment[k]) / links.length
                total[a, 3 + k] += wrenches[i, 3 + k]
    return total


@kernel
def _read_bias(
    bodies: Bodies, products: Array, body: int, motion: Array, arm: Array, length: float, out: Array
) -> None:
    """out (6,) := acceleration of `body`, whose link's bias is `motion`, at its own centre."""
    point_product(bodies, products, body, bodies.xipos[body], out)
    shift = cross(motion, arm)
    for c in range(3):
        out[c] += motion[c] / length
        out[3 + c] += motion[3 + c] + shift[c]


@kernel
def _read_inertia(
    bodies: Bodies,
    link: Indices,
    links: Links,
    order: Order,
    parts: Parts,
    products: Array,
    handles: Indices,
    inertia: Array,
    bias: Array,
) -> None:
    """Fills inertia (6k, 6k) and bias (6k,), which are zero, at the bodies' centres, in SI."""
    length = links.length
    k = handles.shape[0]
    arm, half, unit = np.empty((k, 3)), np.empty((6, 6)), np.ones(6)
    for c in range(3):
        unit[c] = 1.0 / length
    for i in range(k):
        a = link[handles[i]]
        if a == STATIC:
            continue
        part, h = order.place[a]
        width, start = order.first[part + 1] - order.first[part], order.square[part]
        for c in range(3):
            arm[i, c] = (bodies.xipos[handles[i], c] - links.center[a, c]) / length
        motion = parts.bias[order.first[part] + h]
        own = bias[6 * i : 6 * i + 6]
        _read_bias(bodies, products, handles[i], motion, arm[i], length, own)
        for j in range(i + 1):
            b = link[handles[j]]
            if b == STATIC or order.place[b, 0] != part:
                continue
            copy(parts.block[start + h * width + order.place[b, 1]], half)
            shift_rows(half, arm[j], 1.0)
            shift_columns(half, arm[i], 1.0)
            for p in range(6):
                for q in range(6):
                    value = half[p, q] * unit[p] * unit[q]
                    inertia[6 * i + p, 6 * j + q] = inertia[6 * j + q, 6 * i + p] = value


@kernel
def articulate(
    bodies: Bodies, loops: Loops, handles: Indices, wrenches: Array, forward: int
) -> tuple[Array, Array, Array, int]:
    """For wrenches (k, 6) on the bodies `handles` (k,): if `forward` is 1, joint accelerations
    (nv,); if it is 0, the bodies' inverse inertia (6k, 6k) and bias (6k,), which then has what
    these wrenches do as well. What is not asked for is empty. Last comes a body whose joint axes
    depend on each other, or -1.

    One kernel for both, since each that stands on top of all others takes seconds to compile.
    """
    link, parent = number_links(bodies.parentid, bodies.weldid, bodies.dofnum)
    ends, kept = _edges(link, parent, loops)
    n, k = parent.shape[0], handles.shape[0]
    wanted = np.zeros(n, np.int64)
    for body in handles:
        if link[body] != STATIC and forward == 0:
            wanted[link[body]] = 1
    links = gather_links(bodies, link, n)
    joints, singular = build_joints(bodies, links, parent, kept.shape[0])
    products = _add_loops(bodies, links, ends, loops, kept, joints)
    order = order_of_assembly(ends, joints.locked, wanted, forward)
    total = _wrenches_on_links(bodies, link, links, handles, wrenches)
    least = DEPENDENT_ROW if kept.shape[0] > 0 else 0.0
    parts = assemble(links, joints, ends, order, total, least)
    if singular >= 0:
        singular = links.body[singular]
    if forward == 1:
        qacc = disassemble(joints, order, parts, n, bodies)
        return np.empty((0, 0)), np.empty(0), qacc, singular
    inertia, bias = np.zeros((6 * k, 6 * k)), np.zeros(6 * k)
    _read_inertia(bodies, link, links, order, parts, products, handles, inertia, bias)
    return inertia, bias, np.empty(0), singular
