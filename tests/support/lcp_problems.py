"""Random LCPs of the classes that contact and the literature give rise to, n <= 10."""

import numpy as np


def positive_definite(rng, n):
    A = rng.normal(size=(n, n))
    return A @ A.T + 0.1 * np.eye(n), rng.normal(size=n)


def low_rank(rng, n):
    """PSD of low rank with duplicated rows; q in the range, as redundant contacts give it."""
    rank = max(1, n // 2)
    A = rng.normal(size=(n, rank))
    for _ in range(n // 3):
        i, j = rng.integers(n, size=2)
        A[i] = A[j]
    return A @ A.T, A @ rng.normal(size=rank)


def contact(rng, n):
    """Copositive-plus: one or two contacts with d facets on a body of 3 or 6 dofs."""
    contacts = 2 if n >= 8 else 1
    facets = max(2, n // contacts - 2)
    rows = rng.normal(size=(contacts * (1 + facets), int(rng.choice([3, 6]))))
    for c in range(contacts):  # facet directions span a plane and come in opposite pairs
        first = contacts + c * facets
        plane = rng.normal(size=(2, rows.shape[1]))
        angle = 2 * np.pi * np.arange(facets) / facets
        rows[first : first + facets] = np.cos(angle)[:, None] * plane[0]
        rows[first : first + facets] += np.sin(angle)[:, None] * plane[1]
    if contacts == 2 and rng.random() < 0.3:
        rows[1] = rows[0]
    mu = rng.uniform(0.1, 1.5, contacts)
    E = np.kron(np.eye(contacts), np.ones((facets, 1)))
    top = rows @ rows.T
    m = len(rows)
    M = np.zeros((m + contacts, m + contacts))
    M[:m, :m] = top
    M[contacts:m, m:] = E
    M[m:, :contacts] = np.diag(mu)
    M[m:, contacts:m] = -E.T
    q = np.concatenate([rows @ rng.normal(size=rows.shape[1]), np.zeros(contacts)])
    return M, q


def p_matrix(rng, n):
    """Diagonally dominant with a positive diagonal, not symmetric: a P-matrix."""
    M = rng.normal(size=(n, n))
    np.fill_diagonal(M, np.abs(M).sum(axis=1) + 0.01)
    return M, rng.normal(size=n)


def z_matrix(rng, n):
    """Off-diagonal entries not positive: solvable exactly if feasible."""
    M = -rng.random((n, n))
    np.fill_diagonal(M, rng.uniform(0.0, n, n))
    return M, rng.normal(size=n)


def integer(rng, n):
    """Small integers: ties and zeros everywhere."""
    A = rng.integers(-1, 2, size=(n, max(1, n - 2)))
    return (A @ A.T).astype(float), (A @ rng.integers(-2, 3, size=A.shape[1])).astype(float)


def integer_any(rng, n):
    """Small integers, no structure: often without a solution."""
    return (
        rng.integers(-2, 3, size=(n, n)).astype(float),
        rng.integers(-2, 3, size=n).astype(float),
    )


CONTACT_TYPE = (positive_definite, low_rank, contact, p_matrix, integer)
"""Classes in which every problem has a solution, so none may be missed."""

ALL = (*CONTACT_TYPE, z_matrix, integer_any)
