"""`ContactProblem`: one step of rigid bodies in contact, as arrays, validated once.

Unknown are the velocity v+ after the step and the impulses f_n, f_t, f_j, f_b:

    M v+ = M v + h f + N' f_n + T' f_t + J' f_j + B' f_b
    0 <= f_n  _|_  N v+ - b >= 0        contacts and joint limits
    f_t: the friction law of the model  |f_t| <= mu f_n against T v+, say
    J v+ = c                            joints
    |f_b| <= limit, against B v+        dry friction in joints; with limit + ratio f_n of one
                                        contact, torsional and rolling friction there

Contact models see it whitened: with M = L L', row_w = L^-1 row and v_free = v + h M^-1 f, the
velocity along each row is `free + rows (rows' impulses)`. A problem given by its contact-space
(Delassus) matrix W = rows rows' has the same view, and no mass.

Where a matrix is given as SciPy's sparse array, all are kept sparse (`sparse_arrays.py`). Such a
problem has no whitened view: models solve it by blocks, or a small one through `dense`.

Longer than other files: half of it is what users look up, the parameters and each array's property.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, sparray, spmatrix

from stiction.contact.problem import sparse_arrays as sparse
from stiction.contact.problem import validation as check
from stiction.contact.problem import whitening
from stiction.contact.problem.arrays import Array, Arrays, RowVelocity, Whitened
from stiction.contact.problem.blocks import Blocks
from stiction.contact.problem.files import pack_sparse, read_npz, unpack_sparse
from stiction.contact.problem.islands import (
    Island,
    gather,
    label_blocks,
    label_rows,
    label_sparse_blocks,
    label_sparse_rows,
)
from stiction.contact.problem.scales import (
    Scales,
    measure,
    measure_blocks,
    measure_sparse_contact_space,
)
from stiction.contact.problem.sparse_arrays import Matrices, Sparse, SparseMass
from stiction.errors import InvalidInput, as_path
from stiction.kernels import linear

Matrix = spmatrix | sparray

T = TypeVar("T")
N = TypeVar("N", np.float64, np.int64)

NEWEST = 2
"""Version of the .npz files that `save` writes of sparse problems, 1 of dense ones; `load` refuses
later ones."""

DENSE_LIMIT = 1000
"""Degrees of freedom, and rows, up to which a problem with sparse arrays counts as small: its dense
arrays take 16 MB at most, and pivoting methods end within seconds."""


class ContactProblem:
    """One step of bodies in contact.

    Parameters, all by keyword; nv degrees of freedom, nc contacts, nj joint rows, nb box rows:

    mass          (nv, nv) inertia, symmetric positive definite [kg, kg m^2]
    velocity      (nv,) before the step [m/s, rad/s]
    force         (nv,) applied force, bias included [N, N m]
    dt            length of the step [s]
    normal        (nc, nv) parting speed per velocity; also rows of joint limits
    tangent       (nc, 2, nv) sliding velocity per velocity in two orthonormal directions; None
                  for frictionless contacts; a planar contact has zeros for the second
    friction      (nc,) or scalar, mu in [0, inf]; a contact with 0 is frictionless
    viscosity     (nc,) or scalar, mu_v >= 0 [N s/m], for viscous friction
    bound         (nc,) or scalar, least N v+ [m/s]: 0 where touching, -gap/h ahead of contact
    joint         (nj, nv) rows with J v+ = joint_target; they may depend on each other
    joint_target  (nj,) or scalar [m/s, rad/s]
    box           (nb, nv) rows of joint dry friction, and of torsional and rolling friction
    box_limit     (nb,) or scalar, largest impulse, tau h [N s, N m s]; inf allowed; may be left
                  out (0) where every row has a contact
    box_contact   (nb,) or scalar, the contact whose normal impulse a row's limit grows with, or -1
                  (the default) for none
    box_friction  (nb,) or scalar >= 0, how much it grows, |f_b| <= box_limit + box_friction f_n
                  [m for rows of angular velocity]; a scalar serves the rows that have a contact

    Torsional friction is a row for spin about a contact's normal, rolling friction one or two for
    turning about its tangents. They belong to Coulomb's law: elsewhere such a row has its
    `box_limit` only.

    mass, normal, tangent, joint and box may be SciPy's sparse arrays or matrices of any format;
    then no array of nv x nv is ever made, and solving a problem of many bodies takes memory in
    proportion to what is not zero. Sparse tangents have the shape (2 nc, nv): rows 2 i and 2 i + 1
    are those of contact i. If one is sparse, all five are kept so, and the attributes of these
    names are `scipy.sparse.csr_array`. `dense` gives the same problem with dense arrays.

    Arrays are copied and checked once: a wrong shape, a non-finite entry, a negative friction or
    an inertia that is not positive definite raise `InvalidInput` with the array's name and the
    index. The attributes of the same names are read-only views.
    """

    __slots__ = (
        "_arrays",
        "_cache",
        "_factor",
        "_last",
        "_sparse",
        "asymmetry",
        "delassus",
        "dimension",
        "dt",
        "indefiniteness",
    )

    _arrays: Arrays
    _cache: dict[str, Any]
    _factor: Array  # U (nv, nv) of `whitening`, or the rows of a Delassus matrix (n, r)
    _last: NDArray[np.int64]  # (nv,) of `whitening`
    _sparse: SparseMass | None  # in the place of the matrices and of the factor
    dt: float
    dimension: int
    """Rows per contact of a Delassus problem, 2 or 3; otherwise 3."""
    delassus: Any
    """(dimension nc, dimension nc) contact-space matrix as given, symmetrized [1/kg]: an array, or
    a `csr_array`; None of a problem with mass."""
    asymmetry: float
    """How far the given `delassus` was from symmetric, relative to its diagonal."""
    indefiniteness: float
    """Minus the least over the largest eigenvalue of `delassus` scaled to a unit diagonal; what
    `whitened` leaves out."""

    def __init__(
        self,
        *,
        mass: ArrayLike | Matrix,
        velocity: ArrayLike,
        force: ArrayLike,
        dt: float,
        normal: ArrayLike | Matrix | None = None,
        tangent: ArrayLike | Matrix | None = None,
        friction: ArrayLike | None = None,
        viscosity: ArrayLike | None = None,
        bound: ArrayLike | None = None,
        joint: ArrayLike | Matrix | None = None,
        joint_target: ArrayLike | None = None,
        box: ArrayLike | Matrix | None = None,
        box_limit: ArrayLike | None = None,
        box_contact: ArrayLike | None = None,
        box_friction: ArrayLike | None = None,
    ) -> None:
        factor, last, form = np.empty((0, 0)), np.empty(0, np.int64), None
        if sparse.any_sparse(mass, normal, tangent, joint, box):
            form = _sparse_form(mass, normal, tangent, joint, box)
            nv, nc = form.matrices.normal.shape[1], form.matrices.normal.shape[0]
            mass_matrix, normal_rows = np.zeros((0, 0)), np.zeros((nc, 0))
            tangent_rows = np.zeros((nc, 2, 0))
            joint_rows = np.zeros((form.matrices.joint.shape[0], 0))
            box_rows = np.zeros((form.matrices.box.shape[0], 0))
        else:
            mass_matrix, factor, last = check.spd("mass", mass)
            nv = len(mass_matrix)
            normal_rows = check.dof_rows("normal", normal, nv)
            nc = len(normal_rows)
            if tangent is None:
                tangent_rows = np.zeros((nc, 2, nv))
            else:
                tangent_rows = check.real("tangent", tangent, (nc, 2, nv))
            joint_rows = check.dof_rows("joint", joint, nv)
            box_rows = check.dof_rows("box", box, nv)
        contact, ratio = check.box_friction_of(box_contact, box_friction, len(box_rows), nc)
        if box_limit is None and (contact < 0).any():
            reason = "is missing: each row of box needs its limit tau h, or a contact"
            raise InvalidInput("box_limit", reason)
        self._fill(
            Arrays(
                mass_matrix,
                check.real("velocity", velocity, (nv,)),
                check.real("force", force, (nv,)),
                normal_rows,
                tangent_rows,
                check.friction_of(friction, nc, needed=tangent is not None and viscosity is None),
                check.viscosity_of(viscosity, nc),
                check.per_row("bound", bound, nc, 0.0),
                joint_rows,
                check.per_row("joint_target", joint_target, len(joint_rows), 0.0),
                box_rows,
                check.nonnegative(
                    "box_limit",
                    0.0 if box_limit is None else box_limit,
                    len(box_rows),
                    "a limit on |impulse| is not negative (inf: no limit)",
                    infinite=True,
                ),
                contact,
                ratio,
            ),
            factor,
            last,
            check.positive_scalar("dt", dt, "a step takes a positive time in seconds"),
            form=form,
        )

    @classmethod
    def from_delassus(
        cls,
        delassus: ArrayLike | Matrix,
        free_velocity: ArrayLike,
        *,
        friction: ArrayLike,
        bound: ArrayLike | None = None,
        viscosity: ArrayLike | None = None,
        dt: float = 1.0,
        dimension: int = 3,
    ) -> ContactProblem:
        """A problem u = W f + q in contact space, without mass or degrees of freedom.

        delassus       W (n, n), n = dimension nc, symmetric positive semidefinite [1/kg]; rows
                       contact by contact: normal, tangent 1, and in three dimensions tangent 2.
                       A SciPy sparse array or matrix is kept sparse, as for the class
        free_velocity  q (n,) [m/s]; need not lie in the range of W
        friction, bound, viscosity, dt   as for the class; dt matters to viscous friction only
        dimension      3, or 2 for planar problems

        W is replaced by its symmetric part; `asymmetry` tells how far that was, and more than
        1e-2 of its diagonal is an error. `velocity` of a solution is u (n,).
        """
        rows_each = check.positive_scalar("dimension", dimension, "contacts have 2 or 3 rows each")
        if rows_each not in (2.0, 3.0):
            raise InvalidInput("dimension", f"is {dimension}: contacts have 2 or 3 rows each")
        dimension = int(rows_each)
        free = check.real("free_velocity", free_velocity, (-1,))
        nc, rest = divmod(len(free), dimension)
        if rest:
            reason = f"must have {dimension} entries per contact: normal, then tangents"
            raise InvalidInput("free_velocity", reason, free.shape)
        matrix: Array | Sparse
        if issparse(delassus):
            rows = np.zeros((0, 0))
            matrix, asymmetry, indefiniteness = sparse.delassus_matrix(delassus, len(free))
        else:
            matrix, asymmetry, rows, indefiniteness = check.psd("delassus", delassus, len(free))
        none = np.zeros((0, 0))
        problem = cls.__new__(cls)
        problem._fill(
            Arrays(
                none,
                free,
                np.zeros(len(free)),
                np.zeros((nc, 0)),
                np.zeros((nc, 2, 0)),
                check.friction_of(friction, nc, needed=True),
                check.viscosity_of(viscosity, nc),
                check.per_row("bound", bound, nc, 0.0),
                none,
                np.zeros(0),
                none,
                np.zeros(0),
                np.zeros(0, np.int64),
                np.zeros(0),
            ),
            rows,
            np.empty(0, np.int64),
            check.positive_scalar("dt", dt, "a step takes a positive time in seconds"),
            delassus=matrix,
            dimension=dimension,
            asymmetry=asymmetry,
            indefiniteness=indefiniteness,
        )
        return problem

    def _fill(
        self,
        arrays: Arrays,
        factor: Array,
        last: NDArray[np.int64],
        dt: float,
        delassus: Array | Sparse | None = None,
        dimension: int = 3,
        asymmetry: float = 0.0,
        indefiniteness: float = 0.0,
        form: SparseMass | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "_arrays", arrays)
        put(self, "_sparse", form)
        put(self, "_factor", factor)
        put(self, "_last", last)
        put(self, "_cache", {})
        put(self, "dt", dt)
        put(self, "dimension", dimension)
        if delassus is not None:
            delassus = sparse.locked(delassus) if issparse(delassus) else _locked(delassus)
        put(self, "delassus", delassus)
        put(self, "asymmetry", asymmetry)
        put(self, "indefiniteness", indefiniteness)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a ContactProblem is not changed: make a new one to set {name}")

    def __repr__(self) -> str:
        kind = ", sparse" if self.is_sparse else ""
        kind += "" if self.delassus is None else ", by its Delassus matrix"
        return f"ContactProblem(nv={self.nv}, nc={self.nc}, nj={self.nj}, nb={self.nb}{kind})"

    @property
    def nv(self) -> int:
        """Degrees of freedom; of a Delassus problem, contact velocities."""
        return len(self._arrays.velocity)

    @property
    def nc(self) -> int:
        """Contacts, frictionless ones and joint limits included."""
        return len(self._arrays.friction)

    @property
    def nj(self) -> int:
        """Joint rows."""
        return len(self._arrays.joint_target)

    @property
    def nb(self) -> int:
        """Box rows."""
        return len(self._arrays.box_limit)

    @property
    def is_sparse(self) -> bool:
        """Whether its matrices are sparse arrays."""
        return self._sparse is not None or issparse(self.delassus)

    @property
    def is_small(self) -> bool:
        """Whether dense arrays of it are small enough for the solvers that need them."""
        return is_small(self.nv, self.dimension * self.nc + self.nj + self.nb)

    @property
    def sparse(self) -> SparseMass | None:
        """The matrices of a problem with mass where they are sparse, for solvers."""
        return self._sparse

    @property
    def arrays(self) -> Arrays:
        """The arrays of a problem with mass, for kernels; see `Arrays`. Matrices of a sparse one
        are not among them: they have no columns."""
        return self._arrays

    @property
    def mass(self) -> Any:
        """(nv, nv) inertia [kg, kg m^2]; this and all rows: a `csr_array` of a sparse problem."""
        return self._own("mass")

    @property
    def velocity(self) -> Array:
        """(nv,) before the step [m/s, rad/s]; of a Delassus problem the free velocity."""
        return _locked(self._arrays.velocity)

    @property
    def force(self) -> Array:
        """(nv,) applied [N, N m]."""
        return _locked(self._arrays.force)

    @property
    def normal(self) -> Any:
        """(nc, nv) rows of parting speeds."""
        return self._own("normal")

    @property
    def tangent(self) -> Any:
        """(nc, 2, nv) rows of sliding velocities; (2 nc, nv) if sparse."""
        return self._own("tangent")

    @property
    def friction(self) -> Array:
        """(nc,) mu."""
        return _locked(self._arrays.friction)

    @property
    def viscosity(self) -> Array:
        """(nc,) mu_v [N s/m]."""
        return _locked(self._arrays.viscosity)

    @property
    def bound(self) -> Array:
        """(nc,) least parting speed [m/s]."""
        return _locked(self._arrays.bound)

    @property
    def joint(self) -> Any:
        """(nj, nv) joint rows."""
        return self._own("joint")

    @property
    def joint_target(self) -> Array:
        """(nj,) required J v+."""
        return _locked(self._arrays.joint_target)

    @property
    def box(self) -> Any:
        """(nb, nv) rows of joint dry friction, torsional and rolling friction."""
        return self._own("box")

    @property
    def box_limit(self) -> Array:
        """(nb,) largest impulses [N s, N m s]; of a row with a contact, without its part."""
        return _locked(self._arrays.box_limit)

    @property
    def box_contact(self) -> NDArray[np.int64]:
        """(nb,) contact whose normal impulse the row's limit grows with, or -1."""
        return _locked(self._arrays.box_contact)

    @property
    def box_friction(self) -> Array:
        """(nb,) limit per normal impulse of the contact [m for rows of angular velocity]."""
        return _locked(self._arrays.box_friction)

    def _own(self, name: str) -> Any:
        if self.delassus is not None:
            raise AttributeError(
                f"a problem given by its Delassus matrix has no {name}: use `whitened`"
            )
        if self._sparse is not None:
            return sparse.locked(getattr(self._sparse.matrices, name))
        return _locked(cast(Array, getattr(self._arrays, name)))

    def _once(self, name: str, make: Callable[[], T]) -> T:
        """What `make` returns, kept: everything derived depends on frozen arrays only."""
        if name not in self._cache:
            self._cache[name] = make()
        return cast(T, self._cache[name])

    @property
    def whitened(self) -> Whitened:
        """Rows and free velocities in coordinates of unit mass, all dense; computed once."""
        if self.is_sparse:
            raise AttributeError("a sparse problem has no `whitened`: ask its `dense()` for it")
        return self._once("whitened", self._whiten)

    @property
    def blocks(self) -> Blocks:
        """The blocks of a sparse problem with mass: contacts of three rows, joints, box rows, over
        the places of its nodes (`sparse_blocks.py`); made once."""
        assert self._sparse is not None
        form = self._sparse
        return self._once("blocks", lambda: form.blocks(self._arrays, self.dt))

    def dense(self) -> ContactProblem:
        """The same problem with dense arrays; itself where it has them."""
        if not self.is_sparse:
            return self
        arguments = self._arguments()
        for name in _MATRICES:
            if name in arguments:
                arguments[name] = arguments[name].toarray()
        if "tangent" in arguments:
            arguments["tangent"] = arguments["tangent"].reshape(self.nc, 2, self.nv)
        return _from_arguments(arguments)

    @property
    def scales(self) -> Scales:
        """Velocity and impulse scales of every row; computed once."""
        return self._once("scales", self._measure)

    @property
    def factor(self) -> tuple[Array, NDArray[np.int64]]:
        """Factor of the mass as `linear.factorize` leaves it, for kernels."""
        return self._factor, self._last

    @property
    def island_count(self) -> int:
        """How many islands there are; computed once."""
        return self._once("islands", self._count_islands)

    @property
    def no_guess(self) -> tuple[Array, Array, Array]:
        """Zero impulses, in the place of a warm start's."""
        return self._once(
            "guess", lambda: (np.zeros(self.nc), np.zeros((self.nc, 2)), np.zeros(self.nb))
        )

    @property
    def free_velocity(self) -> Array:
        """(nv,) v + h M^-1 f, without any contact; of a Delassus problem q."""
        return _locked(self.kernel_free)

    @property
    def kernel_free(self) -> Array:
        """`free_velocity` with its writable flag, for kernels; see `Arrays`."""
        return self._once("free", self._free)

    def _free(self) -> Array:
        arrays = self._arrays
        if self.delassus is not None or not arrays.force.any():
            return arrays.velocity
        drift = self.dt * arrays.force
        if self._sparse is not None:
            return arrays.velocity + self._sparse.divide(drift)
        linear.solve(self._factor, self._last, drift)
        return arrays.velocity + drift

    def _whiten(self) -> Whitened:
        free = self.kernel_free
        if self.delassus is None:
            return whitening.whiten(self._arrays, self._factor, self._last, free)
        diagonal = self.kernel_delassus.diagonal()
        return whitening.whiten_contact_space(self._arrays, self._factor, diagonal)

    def _measure(self) -> Scales:
        free = self.kernel_free
        if self._sparse is not None:
            nodes, b = self._sparse.nodes, self.blocks
            found: Scales = measure_blocks(b, self._sparse.weights(b), free[nodes.order])
            return found._replace(own=nodes.back(found.own), sigma=nodes.back(found.sigma))
        if self.is_sparse:
            return measure_sparse_contact_space(self._arrays, self.dt, self.delassus)
        return measure(self._arrays, self.dt, self.whitened, free, self.kernel_delassus)

    @property
    def kernel_delassus(self) -> Array:
        """`delassus` with its writable flag, for kernels (see `Arrays`); (0, 0) without a dense
        one."""
        has = self.delassus is not None and not self.is_sparse
        given = self.delassus if has else np.zeros((0, 0))
        return self._once("delassus", lambda: np.array(given))

    def velocity_from(
        self,
        normal: ArrayLike | None = None,
        tangent: ArrayLike | None = None,
        joint: ArrayLike | None = None,
        box: ArrayLike | None = None,
    ) -> Array:
        """v+ (nv,) under the impulses normal (nc,), tangent (nc, 2), joint (nj,), box (nb,).

        None means no impulse. Of a Delassus problem: u (dimension nc,), interleaved.
        """
        arrays = self._arrays
        f_n = check.impulse("normal", normal, (self.nc,))
        f_t = check.impulse("tangent", tangent, (self.nc, 2))
        f_j = check.impulse("joint", joint, (self.nj,))
        f_b = check.impulse("box", box, (self.nb,))
        if self.delassus is not None:
            f = np.column_stack([f_n, f_t])[:, : self.dimension].ravel()
            W = self.delassus if self.is_sparse else self.kernel_delassus
            return np.asarray(arrays.velocity + W @ f, np.float64)
        if self._sparse is not None:
            push = self.dt * arrays.force + self._sparse.push_of(f_n, f_t, f_j, f_b)
            return arrays.velocity + self._sparse.divide(push)
        change = whitening.momentum_change(arrays, self.dt, f_n, f_t, f_j, f_b)
        linear.solve(self._factor, self._last, change)
        return arrays.velocity + change

    def contact_velocity(self, velocity: ArrayLike) -> RowVelocity:
        """Velocity along each row for the velocity (nv,) of the bodies; bounds and targets
        are not subtracted."""
        v = check.impulse("velocity", velocity, (self.nv,))
        arrays = self._arrays
        if self.delassus is not None:
            u = whitening.by_contact(v, self.nc)
            return RowVelocity(u[:, 0].copy(), u[:, 1:].copy(), np.zeros(0), np.zeros(0))
        if self._sparse is not None:
            _, normal, tangent, joint, box = self._sparse.matrices
            return RowVelocity(normal @ v, (tangent @ v).reshape(self.nc, 2), joint @ v, box @ v)
        slip = whitening.times(arrays.tangent.reshape(2 * self.nc, self.nv), v)
        return RowVelocity(
            whitening.times(arrays.normal, v),
            slip.reshape(self.nc, 2),
            whitening.times(arrays.joint, v),
            whitening.times(arrays.box, v),
        )

    def islands(self) -> list[Island]:
        """Groups of rows that share no degree of freedom; see `Island`.

        A box row is where its contact is. Rows of zeros form islands of their own, without
        degrees of freedom. In a Delassus problem contacts stand for the degrees of freedom:
        `dofs` are rows of its matrix.
        """
        return gather(*self._labels(), self.nc, self.nj, self._arrays.box_contact)

    def _labels(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Labels of the rows, and of the degrees of freedom, as `gather` takes them."""
        a = self._arrays
        if self._sparse is not None:
            return label_sparse_rows(*self._sparse.matrices, a.box_contact)
        if self.delassus is None:
            rows: tuple[NDArray[np.int64], NDArray[np.int64]] = label_rows(
                a.mass, a.normal, a.tangent, a.joint, a.box, a.box_contact
            )
            return rows
        if self.is_sparse:
            labels = label_sparse_blocks(self.delassus, self.dimension)
        else:
            labels = label_blocks(self.kernel_delassus, self.dimension)
        return labels, np.repeat(labels, self.dimension)

    def _count_islands(self) -> int:
        labels, _ = self._labels()
        if len(labels) and labels.min() == labels.max() >= 0:
            return 1  # the common case: nothing to gather
        return len(self.islands())

    def restricted(self, island: Island) -> ContactProblem:
        """The problem of one island: its rows over its degrees of freedom."""
        if not isinstance(island, Island):
            raise InvalidInput("island", f"is {island!r}: one of `islands()`")
        a = self._arrays
        dofs, contacts = island.dofs, island.contacts
        common: dict[str, Any] = {
            "friction": a.friction[contacts],
            "viscosity": a.viscosity[contacts],
            "bound": a.bound[contacts],
            "dt": self.dt,
        }
        if self.delassus is not None:
            block = self.delassus[dofs][:, dofs] if self.is_sparse else None
            block = self.delassus[np.ix_(dofs, dofs)] if block is None else block
            free = a.velocity[dofs]
            return self.from_delassus(block, free, dimension=self.dimension, **common)
        contact = a.box_contact[island.boxes]
        common |= {
            "velocity": a.velocity[dofs],
            "force": a.force[dofs],
            "joint_target": a.joint_target[island.joints],
            "box_limit": a.box_limit[island.boxes],
            "box_contact": np.where(contact < 0, -1, np.searchsorted(contacts, contact)),
            "box_friction": a.box_friction[island.boxes],
        }
        if self._sparse is not None:
            return ContactProblem(**_part_of(self._sparse.matrices, island), **common)
        del common["dt"]
        arrays = Arrays(
            mass=a.mass[np.ix_(dofs, dofs)],
            normal=a.normal[np.ix_(contacts, dofs)],
            tangent=np.ascontiguousarray(a.tangent[contacts][:, :, dofs]),
            joint=a.joint[np.ix_(island.joints, dofs)],
            box=a.box[np.ix_(island.boxes, dofs)],
            **common,
        )
        return from_arrays(arrays, self.dt)  # parts of what was checked

    def _arguments(self) -> dict[str, Any]:
        """What makes this problem again: of the class, or of `from_delassus`."""
        arguments: dict[str, Any] = {**self._arrays._asdict(), "dt": self.dt}
        if self._sparse is not None:
            arguments |= self._sparse.matrices._asdict()
        if self.delassus is None:
            return arguments
        kept = ("friction", "bound", "viscosity", "dt")
        return {
            "delassus": self.delassus,
            "free_velocity": self._arrays.velocity,
            "dimension": self.dimension,
            **{name: arguments[name] for name in kept},
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_arguments, (self._arguments(),)

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the problem as .npz, to be loaded and solved elsewhere; returns the path."""
        path = as_path("path", path)
        with path.open("wb") as file:  # given a name, NumPy would append .npz to some
            content = pack_sparse(self._arguments())
            np.savez(file, format=NEWEST if self.is_sparse else 1, **content)
        return path

    @classmethod
    def load(cls, path: str | PathLike[str]) -> ContactProblem:
        """The problem that `save` wrote; validated again."""
        content: dict[str, Any] = read_npz(as_path("path", path), "contact problem")
        version = content.pop("format", None)
        if version is None or not any(np.array_equal(version, v) for v in range(1, NEWEST + 1)):
            reason = f"is no contact problem of format 1 to {NEWEST}, but of format {version}"
            raise InvalidInput(str(path), reason)
        try:
            return _from_arguments(unpack_sparse(content, str(path)))
        except (TypeError, KeyError) as error:  # an array too many or too few
            raise InvalidInput(str(path), f"is no contact problem: {error}") from error


_MATRICES = (*Matrices._fields, "delassus")


def from_arrays(arrays: Arrays, dt: float) -> ContactProblem:
    """The problem of arrays that a simulator has made, and leaves to it: finite, contiguous and of
    fitting shapes. Only the inertia is checked."""
    mass, factor, last = check.spd("mass", arrays.mass)
    problem = ContactProblem.__new__(ContactProblem)
    problem._fill(arrays._replace(mass=mass), factor, last, dt)
    return problem


def _sparse_form(mass: Any, normal: Any, tangent: Any, joint: Any, box: Any) -> SparseMass:
    """The matrices, of which one at least is sparse, checked."""
    inertia = sparse.mass_matrix(mass)
    nv = inertia.shape[0]
    normals = sparse.matrix("normal", normal, (-1, nv))
    return SparseMass(
        Matrices(
            inertia,
            normals,
            sparse.tangents(tangent, normals.shape[0], nv),
            sparse.matrix("joint", joint, (-1, nv)),
            sparse.matrix("box", box, (-1, nv)),
        )
    )


def _part_of(matrices: Matrices, island: Island) -> dict[str, Any]:
    """Those of an island, by name."""
    across = (2 * island.contacts[:, None] + np.arange(2)).ravel()
    rows = (island.dofs, island.contacts, across, island.joints, island.boxes)
    parts = zip(Matrices._fields, matrices, rows, strict=True)
    return {name: given[which][:, island.dofs] for name, given, which in parts}


def _from_arguments(arguments: dict[str, Any]) -> ContactProblem:
    if "delassus" not in arguments:
        return ContactProblem(**arguments)
    rest = dict(arguments)
    return ContactProblem.from_delassus(rest.pop("delassus"), rest.pop("free_velocity"), **rest)


def is_small(dofs: int, rows: int) -> bool:
    """Whether dense arrays of so many degrees of freedom and rows are small enough for the solvers
    that need them."""
    return max(dofs, rows) <= DENSE_LIMIT


def _locked(array: NDArray[N]) -> NDArray[N]:
    """A read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view
