"""Checks of a contact problem's arrays: each failure names the array, its shape, the index.

Every function returns a fresh, C-ordered, float64 copy, so that a problem shares no memory
with the caller and is never changed behind its back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiction.errors import InvalidInput, real_numbers
from stiction.kernels.linear import factorize

Array = NDArray[np.float64]

MASS_ASYMMETRY = 1e-6
"""Largest |M_ij - M_ji| / sqrt(M_ii M_jj) taken for rounding and averaged away: what single
precision leaves. Beyond it the array is not an inertia, but a Jacobian or a mistake."""

DELASSUS_ASYMMETRY = 1e-2
"""The same for a contact-space matrix. Published problems (Siconos' capsules) are off by
4e-3; a transposed block shows as 1."""

INDEFINITE = 1e-5
"""Largest negative eigenvalue of a contact-space matrix scaled to a unit diagonal, relative to
its largest, taken for rounding: files with seven printed digits show 1e-7."""


def real(name: str, value: Any, shape: tuple[int, ...], *, finite: bool = True) -> Array:
    """`value` as a float64 copy of `shape`, where -1 stands for any length."""
    raw = real_numbers(name, value)
    if raw.ndim != len(shape) or any(
        want not in (-1, got) for want, got in zip(shape, raw.shape, strict=True)
    ):
        wanted = f"have shape {shape}".replace("-1", "any") if shape else "be one number"
        raise InvalidInput(name, f"must {wanted}", raw.shape)
    array = np.array(raw, dtype=np.float64, order="C")
    if finite:
        allowed = np.isfinite(array)
        if not allowed.all():
            _require(name, array, allowed, "is {value}: every entry must be finite")
    return array


def per_row(name: str, value: Any, rows: int, default: float | None = None) -> Array:
    """`value` (rows,), finite; a scalar serves every row, None means `default`."""
    if value is None and default is not None:
        return np.full(rows, default)
    value = real_numbers(name, value)
    if value.ndim == 0:
        return np.full(rows, real(name, value, ()))
    return real(name, value, (rows,))


def nonnegative(name: str, value: Any, rows: int, advice: str, *, infinite: bool) -> Array:
    """`value` (rows,) or scalar, every entry >= 0; inf only if `infinite`."""
    value = real_numbers(name, value)
    scalar = value.ndim == 0
    array = real(name, value, () if scalar else (rows,), finite=False)
    allowed = array >= 0.0  # false for nan as well
    if not infinite:
        allowed &= array < np.inf
    if not allowed.all():
        _require(name, array, allowed, "is {value}: " + advice)
    return np.full(rows, array) if scalar else array


def indices(name: str, value: Any, rows: int, count: int, advice: str) -> NDArray[np.int64]:
    """`value` (rows,) or scalar, whole numbers from -1 (none) to count - 1."""
    array = per_row(name, value, rows)
    allowed = (array >= -1.0) & (array < count) & (array == np.floor(array))
    if not allowed.all():
        _require(name, array, allowed, "is {value:g}: " + advice)
    return array.astype(np.int64)


def positive_scalar(name: str, value: Any, advice: str) -> float:
    """`value` as a finite float > 0."""
    number = float(real(name, value, ()))
    if not number > 0.0:
        raise InvalidInput(name, f"is {number}: {advice}")
    return number


def spd(name: str, value: Any) -> tuple[Array, Array, NDArray[np.int64]]:
    """The symmetric positive definite `value` (n, n), and its factor as `whitening` has it."""
    raw = real_numbers(name, value)
    if raw.ndim != 2 or raw.shape[0] != raw.shape[1]:
        raise InvalidInput(name, "must be square, (nv, nv)", raw.shape)
    matrix = real(name, raw, raw.shape)
    diagonal = matrix.diagonal()
    if diagonal.size and not diagonal.min() > 0.0:
        index = int(np.argmin(diagonal))
        reason = f"is {diagonal[index]}: a degree of freedom needs a positive inertia"
        raise InvalidInput(name, reason, matrix.shape, (index, index))
    matrix, _ = _symmetrized(name, matrix, MASS_ASYMMETRY)
    upper, last = np.empty_like(matrix), np.empty(len(matrix), np.int64)
    row = factorize(matrix, upper, last, 4 * len(matrix) * np.finfo(float).eps)
    if row < 0:
        return matrix, upper, last
    reason = (
        f"is not positive definite: row {row} depends on those before it, or has a "
        "negative inertia; check its units and couplings, or add armature"
    )
    raise InvalidInput(name, reason, matrix.shape, (row, row))


def psd(name: str, value: Any, size: int) -> tuple[Array, float, Array, float]:
    """The symmetric part of the positive semidefinite `value` (size, size), and a factor.

    Returns the symmetric part, its asymmetry max |W_ij - W_ji| / sqrt(W_ii W_jj), rows
    (size, rank) with rows rows' nearest to it, and the indefiniteness, minus the least
    eigenvalue over the largest, both of the matrix scaled to a unit diagonal.
    """
    matrix = real(name, value, (size, size))
    if size == 0:
        return matrix, 0.0, matrix, 0.0
    diagonal = matrix.diagonal()
    if diagonal.min() < 0.0:
        index = int(np.argmin(diagonal))
        reason = f"is {diagonal[index]}: an inverse inertia is not negative"
        raise InvalidInput(name, reason, matrix.shape, (index, index))
    matrix, asymmetry = _symmetrized(name, matrix, DELASSUS_ASYMMETRY)
    root = np.sqrt(matrix.diagonal())
    inverse = np.divide(1.0, root, out=np.zeros(size), where=root > 0.0)
    # Scaled to a unit diagonal first: otherwise heavy bodies drown in the light ones' rounding.
    values, vectors = np.linalg.eigh(inverse[:, None] * matrix * inverse)
    largest = max(float(values[-1]), 0.0)
    if largest == 0.0:
        return matrix, asymmetry, np.zeros((size, 0)), 0.0
    indefiniteness = max(0.0, -float(values[0]) / largest)
    if indefiniteness > INDEFINITE:
        worst = int(np.argmax(np.abs(vectors[:, 0])))
        reason = (
            f"is not positive semidefinite: scaled to a unit diagonal its eigenvalues reach from "
            f"{values[0]:.3g} to {largest:.3g}, most of it at row {worst}; check signs and order"
        )
        raise InvalidInput(name, reason, matrix.shape, (worst, worst))
    kept = values > size * np.finfo(float).eps * largest
    rows = root[:, None] * (vectors[:, kept] * np.sqrt(values[kept]))
    return matrix, asymmetry, np.ascontiguousarray(rows), indefiniteness


def _symmetrized(name: str, matrix: Array, limit: float) -> tuple[Array, float]:
    """The symmetric part of `matrix`, and how far it was from it; raises beyond `limit`."""
    difference = np.abs(matrix - matrix.T)
    if not difference.any():
        return matrix, 0.0
    root = np.sqrt(matrix.diagonal())
    scale = root[:, None] * root
    # Where a diagonal entry is zero its row must be zero too, for any semidefinite matrix.
    off = np.where(difference > limit * scale, np.inf, 0.0)
    np.divide(difference, scale, out=off, where=scale > 0.0)
    asymmetry = float(off.max())
    if asymmetry > limit:
        i, j = (int(k) for k in np.unravel_index(int(np.argmax(off)), off.shape))
        reason = (
            f"is {matrix[i, j]:.6g}, but entry ({j}, {i}) is {matrix[j, i]:.6g}: the matrix must "
            f"be symmetric to {limit:g} of its diagonal"
        )
        raise InvalidInput(name, reason, matrix.shape, (i, j))
    return 0.5 * (matrix + matrix.T), asymmetry


def _require(name: str, array: Array, allowed: NDArray[np.bool_], reason: str) -> None:
    """Raises at the first entry that is not `allowed`."""
    wrong = np.argwhere(~allowed)
    if len(wrong):
        index = tuple(int(i) for i in wrong[0])
        text = reason.format(value=array[index])
        raise InvalidInput(name, text, array.shape or None, index or None)


def refuse_tied_rows(box_contact: NDArray[np.int64], box_friction: Array, who: str) -> None:
    """Raises InvalidInput if a box row's limit grows with a normal impulse: `who` has no torsional
    or rolling friction."""
    tied = np.flatnonzero((box_contact >= 0) & (box_friction > 0.0))
    if tied.size:
        row = int(tied[0])
        reason = (
            f"is {box_contact[row]}: {who} has no torsional or rolling friction (a geom's condim 4 "
            "or 6); use Coulomb, or leave box_friction out"
        )
        raise InvalidInput("box_contact", reason, box_contact.shape, (row,))


def impulse(name: str, value: ArrayLike | None, shape: tuple[int, ...]) -> Array:
    """`value` as a contiguous, writable float64 array of `shape`, zeros for None.

    Copied only where it has to be. Not checked for finiteness: a certificate grades what it
    is given, and grades NaN as infinitely wrong.
    """
    if value is None:
        return np.zeros(shape)
    array = np.ascontiguousarray(real_numbers(name, value), dtype=np.float64)
    if array.shape != shape:
        raise InvalidInput(name, f"must have shape {shape}", array.shape)
    return array if array.flags.writeable else array.copy()


def dof_rows(name: str, value: Any, nv: int) -> Array:
    """(rows, nv) finite rows; none for None."""
    return np.zeros((0, nv)) if value is None else real(name, value, (-1, nv))


def friction_of(value: ArrayLike | None, nc: int, *, needed: bool) -> Array:
    """(nc,) coefficients of friction; zeros for None, which is refused where they are needed."""
    if value is None:
        if needed and nc:
            reason = "is missing: tangents need mu per contact (0: frictionless, inf: no limit)"
            raise InvalidInput("friction", reason)
        value = 0.0
    advice = "a coefficient of friction lies in [0, inf]"
    return nonnegative("friction", value, nc, advice, infinite=True)


def viscosity_of(value: ArrayLike | None, nc: int) -> Array:
    """(nc,) viscosities; zeros for None."""
    advice = "viscosity is a finite number >= 0 in N s/m"
    given = 0.0 if value is None else value
    return nonnegative("viscosity", given, nc, advice, infinite=False)


def box_friction_of(
    contact: ArrayLike | None, ratio: ArrayLike | None, nb: int, nc: int
) -> tuple[NDArray[np.int64], Array]:
    """(nb,) contacts, -1 for none, and limits per normal impulse, checked."""
    advice = f"the number of one of {nc} contacts, or -1 for none"
    which = indices("box_contact", -1 if contact is None else contact, nb, nc, advice)
    given = 0.0 if ratio is None else ratio
    advice = "a ratio of impulses is a finite number >= 0"
    ratios = nonnegative("box_friction", given, nb, advice, infinite=False)
    if contact is not None and np.ndim(given) == 0:
        return which, np.where(which < 0, 0.0, ratios)
    loose = np.flatnonzero((which < 0) & (ratios > 0.0))
    if loose.size:
        reason = f"is {ratios[loose[0]]:g}, but box_contact gives the row no contact"
        raise InvalidInput("box_friction", reason, ratios.shape, (int(loose[0]),))
    return which, ratios
