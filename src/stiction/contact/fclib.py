"""Files of FCLIB, the HDF5 format in which the field exchanges friction problems.

    Acary, Bremond, Koziara, Perignon: FCLIB: a collection of discrete 3D Frictional Contact
    problems. INRIA RT-0444 (2014); the layout is that of `fclib.h`.

A file holds one problem; of one that holds both kinds the global one is read, as FCLIB does for
solutions. Contact by contact u and r have the normal first, then one tangent
(spacedim 2) or two (spacedim 3); u and r obey Coulomb's law with u_N >= 0.

    fclib_local    u = W r + q; with equalities u = W r + V l + q, V'r + R l + s = 0
    fclib_global   M v = H r + G l + f, u = H'v + w, G'v + b = 0

A local problem becomes one by its Delassus matrix, a global one a problem with mass:

    ours                            FCLIB
    delassus, free_velocity - bound W, q       l is eliminated
    mass                            M
    normal, tangent                 H'
    M velocity + dt force           f          read with velocity = 0, dt = 1
    -bound                          w          its tangential part must be zero
    joint, -joint_target            G', b

Matrices are groups with m, n, nzmax, nz and p, i, x. nz = -1: compressed columns, p (n+1,), i the
rows; nz = -2: compressed rows, p (m+1,), i the columns; otherwise nz triplets, p the rows and i the
columns. Indices count from zero.

Matrices are sparse in the files, and in large problems so they stay: where dense ones would take
more than 64 MB, and where `read` is asked to.

What FCLIB has no place for is refused when written: box rows, viscosity. Global problems with
rolling friction (`fclib_global_rolling`) have a cone of five dimensions and are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array, vstack
from scipy.sparse.linalg import splu

from stiction.contact.certificate.certificate import certify
from stiction.contact.certificate.modes import contact_modes
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.model import check_start, grade_status
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.problem.sparse_arrays import Sparse
from stiction.errors import InvalidInput, StictionError, as_path
from stiction.status import Status

FilePath = str | PathLike[str]
T = TypeVar("T")

LOCAL, GLOBAL, ROLLING = "fclib_local", "fclib_global", "fclib_global_rolling"
TRIPLETS, COLUMNS, ROWS = 0, -1, -2
"""Least `nz` of a matrix by triplets, and those that stand for compressed columns and rows."""
LARGE = 64_000_000 // 8
"""Entries of dense matrices from which on a problem is read as a sparse one."""

__all__ = ["read", "read_guesses", "read_solution", "write"]


def read(path: FilePath, *, sparse: bool | None = None) -> ContactProblem:
    """The problem in the file, local or global; InvalidInput with the file and the dataset where it
    is damaged, or holds what a `ContactProblem` has no place for.

    sparse: whether it has sparse arrays or dense ones; None: sparse ones if it is large.
    """
    with _open(path) as file:
        return _read_problem(file, sparse)


def read_solution(path: FilePath) -> ContactSolution:
    """The solution in the file, graded on the file's own problem.

    The certificate is computed here: a file's solution passes only where it is one. `status` is
    SOLVED or ERROR; there are no pivots, and `rungs` names the format.
    """
    with _open(path) as file:
        problem = _read_problem(file)
        return _read_answer(file, "solution", problem)


def read_guesses(path: FilePath) -> list[ContactSolution]:
    """The guesses in the file, graded like `read_solution`: warm starts for `solve`; none where the
    file has none."""
    with _open(path) as file:
        if "guesses" not in file:
            return []
        problem = _read_problem(file)
        count = file.whole("guesses/number_of_guesses")
        return [_read_answer(file, f"guesses/{k + 1}", problem) for k in range(count)]


def write(path: FilePath, problem: ContactProblem, solution: ContactSolution | None = None) -> Path:
    """Writes the problem, and a solution of it, in FCLIB's layout; returns the path.

    A problem with mass is written as a global one, in two dimensions if no contact has a second
    tangent. Read again it has the same answers, but velocity and force are one, and dt is 1.
    """
    path = as_path("path", path)
    if not isinstance(problem, ContactProblem):
        raise InvalidInput("problem", f"is {problem!r}: a ContactProblem")
    _check_expressible(problem)
    check_start(problem, solution)
    h5py = _h5py()
    is_local = problem.delassus is not None
    content = _local_content(problem) if is_local else _global_content(problem)
    if solution is not None:
        content |= _answer_content(problem, solution)
    with h5py.File(path, "w") as file:
        for name, value in content.items():
            file.create_dataset(name, data=value)
    return Path(path)


class _File:
    """An open file of FCLIB: its datasets, and its errors with their place."""

    def __init__(self, path: FilePath, content: Any) -> None:
        self.path, self._content = path, content

    def __contains__(self, name: str) -> bool:
        return bool(self._reading(name, lambda: name in self._content))

    def wrong(self, name: str, reason: str, *where: Any) -> InvalidInput:
        """The error to raise for a dataset or group."""
        return InvalidInput(f"{self.path}:/{name}", reason, *where)

    def _reading(self, name: str, make: Callable[[], T]) -> T:
        try:
            return make()
        except Exception as error:  # a damaged file raises what its bytes happen to lead to
            said = " ".join(str(error).split()) or type(error).__name__
            raise self.wrong(name, f"cannot be read: {said}") from error

    def array(self, name: str, *, infinite: bool = False) -> NDArray[Any]:
        """The dataset (n,) of numbers, finite ones unless `infinite`."""
        if name not in self:
            raise self.wrong(name, "is missing")
        found = self._reading(name, lambda: np.atleast_1d(np.asarray(self._content[name][()])))
        if found.ndim != 1 or found.dtype.kind not in "fiu":
            raise self.wrong(name, "must be a list of numbers", found.shape)
        bad = np.flatnonzero(np.isnan(found) if infinite else ~np.isfinite(found))
        if bad.size:
            at = int(bad[0])
            reason = f"is {found[at]}: every entry must be a number"
            raise self.wrong(name, reason, found.shape, at)
        return found

    def vector(self, name: str, size: int, *, infinite: bool = False) -> Array:
        """The dataset (size,)."""
        found = self.array(name, infinite=infinite)
        if len(found) != size:
            raise self.wrong(name, f"must have {size} entries", found.shape)
        return found.astype(np.float64)

    def integers(self, name: str) -> NDArray[np.int64]:
        """The dataset (n,) of whole numbers."""
        found = self.array(name)
        if found.dtype.kind == "f" and not np.array_equal(found, np.floor(found)):
            raise self.wrong(name, "must be whole numbers", found.shape)
        return found.astype(np.int64)

    def whole(self, name: str, least: int = 0) -> int:
        """The dataset's only entry, a whole number."""
        found = self.integers(name)
        if len(found) != 1 or found[0] < least:
            raise self.wrong(name, f"must be one whole number, {least} or more", found.shape)
        return int(found[0])

    def matrix(self, name: str, rows: int, columns: int) -> Sparse:
        """The matrix of a group, which must have that shape; entries that come twice are added.

        Not the shape that it claims: a damaged file must not ask for all memory.
        """
        shape = (rows, columns)
        for letter, wanted in zip("mn", shape, strict=True):
            size = self.whole(f"{name}/{letter}")
            if size != wanted:
                raise self.wrong(f"{name}/{letter}", f"is {size}: must be {wanted}")
        kind = self.whole(f"{name}/nz", ROWS)
        first, second = self.integers(f"{name}/p"), self.integers(f"{name}/i")
        if kind >= TRIPLETS:
            count = kind
            self._check_indices(f"{name}/p", first, count, shape[0])
            self._check_indices(f"{name}/i", second, count, shape[1])
        else:
            lines, inner = shape if kind == ROWS else shape[::-1]
            grows = len(first) == lines + 1 and first[0] == 0 and (np.diff(first) >= 0).all()
            if not grows:
                reason = f"must be {lines + 1} offsets that start at 0 and do not fall"
                raise self.wrong(f"{name}/p", reason, first.shape)
            count = int(first[-1])
            self._check_indices(f"{name}/i", second, count, inner)
        value = self.array(f"{name}/x")
        if len(value) < count:
            raise self.wrong(f"{name}/x", f"must have {count} entries", value.shape)
        # Files may have room for more entries (nzmax) than the matrix has.
        value, second = value[:count].astype(np.float64), second[:count]
        if kind >= TRIPLETS:
            return csr_array(coo_array((value, (first[:count], second)), shape=shape))
        made = csr_array if kind == ROWS else csc_array
        return csr_array(made((value, second, first), shape=shape))

    def _check_indices(self, name: str, found: NDArray[np.int64], count: int, size: int) -> None:
        if len(found) < count:
            raise self.wrong(name, f"must have {count} entries", found.shape)
        bad = np.flatnonzero((found[:count] < 0) | (found[:count] >= size))
        if bad.size:
            at = int(bad[0])
            reason = f"is {found[at]}: indices count from 0 to {size - 1}"
            raise self.wrong(name, reason, found.shape, at)

    def build(self, make: Callable[[], T], places: dict[str, str]) -> T:
        """What `make` returns; where it refuses an array, the error names the dataset."""
        try:
            return make()
        except InvalidInput as error:
            place = places.get(error.name, error.name)
            raise self.wrong(place, error.reason, error.shape, error.index) from error


@contextmanager
def _open(path: FilePath) -> Iterator[_File]:
    h5py = _h5py()
    with as_path("path", path).open("rb"):  # absent or not allowed: the system's own words
        pass
    try:
        content = h5py.File(path, "r")
    except OSError as error:
        said = " ".join(str(error).split())
        raise InvalidInput(str(path), f"is no HDF5 file, or damaged: {said}") from error
    with content:
        yield _File(path, content)


def _h5py() -> Any:
    try:
        import h5py
    except ModuleNotFoundError as error:
        text = "FCLIB's files need h5py, the extra `fclib`: pip install 'stiction[fclib]'"
        raise StictionError(text) from error
    return h5py


def _read_problem(file: _File, sparse: bool | None = None) -> ContactProblem:
    if GLOBAL in file:
        return _read_global(file, sparse)
    if LOCAL in file:
        return _read_local(file, sparse)
    if ROLLING in file:
        reason = "is a problem with rolling friction, which is not read"
        raise file.wrong(ROLLING, reason)
    raise InvalidInput(str(file.path), f"has no group {LOCAL} or {GLOBAL}")


def _dimension(file: _File, group: str, size: int, sized: str) -> int:
    """Rows of a contact; `sized` names what has `size` of all contacts."""
    dimension = file.whole(f"{group}/spacedim")
    if dimension not in (2, 3):
        raise file.wrong(f"{group}/spacedim", f"is {dimension}: contacts have 2 or 3 rows each")
    if size % dimension:
        reason = f"is {size}: no multiple of spacedim, {dimension}"
        raise file.wrong(f"{group}/{sized}", reason)
    return dimension


def _read_local(file: _File, sparse: bool | None) -> ContactProblem:
    n = file.whole(f"{LOCAL}/W/m")
    dimension = _dimension(file, LOCAL, n, "W/m")
    q = file.vector(f"{LOCAL}/vectors/q", n)
    mu = file.vector(f"{LOCAL}/vectors/mu", n // dimension, infinite=True)
    W = file.matrix(f"{LOCAL}/W", n, n)
    if f"{LOCAL}/V" in file:
        W, q = _without_equalities(file, W, q)
    given = W if (n * n > LARGE if sparse is None else sparse) else W.toarray()
    return file.build(
        lambda: ContactProblem.from_delassus(given, q, friction=mu, dimension=dimension),
        {
            "delassus": f"{LOCAL}/W",
            "free_velocity": f"{LOCAL}/vectors/q",
            "friction": f"{LOCAL}/vectors/mu",
        },
    )


def _without_equalities(file: _File, W: Sparse, q: Array) -> tuple[Sparse, Array]:
    """(W, q) of a local problem whose multipliers l are eliminated."""
    n, size = W.shape[0], file.whole(f"{LOCAL}/R/m")
    s = file.vector(f"{LOCAL}/vectors/s", size)
    V, R = file.matrix(f"{LOCAL}/V", n, size), file.matrix(f"{LOCAL}/R", size, size)
    try:
        factor = splu(csc_array(R))
    except RuntimeError as error:
        reason = "is singular: equalities that depend on each other cannot be eliminated"
        raise file.wrong(f"{LOCAL}/R", reason, R.shape) from error
    # Columns of V' that are not zero, so that no more is solved for than there is.
    touched = np.flatnonzero(np.diff(V.indptr))
    solved = factor.solve(np.column_stack([V[touched].T.toarray(), s]))
    response = csr_array(V @ solved[:, :-1]).tocoo()
    spread = csr_array(
        coo_array((response.data, (response.row, touched[response.col])), shape=(n, n))
    )
    return csr_array(W - spread), q - V @ solved[:, -1]


def _read_global(file: _File, sparse: bool | None) -> ContactProblem:
    nv, size = file.whole(f"{GLOBAL}/M/m"), file.whole(f"{GLOBAL}/H/n")
    dimension = _dimension(file, GLOBAL, size, "H/n")
    nc = size // dimension
    f = file.vector(f"{GLOBAL}/vectors/f", nv)
    w = file.vector(f"{GLOBAL}/vectors/w", size).reshape(nc, dimension)
    mu = file.vector(f"{GLOBAL}/vectors/mu", nc, infinite=True)
    M, H = file.matrix(f"{GLOBAL}/M", nv, nv), file.matrix(f"{GLOBAL}/H", nv, size)
    moving = np.argwhere(w[:, 1:])
    if len(moving):
        at = int(moving[0, 0] * dimension + moving[0, 1] + 1)
        reason = f"is {w.flat[at]:g}: a problem with mass has no tangential velocity of its own"
        raise file.wrong(f"{GLOBAL}/vectors/w", reason, (size,), at)
    rows = csr_array(H.T)
    across = rows[np.arange(size) % dimension > 0]
    if dimension == 2:  # the second tangent of each contact is zero
        widen = csr_array((np.ones(nc), (2 * np.arange(nc), np.arange(nc))), shape=(2 * nc, nc))
        across = csr_array(widen @ across)
    given: dict[str, Any] = {"mass": M, "normal": rows[::dimension], "tangent": across}
    if f"{GLOBAL}/G" in file:
        nj = file.whole(f"{GLOBAL}/G/n")
        target = -file.vector(f"{GLOBAL}/vectors/b", nj)
        given |= {"joint": csr_array(file.matrix(f"{GLOBAL}/G", nv, nj).T), "joint_target": target}
    if not (max(nv, 3 * nc) * nv > LARGE if sparse is None else sparse):
        given = {name: x if name == "joint_target" else x.toarray() for name, x in given.items()}
        given["tangent"] = given["tangent"].reshape(nc, 2, nv)
    return file.build(
        lambda: ContactProblem(
            velocity=np.zeros(nv), force=f, dt=1.0, friction=mu, bound=-w[:, 0], **given
        ),
        {
            "mass": f"{GLOBAL}/M",
            "force": f"{GLOBAL}/vectors/f",
            "normal": f"{GLOBAL}/H",
            "tangent": f"{GLOBAL}/H",
            "friction": f"{GLOBAL}/vectors/mu",
            "bound": f"{GLOBAL}/vectors/w",
            "joint": f"{GLOBAL}/G",
            "joint_target": f"{GLOBAL}/vectors/b",
        },
    )


def _read_answer(file: _File, group: str, problem: ContactProblem) -> ContactSolution:
    """The solution or guess of a group."""
    if group not in file:
        raise file.wrong(group, "is missing")
    impulses = np.zeros((problem.nc, 3))
    if problem.delassus is not None:
        dimension = problem.dimension
        velocity = file.vector(f"{group}/u", problem.nv)
    else:
        dimension = file.whole(f"{GLOBAL}/spacedim")
        velocity = file.vector(f"{group}/v", problem.nv)
    r = file.vector(f"{group}/r", dimension * problem.nc)
    impulses[:, :dimension] = r.reshape(problem.nc, dimension)
    joint = file.vector(f"{group}/l", problem.nj) if problem.nj else np.zeros(0)
    normal, tangent = impulses[:, 0].copy(), impulses[:, 1:].copy()
    box = np.zeros(0)
    certificate = certify(problem, velocity, normal, tangent, joint, box)
    return ContactSolution(
        velocity,
        normal,
        tangent,
        joint,
        box,
        contact_modes(problem, velocity, normal),
        grade_status(certificate, Status.ERROR),
        0,
        ("fclib",),
        certificate,
        0.0,
    )


def _check_expressible(problem: ContactProblem) -> None:
    if problem.nc == 0:
        raise InvalidInput("problem", "has no contacts: FCLIB has no place for it")
    if problem.nb:
        raise InvalidInput("box", "FCLIB has no place for box rows", (problem.nb, problem.nv))
    if problem.viscosity.any():
        at = int(np.flatnonzero(problem.viscosity)[0])
        reason = f"is {problem.viscosity[at]:g}: FCLIB has no place for viscous friction"
        raise InvalidInput("viscosity", reason, (problem.nc,), at)


def _local_content(problem: ContactProblem) -> dict[str, NDArray[Any]]:
    """The datasets of a problem given by its Delassus matrix."""
    assert problem.delassus is not None
    q = problem.velocity.reshape(problem.nc, problem.dimension).copy()
    q[:, 0] -= problem.bound
    return {
        f"{LOCAL}/spacedim": _integers([problem.dimension]),
        **_matrix_content(f"{LOCAL}/W", problem.delassus),
        f"{LOCAL}/vectors/q": q.ravel(),
        f"{LOCAL}/vectors/mu": problem.friction,
    }


def _global_content(problem: ContactProblem) -> dict[str, NDArray[Any]]:
    """The datasets of a problem with mass."""
    rows, w = _contact_rows(problem)
    content = {
        f"{GLOBAL}/spacedim": _integers([w.shape[1]]),
        **_matrix_content(f"{GLOBAL}/M", problem.mass),
        **_matrix_content(f"{GLOBAL}/H", rows.T),
        f"{GLOBAL}/vectors/f": problem.mass @ problem.velocity + problem.dt * problem.force,
        f"{GLOBAL}/vectors/w": w.ravel(),
        f"{GLOBAL}/vectors/mu": problem.friction,
    }
    if problem.nj:
        content |= _matrix_content(f"{GLOBAL}/G", problem.joint.T)
        content[f"{GLOBAL}/vectors/b"] = -problem.joint_target
    return content


def _contact_rows(problem: ContactProblem) -> tuple[Sparse, Array]:
    """(dimension nc, nv) rows of a problem with mass, and their w (nc, dimension)."""
    nc = problem.nc
    across = csr_array(problem.tangent.reshape(2 * nc, problem.nv))
    rows = csr_array(vstack([csr_array(problem.normal), across]))
    dimension = 3 if across[1::2].nnz else 2
    contact = np.arange(nc)
    order = np.column_stack([contact, nc + 2 * contact, nc + 2 * contact + 1])[:, :dimension]
    w = np.zeros((nc, dimension))
    w[:, 0] = -problem.bound
    return rows[order.ravel()], w


def _answer_content(problem: ContactProblem, solution: ContactSolution) -> dict[str, NDArray[Any]]:
    """The datasets of a solution: of the local or global problem as it is written."""
    impulses = np.column_stack([solution.normal, solution.tangent])
    if problem.delassus is not None:
        u = solution.velocity.reshape(problem.nc, problem.dimension).copy()
        u[:, 0] -= problem.bound
        return {"solution/u": u.ravel(), "solution/r": impulses[:, : u.shape[1]].ravel()}
    rows, w = _contact_rows(problem)
    content = {
        "solution/v": solution.velocity,
        "solution/u": rows @ solution.velocity + w.ravel(),
        "solution/r": impulses[:, : w.shape[1]].ravel(),
    }
    if problem.nj:
        content["solution/l"] = solution.joint
    return content


def _matrix_content(group: str, matrix: Any) -> dict[str, NDArray[Any]]:
    """The datasets of a matrix, by compressed columns."""
    kept = csc_array(matrix)
    return {
        f"{group}/m": _integers([matrix.shape[0]]),
        f"{group}/n": _integers([matrix.shape[1]]),
        f"{group}/nz": _integers([COLUMNS]),
        f"{group}/nzmax": _integers([kept.nnz]),
        f"{group}/p": _integers(kept.indptr),
        f"{group}/i": _integers(kept.indices),
        f"{group}/x": kept.data,
    }


def _integers(values: Any) -> NDArray[np.int32]:
    """As FCLIB's own int."""
    return np.asarray(values, np.int32)


def __dir__() -> list[str]:
    return __all__
