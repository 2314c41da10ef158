"""A `ContactProblem` made of blocks, and its solution put back into them.

Contacts, joints and box rows come in the order of their blocks; rows 3 to 5 of a contact become
box rows with that contact as their parent.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind
from stiction.contact.problem.problem import ContactProblem
from stiction.kernels.skyline import lay_out

Indices = NDArray[np.int64]


class Impulses(Protocol):
    """Impulses of a problem by kind; shapes as in `ContactSolution`."""

    @property
    def normal(self) -> Array:
        """(nc,)."""

    @property
    def tangent(self) -> Array:
        """(nc, 2)."""

    @property
    def joint(self) -> Array:
        """(nj,)."""

    @property
    def box(self) -> Array:
        """(nb,)."""


def to_problem(b: Blocks, count: int, dt: float) -> ContactProblem:
    """The problem of the first `count` blocks, with dense rows; soft ones are folded into mass and
    force. Where surfaces move there is one degree of freedom more, the last: all belts run at its
    speed, which a joint keeps at 1."""
    posed = {
        "mass": dense_mass(b, count),
        "velocity": b.velocity,
        "force": folded_push(b, count) / dt,
        **dense_rows(b, count, dt),
    }
    surface = b.data[:count, Datum.SURFACE : Datum.SURFACE_SPIN + 1]
    return ContactProblem(dt=dt, **(_with_belts(b, surface, posed) if surface.any() else posed))


def _with_belts(b: Blocks, surface: Array, posed: dict[str, Any]) -> dict[str, Any]:
    """The arrays with the degree of freedom that moves surfaces; surface (count, 3)."""
    head, nv = b.head[: len(surface)], len(b.first)

    def widen(rows: Array) -> Array:
        return np.concatenate([rows, np.zeros((*rows.shape[:-1], 1))], axis=-1)

    posed = {
        name: widen(array) if name in ("normal", "tangent", "joint", "box") else array
        for name, array in posed.items()
    }
    posed["tangent"][:, :, nv] = surface[head[:, Head.KIND] == Kind.CONTACT, :2]
    for row, (i, r) in zip(posed["box"], box_rows(head), strict=True):
        row[nv] = surface[i, 2] if r == 3 else 0.0
    mass = np.zeros((nv + 1, nv + 1))
    mass[:nv, :nv], mass[nv, nv] = posed["mass"], posed["mass"].diagonal().max()
    drive = np.zeros((1, nv + 1))
    drive[0, nv] = 1.0
    return {
        **posed,
        "mass": mass,
        "velocity": np.append(posed["velocity"], 1.0),
        "force": np.append(posed["force"], 0.0),
        "joint": np.vstack([posed["joint"], drive]),
        "joint_target": np.append(posed["joint_target"], 1.0),
    }


def ranges(begin: Indices, length: Indices) -> Indices:
    """The numbers from each `begin` on, as many as its `length`, one range after another."""
    return np.repeat(begin - _begins(length), length) + np.arange(length.sum())


def _begins(length: Indices) -> Indices:
    """Where ranges of that length begin, one after another."""
    return np.cumsum(length) - length


def cut_out(b: Blocks, members: Indices, dofs: Indices) -> Blocks:
    """The blocks `members` as a problem of their own in the degrees of freedom `dofs` (ascending),
    which nothing couples to others."""
    head = b.head[members]
    wide, entries = head[:, Head.WIDTH], head[:, Head.ROWS] * head[:, Head.WIDTH]
    column = np.searchsorted(dofs, b.column[ranges(head[:, Head.COLUMN], wide)])
    value = b.value[ranges(head[:, Head.VALUE], entries)]
    head[:, Head.COLUMN], head[:, Head.VALUE] = _begins(wide), _begins(entries)
    first = np.searchsorted(dofs, b.first[dofs]).astype(np.int64)
    row = np.zeros(len(dofs), np.int64)
    mass = np.zeros(lay_out(first, row))
    kept = np.arange(len(dofs)) - first + 1
    mass[ranges(row + first, kept)] = b.mass[ranges(b.row[dofs] + b.first[dofs], kept)]
    return Blocks(
        head,
        b.data[members],
        column.astype(np.int64),
        value,
        mass,
        row,
        first,
        b.velocity[dofs],
        b.push[dofs],
    )


def push_of(b: Blocks, members: Indices, f: Array) -> Array:
    """(nv,) change of momentum by the impulses f (cap, ROWS) of the blocks `members`."""
    _, rows, width, column, value, _ = b.head[members].T
    impulse, wide = f.ravel()[ranges(ROWS * members, rows)], np.repeat(width, rows)
    pushed = np.repeat(impulse, wide) * b.value[ranges(value, rows * width)]
    change = np.zeros(len(b.push))
    np.add.at(change, b.column[ranges(np.repeat(column, rows), wide)], pushed)
    return change


def _soft_rows(b: Blocks, count: int) -> tuple[Array, Array, Array]:
    """Rows (n, nv) that are soft, their impulse per speed and their target (n,)."""
    soft = np.flatnonzero(b.head[:count, Head.KIND] == Kind.SOFT)
    rows = np.zeros((len(soft), len(b.first)))
    for k, i in enumerate(soft):
        _, _, width, column, value, _ = b.head[i]
        rows[k, b.column[column : column + width]] = b.value[value : value + width]
    return rows, b.data[soft, Datum.DRAG], b.data[soft, Datum.BOUND]


def first_rows(b: Blocks, count: int) -> Array:
    """(count, nv) the first row of each block."""
    return rows_by_block(b, count)[:, 0]


def folded_push(b: Blocks, count: int) -> Array:
    """(nv,) impulse of the applied forces, and of the soft rows at the velocity before."""
    rows, drag, target = _soft_rows(b, count)
    return b.push + rows.T @ (drag * (target - rows @ b.velocity))


def dense_mass(b: Blocks, count: int) -> Array:
    """(nv, nv) both triangles, with the soft rows of the first `count` blocks."""
    nv = len(b.first)
    mass = np.zeros((nv, nv))
    for j, (row, first) in enumerate(zip(b.row, b.first, strict=True)):
        mass[j, first : j + 1] = b.mass[row + first : row + j + 1]
    rows, drag, _ = _soft_rows(b, count)
    return mass + np.tril(mass, -1).T + (rows.T * drag) @ rows


def dense_rows(b: Blocks, count: int, dt: float) -> dict[str, Any]:
    """Rows and what belongs to them, by the names that `ContactProblem` has for them."""
    head, data = b.head[:count], b.data[:count]
    rows = rows_by_block(b, count)
    contacts = np.flatnonzero(head[:, Head.KIND] == Kind.CONTACT)
    joints = np.flatnonzero(head[:, Head.KIND] == Kind.HOLD)
    boxes = box_rows(head)
    limits, parents, ratios = [], [], []
    number = {int(i): k for k, i in enumerate(contacts)}
    for i, r in boxes:
        limits.append(data[i, Datum.LIMIT] if r == 0 else 0.0)
        parents.append(-1 if r == 0 else number[i])
        ratios.append(0.0 if r == 0 else data[i, Datum.SPIN if r == 3 else Datum.ROLL])
    tied = {}
    if any(parent >= 0 for parent in parents):
        tied = {"box_contact": np.array(parents), "box_friction": np.array(ratios)}
    return {
        "normal": rows[contacts, 0],
        "tangent": rows[contacts, 1:3],
        "friction": data[contacts, Datum.SLIDE],
        "viscosity": data[contacts, Datum.DRAG] / dt,
        "bound": data[contacts, Datum.BOUND],
        "joint": rows[joints, 0],
        "joint_target": data[joints, Datum.BOUND],
        "box": np.array([rows[i, r] for i, r in boxes]).reshape(len(boxes), len(b.first)),
        "box_limit": np.array(limits),
        **tied,
    }


def box_rows(head: np.ndarray) -> list[tuple[int, int]]:
    """(block, row) of each box row of the problem, in order."""
    kind, rows = head[:, Head.KIND], head[:, Head.ROWS]
    boxes = kind == Kind.BOX
    found: list[tuple[int, int]] = []
    for i in np.flatnonzero(boxes | ((kind == Kind.CONTACT) & (rows > 3))):
        found.extend((int(i), r) for r in ([0] if boxes[i] else range(3, int(rows[i]))))
    return found


def put_solution(b: Blocks, count: int, solution: Impulses, f: Array) -> None:
    """Writes the impulses of a solution of `to_problem` into f (count, ROWS)."""
    head = b.head[:count]
    f[:count] = 0.0
    contacts = head[:, Head.KIND] == Kind.CONTACT
    f[:count][contacts, 0] = solution.normal
    f[:count][contacts, 1:3] = solution.tangent
    held = np.flatnonzero(head[:, Head.KIND] == Kind.HOLD)
    f[held, 0] = solution.joint[: len(held)]  # one more where surfaces move
    for (i, r), impulse in zip(box_rows(head), solution.box, strict=True):
        f[i, r] = impulse


def rows_by_block(b: Blocks, count: int) -> Array:
    """(count, ROWS, nv) the rows of each block, and zero."""
    rows = np.zeros((count, ROWS, len(b.first)))
    for i, (_, n, width, column, value, _) in enumerate(b.head[:count]):
        columns = b.column[column : column + width]
        rows[i, :n, columns] = b.value[value : value + n * width].reshape(n, width).T
    return rows
