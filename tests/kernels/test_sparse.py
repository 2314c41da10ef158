import numpy as np
import pytest

from stiction.kernels import sparse


def laid_out(sizes, edges, room=None):
    """A matrix with that graph, ordered; None where there was too little room."""
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n = len(sizes)
    blocks, entries = room or (n * n, int(start[-1]) ** 2)
    s = sparse.allocate(start, blocks, entries)
    for a, b in edges:
        sparse.connect(s, a, b)
    s.order[:] = np.arange(n)
    needed = sparse.order_nodes(s, 0, n, 0)
    return (s, needed) if s.column[n] <= blocks and needed <= entries else (None, needed)


def random_matrix(rng, sizes, edges, symmetric):
    start = np.concatenate([[0], np.cumsum(sizes)])
    A = np.zeros((start[-1], start[-1]))
    for a, b in [*edges, *((k, k) for k in range(len(sizes)))]:
        rows, columns = slice(start[a], start[a + 1]), slice(start[b], start[b + 1])
        A[rows, columns] += rng.normal(size=(sizes[a], sizes[b]))
        if a != b:
            A[columns, rows] += rng.normal(size=(sizes[b], sizes[a]))
    if symmetric:
        A = A + A.T
    return A + 3.0 * len(A) * np.eye(len(A))


def fill(s, A):
    """Writes the blocks of A where the factorization takes them from."""
    for x in (s.diagonal, s.lower, s.upper):
        x[:] = 0.0
    part = [slice(s.start[k], s.start[k + 1]) for k in range(len(s.order))]
    for p, node in enumerate(s.order):
        size = s.start[node + 1] - s.start[node]
        s.diagonal[s.corner[node] : s.corner[node] + size**2] = A[part[node], part[node]].ravel()
        for x in range(s.column[p], s.column[p + 1]):
            other = s.order[s.row[x]]
            below, right = A[part[other], part[node]], A[part[node], part[other]]
            s.lower[s.at[x] : s.at[x] + below.size] = below.ravel()
            s.upper[s.at[x] : s.at[x] + right.size] = right.ravel()


def grid(n):
    """Neighbours on a square of n by n nodes."""
    here = [(i * n + j, i * n + j + 1) for i in range(n) for j in range(n - 1)]
    return here + [(i * n + j, i * n + n + j) for i in range(n - 1) for j in range(n)]


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_random_graphs_of_blocks_of_all_sizes_are_solved(symmetric, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 90))
    sizes = rng.choice([1, 2, 6, 6, 6, 11], n)
    edges = (
        {tuple(sorted(rng.choice(n, 2, replace=False))) for _ in range(2 * n)} if n > 1 else set()
    )
    A = random_matrix(rng, sizes, edges, symmetric)
    s, _ = laid_out(sizes, edges)
    fill(s, A)
    sign = sparse.factor(s, 0, n, symmetric)
    x = rng.normal(size=len(A))
    y = A @ x
    sparse.solve(s, 0, n, y)
    np.testing.assert_allclose(y, x, atol=1e-10)
    assert sign == np.linalg.slogdet(A)[0]


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("sizes", [[3], [3, 3, 6, 1]], ids=["alone", "among others"])
def test_bodies_in_the_plane_are_solved(symmetric, sizes):
    rng = np.random.default_rng(1)
    edges = grid(8)
    sizes = rng.choice(sizes, 64)
    A = random_matrix(rng, sizes, edges, symmetric)
    if not symmetric:  # rows are exchanged inside of blocks
        order = np.concatenate([rng.permutation(np.arange(a, a + n)) for a, n in zip(
            np.cumsum(sizes) - sizes, sizes, strict=True)])  # fmt: skip
        A = A[order]
    s, _ = laid_out(sizes, edges)
    fill(s, A)
    sign = sparse.factor(s, 0, 64, symmetric)
    x = rng.normal(size=len(A))
    y = A @ x
    sparse.solve(s, 0, 64, y)
    np.testing.assert_allclose(y, x, atol=1e-10)
    assert sign == np.linalg.slogdet(A)[0]


@pytest.mark.parametrize("seed", range(4))
def test_a_row_s_inverse_inertia_takes_half_a_solution(seed):
    rng = np.random.default_rng(seed)
    n = 12
    sizes = rng.choice([1, 3, 6], n)
    edges = {tuple(sorted(rng.choice(n, 2, replace=False))) for _ in range(2 * n)}
    A = random_matrix(rng, sizes, edges, True)
    s, _ = laid_out(sizes, edges)
    fill(s, A)
    assert sparse.factor(s, 0, n, 1) == 1.0
    r = rng.normal(size=len(A)) * rng.integers(0, 2, len(A))
    expected = r @ np.linalg.solve(A, r)
    assert sparse.inverse_form(s, 0, n, r.copy()) == pytest.approx(expected, rel=1e-12)


def test_the_determinant_of_an_indefinite_matrix_is_found_negative():
    A = np.diag([1.0, -2.0, 3.0])
    A[0, 1] = 0.5
    s, _ = laid_out([1, 2], [(0, 1)])
    fill(s, A)
    assert sparse.factor(s, 0, 2, False) == -1.0


def test_a_singular_matrix_is_said_to_be():
    s, _ = laid_out([2, 1], [(0, 1)])
    fill(s, np.ones((3, 3)))
    assert sparse.factor(s, 0, 2, False) == 0.0


def test_a_symmetric_matrix_that_is_not_positive_is_said_to_be():
    s, _ = laid_out([1, 1], [(0, 1)])
    fill(s, np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert sparse.factor(s, 0, 2, True) == 0.0


def test_least_degree_leaves_little_fill():
    """A grid in natural order fills 19 blocks a column; a chain none in any order of leaves."""
    n = 20
    s, _ = laid_out([6] * n**2, grid(n))
    assert s.column[n**2] < 10 * n**2
    chain, _ = laid_out([6] * 100, [(k, k + 1) for k in range(99)])
    assert chain.column[100] == 99


def test_too_little_room_is_told_without_writing_past_the_end():
    found, needed = laid_out([6] * 9, grid(3), room=(9, 9))
    assert found is None
    assert needed >= 0


def test_parts_that_nothing_couples_are_factored_apart():
    rng = np.random.default_rng(0)
    edges = [(0, 1), (2, 3)]
    A = random_matrix(rng, [3, 3, 6, 6], edges, False)
    start = np.array([0, 3, 6, 12, 18])
    s = sparse.allocate(start, 8, 400)
    for a, b in edges:
        sparse.connect(s, a, b)
    s.order[:] = np.arange(4)
    entries = sparse.order_nodes(s, 0, 2, 0)
    sparse.order_nodes(s, 2, 4, entries)
    fill(s, A)
    x = rng.normal(size=18)
    y = A @ x
    for low, high in ((0, 2), (2, 4)):
        assert sparse.factor(s, low, high, False) != 0.0
        sparse.solve(s, low, high, y)
    np.testing.assert_allclose(y, x, atol=1e-12)
