"""A step's contact problem in contact space, by assembly: Yamane & Nakamura (2009), section IV.

Contacts act on links. Between links the inverse inertia L comes from assembly, and the row of a
contact is six numbers for each of its two bodies, so with G the rows in those coordinates

    W = G L G'          eqs. (9) to (16)

Rows that act on joints (limits, dry friction, rigid equalities) take M^-1 J' from the forward
dynamics, one each; so do the free velocity and, in the end, v+ = v_free + M^-1 J' f.

The mass M of a step is not that of the links alone, A: implicit damping adds to its diagonal, which
is armature to the links; what couples joints (soft equalities, tendons and actuators on them) is
U K U', and Woodbury's identity takes it in: with Y = A^-1 U and S = K^-1 + U'Y,

    M^-1 x = A^-1 x - Y S^-1 Y'x

The problem is posed by a factor of W = F F', in coordinates y of mass 1 with J v = F y: redundant
contacts only make F narrower. Its answer is graded on the step's own mass and rows.
"""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from stiction.articulated.compiled import articulate
from stiction.articulated.interface import body_arrays, loop_arrays
from stiction.bridge.rows import Key, Place
from stiction.contact.certificate.certificate import Certificate, from_table
from stiction.contact.certificate.grading import grade_blocks
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.model import ContactModel, grade_status
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.block_problem import (
    box_rows,
    dense_mass,
    dense_rows,
    folded_push,
    put_solution,
)
from stiction.contact.problem.blocks import Head, Kind, row_velocities
from stiction.contact.problem.laws import LAWS
from stiction.contact.problem.problem import ContactProblem
from stiction.simulate.time_stepping.workspace import Count, Workspace
from stiction.tolerances import RESIDUAL

Indices = NDArray[np.int64]

ASSEMBLY_ROUNDING = 1e-13
"""Share of a diagonal below which an entry, or an eigenvalue of a matrix with ones on its diagonal,
is what rounding left."""

SOLUTIONS = 5
"""Solutions at most for one impulse."""


class Links:
    """The inverse of a step's mass by assembly and disassembly."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, mass: Array) -> None:
        """mass (nv, nv): the step's; `data` is as `mj_fwdVelocity` leaves it."""
        self._mass = mass
        tree = body_arrays(model, data)
        own = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, own)
        armature, beyond, self._U = _split(mass - own, own.diagonal(), tree.armature)
        self._bodies = tree._replace(
            armature=armature,
            cdof_dot=np.zeros_like(tree.cdof_dot),  # impulses act at once: nothing turns meanwhile
            cvel=np.zeros_like(tree.cvel),
            qvel=np.zeros_like(tree.qvel),
            qfrc_smooth=np.zeros(model.nv),
        )
        self._loops = loop_arrays(model, data, wanted=False)
        self._Y = np.array([self._links_alone(u) for u in self._U.T]).reshape(-1, model.nv).T
        self._S = np.diag(1.0 / beyond) + self._U.T @ self._Y

    def _links_alone(self, impulse: Array) -> Array:
        pushed = self._bodies._replace(qfrc_smooth=np.ascontiguousarray(impulse))
        none = np.zeros(0, np.int64)
        _, _, velocity, _ = articulate(pushed, self._loops, none, np.zeros((0, 6)), 1)
        return velocity

    def solve(self, impulse: Array) -> Array:
        """M^-1 times a generalized impulse (nv,)."""
        velocity, left = np.zeros_like(impulse), impulse
        # A long chain's mass is ill-conditioned: what is left over is solved for again.
        for _ in range(SOLUTIONS):
            velocity += self._links_alone(left)
            velocity -= self._Y @ np.linalg.solve(self._S, self._Y.T @ left)
            before, left = np.abs(left).max(initial=0.0), impulse - self._mass @ velocity
            if not np.abs(left).max(initial=0.0) < 0.1 * before:
                break
        return velocity

    def between(self, bodies: Indices, wrenches: Array, rows: Array) -> Array:
        """J M^-1 J' of rows that are `wrenches` (m, 6 k) on k bodies; rows (m, nv) is J."""
        none = np.zeros((len(bodies), 6))
        inertia, _, _, _ = articulate(self._bodies, self._loops, bodies, none, 0)
        folded = rows @ self._Y
        matrix = wrenches @ inertia @ wrenches.T - folded @ np.linalg.solve(self._S, folded.T)
        # Across a planar mechanism nothing gives way; there, rounding would look like mobility.
        most = np.sqrt(inertia.diagonal().reshape(-1, 3).max(axis=1, initial=0.0)).repeat(3)
        gives = matrix.diagonal() > ASSEMBLY_ROUNDING * (np.abs(wrenches) @ most) ** 2
        return np.where(np.outer(gives, gives), matrix, 0.0)


def _split(extra: Array, diagonal: Array, armature: Array) -> tuple[Array, Array, Array]:
    """What a mass has beyond its links', whose diagonal is given: armature (nv,) with the links'
    own, and K (k,), U (nv, k) of the rest, U K U'."""
    size = np.sqrt(diagonal)
    extra = np.where(np.abs(extra) > ASSEMBLY_ROUNDING * np.outer(size, size), extra, 0.0)
    alone = np.count_nonzero(extra, axis=1) == (extra.diagonal() != 0.0)
    alone &= armature + extra.diagonal() >= 0.0
    coupled = np.flatnonzero(~alone)
    values, vectors = np.linalg.eigh(extra[np.ix_(coupled, coupled)])
    kept = np.abs(values) > ASSEMBLY_ROUNDING * np.abs(values).max(initial=0.0)
    U = np.zeros((len(diagonal), int(kept.sum())))
    U[coupled] = vectors[:, kept]
    return np.where(alone, armature + extra.diagonal(), armature), values[kept], U


class Assembled:
    """The problem of a step whose blocks are filled, and the way back from its answer."""

    problem: ContactProblem
    """In coordinates of contact space: its velocities are not the model's."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, workspace: Workspace) -> None:
        """model: the simulator's own; `run` left data and workspace at the step to solve."""
        self._workspace, b = workspace, workspace.blocks
        self._count = count = int(workspace.step.counts[Count.BLOCKS])
        self._dt = dt = float(model.opt.timestep)
        posed = dense_rows(b, count, dt)
        tangent = posed["tangent"].reshape(-1, model.nv)
        parts = [posed["normal"], tangent, posed["joint"], posed["box"]]
        self._rows = np.vstack(parts)
        self._links = Links(model, data, dense_mass(b, count))
        self._free = b.velocity + self._links.solve(folded_push(b, count))
        W = self._matrix(*self._wrenches(model, data))
        F, y = _coordinates(W, self._rows @ self._free)
        ends = np.cumsum([len(part) for part in parts])[:3]
        posed["normal"], tangent, posed["joint"], posed["box"] = np.split(F, ends)
        posed["tangent"] = tangent.reshape(-1, 2, len(y))
        self.problem = ContactProblem(
            mass=np.eye(len(y)), velocity=y, force=np.zeros(len(y)), dt=dt, **posed
        )

    def _wrenches(
        self, model: mujoco.MjModel, data: mujoco.MjData
    ) -> tuple[Indices, Array, NDArray[np.bool_]]:
        """Bodies (k,) that contacts touch, the rows (m, 6 k) as wrenches on them at their centres
        of mass, and which rows (m,) are such."""
        step, head = self._workspace.step, self._workspace.blocks.head[: self._count]
        key, place = step.key[: self._count], step.place[: self._count]
        contacts = np.flatnonzero(head[:, Head.KIND] == Kind.CONTACT)
        touching = [int(i) for i in contacts if key[i, Key.INDEX] >= 0]
        pairs = model.geom_bodyid[key[touching][:, [Key.FIRST, Key.SECOND]]].reshape(-1, 2)
        moving = np.unique(pairs[model.body_weldid[pairs] != 0]).astype(np.int64)
        slot = {int(body): 6 * k for k, body in enumerate(moving)}
        number = {int(i): k for k, i in enumerate(contacts)}
        boxes = {found: k for k, found in enumerate(box_rows(head))}
        nc, first_box = len(contacts), len(self._rows) - len(boxes)
        wrenches = np.zeros((len(self._rows), 6 * len(moving)))
        on_links = np.zeros(len(self._rows), np.bool_)
        for i, pair in zip(touching, pairs, strict=True):
            contact = data.contact[key[i, Key.INDEX]]
            axes = contact.frame.reshape(3, 3)
            for r in range(int(head[i, Head.ROWS])):
                row = number[i] if r == 0 else nc + 2 * number[i] + r - 1
                row = row if r < 3 else first_box + boxes[i, r]
                scale = {2: place[i, Place.RATIO], 5: place[i, Place.ROLL_RATIO]}.get(r, 1.0)
                on_links[row] = True
                for sign, body in zip((-1.0, 1.0), pair, strict=True):
                    if body in slot:
                        at = wrenches[row, slot[body] : slot[body] + 6]
                        if r < 3:
                            at[:3] += (
                                sign * scale * np.cross(contact.pos - data.xipos[body], axes[r])
                            )
                            at[3:] += sign * scale * axes[r]
                        else:
                            at[:3] += sign * scale * axes[r - 3]
        return moving, wrenches, on_links

    def _matrix(self, bodies: Indices, wrenches: Array, on_links: NDArray[np.bool_]) -> Array:
        """W (m, m) of all rows."""
        rows, links = self._rows, self._links
        W = np.zeros((len(rows), len(rows)))
        W[np.ix_(on_links, on_links)] = links.between(bodies, wrenches[on_links], rows[on_links])
        for i in np.flatnonzero(~on_links & rows.any(axis=1)):
            W[i] = W[:, i] = rows @ links.solve(rows[i])
        return W

    def solve(self, contact: ContactModel) -> ContactSolution:
        """The contact model's answer with the velocity in joints, graded on the step's arrays."""
        found = contact.solve(self.problem)
        f = np.concatenate([found.normal, found.tangent.ravel(), found.joint, found.box])
        velocity = self._free + self._links.solve(self._rows.T @ f)
        certificate = self._grade(velocity, found, contact)
        return replace(
            found,
            velocity=velocity,
            certificate=certificate,
            status=grade_status(certificate, found.status),
            rungs=("assembly", *found.rungs),
        )

    def _grade(
        self, velocity: Array, solution: ContactSolution, contact: ContactModel
    ) -> Certificate:
        work, b, count = self._workspace, self._workspace.blocks, self._count
        law = LAWS[contact.law]
        newton, grading = work.newton, work.grading
        put_solution(b, count, solution, newton.f)
        row_velocities(b, np.int64(count), velocity, newton.u)
        grade_blocks(
            b, np.int64(count), np.int64(law), np.int64(contact.facets or 0), RESIDUAL,
            newton.weight, velocity, newton.u, newton.f, grading,
        )  # fmt: skip
        return from_table(law, grading.table)


def _coordinates(W: Array, speeds: Array) -> tuple[Array, Array]:
    """F (m, r) with W = F F', block by block, and y (r,) with F y = `speeds`."""
    size = np.sqrt(W.diagonal())
    size[size == 0.0] = 1.0
    scaled = W / np.outer(size, size)
    _, part = connected_components(np.abs(scaled) > ASSEMBLY_ROUNDING, directed=False)
    columns, y = [], []
    for label in np.unique(part):
        rows = np.flatnonzero(part == label)
        values, vectors = np.linalg.eigh(scaled[np.ix_(rows, rows)])
        kept = values > ASSEMBLY_ROUNDING * len(rows)
        root = np.sqrt(values[kept])
        block = np.zeros((len(W), len(root)))
        block[rows] = size[rows, None] * vectors[:, kept] * root
        columns.append(block)
        y.append(vectors[:, kept].T @ (speeds[rows] / size[rows]) / root)
    if not y or sum(map(len, y)) == 0:  # a problem has one coordinate at least
        return np.zeros((len(W), 1)), np.zeros(1)
    return np.hstack(columns), np.concatenate(y)
