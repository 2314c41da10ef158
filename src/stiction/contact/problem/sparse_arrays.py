"""A problem's matrices where they are given as SciPy's sparse arrays, checked like dense ones.

All are kept as compressed rows, canonical (sorted, each entry once, no zeros), float64. Tangents
have rows 2 i and 2 i + 1 for contact i, since sparse arrays have two dimensions.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse import issparse as _issparse
from scipy.sparse import vstack as stack_rows
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from stiction.contact.problem import validation as check
from stiction.contact.problem.arrays import Array, Arrays
from stiction.contact.problem.blocks import ROWS as BLOCK_ROWS
from stiction.contact.problem.blocks import Blocks, Datum, Head, Kind, inverse_inertias
from stiction.contact.problem.sparse_blocks import (
    Nodes,
    Skyline,
    find_nodes,
    lay_out_blocks,
    skyline_of,
)
from stiction.errors import InvalidInput
from stiction.kernels.skyline import factor_skyline, solve_skyline

Indices = NDArray[np.int64]
Sparse: TypeAlias = "csr_array[Any, Any]"

compress: Any = csr_array
"""Without its stubs, which know too little of what it takes."""

issparse: Any = _issparse

EIGENVALUE_RESTARTS, EIGENVALUE_ERROR = 20, 1e-3
"""Restarts of Lanczos' method for the least eigenvalue of a contact-space matrix, and its error
relative to the eigenvalue: a matrix with a sign wrong is found at once."""


class Matrices(NamedTuple):
    """Of a problem with mass."""

    mass: Sparse  # (nv, nv)
    normal: Sparse  # (nc, nv)
    tangent: Sparse  # (2 nc, nv)
    joint: Sparse  # (nj, nv)
    box: Sparse  # (nb, nv)

    @property
    def stacked(self) -> Sparse:
        """(3 nc + nj + nb, nv) all rows, kind after kind."""
        return compress(stack_rows(self[1:], format="csr"))

    def find_nodes(self) -> Nodes:
        """The nodes of the mass, for contacts, joints and box rows as blocks."""
        contact = np.arange(self.normal.shape[0])
        others = self.joint.shape[0] + self.box.shape[0]
        apart = len(contact) + np.arange(others)
        block = np.concatenate([contact, np.repeat(contact, 2), apart]).astype(np.int64)
        return find_nodes(self.mass, self.stacked, block)


class SparseMass:
    """The matrices of a problem with mass, its nodes, and its mass factored."""

    def __init__(self, matrices: Matrices) -> None:
        self.matrices = matrices
        self.nodes: Nodes = matrices.find_nodes()
        self.mass: Skyline = skyline_of(matrices.mass, self.nodes)
        self.factor: Skyline = self.mass._replace(entries=self.mass.entries.copy())
        _check_definite(self)

    def divide(self, momentum: Array) -> Array:
        """(nv,) M^-1 times a momentum."""
        nodes, factor = self.nodes, self.factor
        y = momentum[nodes.order]
        solve_skyline(factor.entries, factor.row, factor.first, y)
        return nodes.back(y)

    def push_of(self, f_n: Array, f_t: Array, f_j: Array, f_b: Array) -> Array:
        """(nv,) N' f_n + T' f_t + J' f_j + B' f_b."""
        _, normal, tangent, joint, box = self.matrices
        push = normal.T @ f_n + tangent.T @ f_t.ravel() + joint.T @ f_j + box.T @ f_b
        return np.asarray(push, np.float64)

    def blocks(self, arrays: Arrays, dt: float) -> Blocks:
        """Contacts of three rows, joints, box rows, in this order, over the places of `nodes`: what
        `dense_blocks.from_arrays` gives."""
        nc, nj, nb = len(arrays.bound), len(arrays.joint_target), len(arrays.box_limit)
        contact = np.arange(nc)
        each = np.column_stack([contact, nc + 2 * contact, nc + 2 * contact + 1]).ravel()
        rows = self.matrices.stacked[np.concatenate([each, np.arange(3 * nc, 3 * nc + nj + nb)])]
        height = np.repeat([3, 1], [nc, nj + nb]).astype(np.int64)
        push = dt * arrays.force
        b = lay_out_blocks(rows, height, self.mass, self.nodes, arrays.velocity, push)
        b.head[:, Head.KIND] = np.repeat([Kind.CONTACT, Kind.HOLD, Kind.BOX], [nc, nj, nb])
        b.data[:nc, Datum.BOUND], b.data[:nc, Datum.SLIDE] = arrays.bound, arrays.friction
        b.data[:nc, Datum.DRAG] = dt * arrays.viscosity
        b.data[nc : nc + nj, Datum.BOUND] = arrays.joint_target
        b.data[nc + nj :, Datum.LIMIT] = arrays.box_limit
        b.head[nc + nj :, Head.PARENT] = arrays.box_contact
        b.data[nc + nj :, Datum.SPIN] = np.where(arrays.box_contact < 0, 0.0, arrays.box_friction)
        return b

    def weights(self, b: Blocks) -> Array:
        """(count, ROWS) inverse inertias of the rows of these blocks."""
        weight = np.zeros((len(b.head), BLOCK_ROWS))
        work = np.zeros((4, len(b.push)))
        inverse_inertias(b, len(b.head), self.factor.entries, work, weight)
        return weight


def _check_definite(form: SparseMass) -> None:
    mass, factor, order = form.mass, form.factor, form.nodes.order
    wrong = int(factor_skyline(factor.entries, factor.row, factor.first))
    if wrong < 0:
        at = mass.row + np.arange(len(order))
        width = np.diff(form.nodes.start).repeat(np.diff(form.nodes.start))
        least = 4 * width * np.finfo(float).eps * mass.entries[at]
        weak = np.flatnonzero(1.0 / factor.entries[at] <= least)
        if not weak.size:
            return
        wrong = int(weak[-1])
    row = int(order[wrong])
    reason = (
        f"is not positive definite: row {row} depends on others, or has a negative inertia; "
        "check its units and couplings, or add armature"
    )
    raise InvalidInput("mass", reason, form.matrices.mass.shape, (row, row))


def any_sparse(*values: Any) -> bool:
    """Whether one of them is a SciPy sparse array or matrix."""
    return any(issparse(value) for value in values)


def matrix(name: str, value: Any, shape: tuple[int, int]) -> Sparse:
    """`value`, sparse or dense, as compressed rows of `shape`, where -1 stands for any length; none
    for None."""
    if value is None:
        return compress((max(shape[0], 0), shape[1]))
    if not issparse(value):
        return compress(check.real(name, value, shape))
    if value.ndim != 2 or any(w not in (-1, n) for w, n in zip(shape, value.shape, strict=True)):
        wanted = str(shape).replace("-1", "any")
        raise InvalidInput(name, f"must have shape {wanted}", value.shape)
    if value.dtype.kind not in "fiub":
        raise InvalidInput(name, f"has dtype {value.dtype}: must be real numbers", value.shape)
    kept = compress(value, dtype=np.float64, copy=True)
    kept.sum_duplicates()
    bad = np.flatnonzero(~np.isfinite(kept.data))
    if bad.size:
        index = _index(kept, int(bad[0]))
        reason = f"is {kept.data[bad[0]]}: every entry must be finite"
        raise InvalidInput(name, reason, kept.shape, index)
    kept.eliminate_zeros()
    return kept


def tangents(value: Any, nc: int, nv: int) -> Sparse:
    """Sparse tangents (2 nc, nv), or dense ones (nc, 2, nv); none at all for None."""
    if value is None:
        return compress((2 * nc, nv))
    if issparse(value):
        if value.ndim == 2 and value.shape != (2 * nc, nv):
            reason = f"must have shape {(2 * nc, nv)}: rows 2 i and 2 i + 1 of contact i"
            raise InvalidInput("tangent", reason, value.shape)
        return matrix("tangent", value, (2 * nc, nv))
    return compress(check.real("tangent", value, (nc, 2, nv)).reshape(2 * nc, nv))


def mass_matrix(value: Any) -> Sparse:
    """The symmetric `value` (nv, nv), whose diagonal is positive."""
    if np.ndim(value) != 2 or value.shape[0] != value.shape[1]:
        raise InvalidInput("mass", "must be square, (nv, nv)", np.shape(value))
    mass = matrix("mass", value, value.shape)
    diagonal = mass.diagonal()
    if diagonal.size and not diagonal.min() > 0.0:
        index = int(np.argmin(diagonal))
        reason = f"is {diagonal[index]}: a degree of freedom needs a positive inertia"
        raise InvalidInput("mass", reason, mass.shape, (index, index))
    return _symmetrized("mass", mass, check.MASS_ASYMMETRY)[0]


def delassus_matrix(value: Any, size: int) -> tuple[Sparse, float, float]:
    """The symmetric part of the positive semidefinite `value` (size, size), its asymmetry, and its
    indefiniteness as Lanczos' method finds it (`validation.psd`)."""
    W = matrix("delassus", value, (size, size))
    if size == 0:
        return W, 0.0, 0.0
    diagonal = W.diagonal()
    if diagonal.min() < 0.0:
        index = int(np.argmin(diagonal))
        reason = f"is {diagonal[index]}: an inverse inertia is not negative"
        raise InvalidInput("delassus", reason, W.shape, (index, index))
    W, asymmetry = _symmetrized("delassus", W, check.DELASSUS_ASYMMETRY)
    root = np.sqrt(diagonal)
    inverse = np.divide(1.0, root, out=np.zeros(size), where=root > 0.0)
    scaled = compress(W.multiply(inverse[:, None]).multiply(inverse))
    low, high = _extreme(scaled, "SA"), _extreme(scaled, "LA")
    indefiniteness = max(0.0, -low / high) if high > 0.0 else 0.0
    if indefiniteness > check.INDEFINITE:
        reason = (
            f"is not positive semidefinite: scaled to a unit diagonal its eigenvalues reach from "
            f"{low:.3g} to {high:.3g}; check signs and order"
        )
        raise InvalidInput("delassus", reason, W.shape)
    return W, asymmetry, indefiniteness


def _extreme(scaled: Sparse, which: Any) -> float:
    """The least ("SA") or largest ("LA") eigenvalue of a symmetric matrix, about."""
    n = scaled.shape[0]
    if n <= 3:
        values = np.linalg.eigvalsh(scaled.toarray())
        return float(values[0] if which == "SA" else values[-1])
    start = np.cos(np.arange(n))  # of all frequencies, and the same in every run
    options: Any = {"k": 1, "which": which, "tol": EIGENVALUE_ERROR, "maxiter": EIGENVALUE_RESTARTS}
    try:
        return float(eigsh(scaled, v0=start, return_eigenvectors=False, **options)[0])
    except ArpackNoConvergence as error:
        found = np.append(error.eigenvalues, start @ (scaled @ start) / (start @ start))
        return float(found.min() if which == "SA" else found.max())


def _symmetrized(name: str, given: Sparse, limit: float) -> tuple[Sparse, float]:
    """The symmetric part, and how far it was from it; raises beyond `limit`."""
    difference = abs(given - given.T).tocoo()
    if not difference.data.any():
        return given, 0.0
    root = np.sqrt(given.diagonal())
    i, j = difference.coords
    scale = root[i] * root[j]
    off = np.where(difference.data > limit * scale, np.inf, 0.0)
    np.divide(difference.data, scale, out=off, where=scale > 0.0)
    asymmetry = float(off.max())
    if asymmetry > limit:
        worst = int(np.argmax(off))
        a, b = int(i[worst]), int(j[worst])
        reason = (
            f"is {given[a, b]:.6g}, but entry ({b}, {a}) is {given[b, a]:.6g}: the matrix must "
            f"be symmetric to {limit:g} of its diagonal"
        )
        raise InvalidInput(name, reason, given.shape, (a, b))
    return compress(0.5 * (given + given.T)), asymmetry


def _index(kept: Sparse, at: int) -> tuple[int, int]:
    """Row and column of the entry stored at `at`."""
    row = int(np.searchsorted(kept.indptr, at, side="right")) - 1
    return row, int(kept.indices[at])


def locked(kept: Sparse) -> Sparse:
    """The same entries, read-only."""
    view = compress(kept.shape)
    view.data, view.indices, view.indptr = (
        part.view() for part in (kept.data, kept.indices, kept.indptr)
    )
    for part in (view.data, view.indices, view.indptr):
        part.flags.writeable = False
    return view
