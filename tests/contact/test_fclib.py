"""FCLIB's files: written here by h5py in FCLIB's layout, and by `fclib.write`."""

import sys

import h5py
import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

from stiction.contact import ContactProblem, Coulomb, fclib
from stiction.errors import InvalidInput, StictionError
from stiction.reproduce.heaps import Discs

STORAGES = ("triplets", "columns", "rows")


def put_matrix(group, matrix, storage="columns", room=0):
    """The matrix as `write_matrix` of fclib.h has it; room for more entries than it has."""
    if storage == "triplets":
        kept = coo_array(matrix)
        nz, p, i = kept.nnz, kept.row, kept.col
    else:
        kept = (csc_array if storage == "columns" else csr_array)(matrix)
        nz, p, i = (-1 if storage == "columns" else -2), kept.indptr, kept.indices
    scalars = {"m": matrix.shape[0], "n": matrix.shape[1], "nz": nz, "nzmax": kept.nnz + room}
    for name, value in scalars.items():
        group.create_dataset(name, data=np.array([value], np.int32))
    group.create_dataset("p", data=np.asarray(p, np.int32))
    group.create_dataset("i", data=np.append(i, np.zeros(room)).astype(np.int32))
    group.create_dataset("x", data=np.append(kept.data, np.zeros(room)))


def put(path, group, dimension, matrices, vectors, storage="columns", room=0):
    with h5py.File(path, "w") as file:
        top = file.create_group(group)
        top.create_dataset("spacedim", data=np.array([dimension], np.int32))
        for name, matrix in matrices.items():
            put_matrix(top.create_group(name), np.asarray(matrix, float), storage, room)
        for name, vector in vectors.items():
            top.create_dataset(f"vectors/{name}", data=np.asarray(vector, float))
    return path


def local_arrays(dimension, seed=0, nc=3):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((dimension * nc, 6))
    return rows @ rows.T, -rng.uniform(0.1, 1.0, dimension * nc), rng.uniform(0.2, 0.9, nc)


def global_arrays(dimension, seed=0, nv=7, nc=2, nj=1):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((nv, nv))
    w = np.zeros((nc, dimension))
    w[:, 0] = rng.uniform(-0.1, 0.1, nc)
    return {
        "M": root @ root.T + nv * np.eye(nv),
        "H": rng.standard_normal((nv, dimension * nc)),
        "G": rng.standard_normal((nv, nj)),
    }, {
        "f": rng.standard_normal(nv),
        "w": w.ravel(),
        "mu": rng.uniform(0.2, 0.9, nc),
        "b": rng.standard_normal(nj),
    }


@pytest.fixture
def local_file(tmp_path):
    W, q, mu = local_arrays(3)
    return put(tmp_path / "local.hdf5", "fclib_local", 3, {"W": W}, {"q": q, "mu": mu})


@pytest.fixture
def global_file(tmp_path):
    return put(tmp_path / "global.hdf5", "fclib_global", 3, *global_arrays(3))


@pytest.mark.parametrize("room", [0, 5])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dimension", [2, 3])
def test_a_local_problem_is_read_from_every_storage(tmp_path, dimension, storage, room):
    W, q, mu = local_arrays(dimension)
    path = tmp_path / "p.hdf5"
    put(path, "fclib_local", dimension, {"W": W}, {"q": q, "mu": mu}, storage, room)
    problem = fclib.read(path)
    assert problem.dimension == dimension
    assert np.allclose(problem.delassus, W, rtol=1e-14)
    assert np.array_equal(problem.velocity, q)
    assert np.array_equal(problem.friction, mu)


def test_triplets_that_come_twice_are_added(tmp_path):
    W, q, mu = local_arrays(3)
    path = put(tmp_path / "p.hdf5", "fclib_local", 3, {"W": W}, {"q": q, "mu": mu}, "triplets")
    with h5py.File(path, "a") as file:
        group = file["fclib_local/W"]
        for name in "pix":
            twice = np.tile(group[name][()], 2)
            del group[name]
            group[name] = twice
        group["nz"][0] *= 2
    assert np.allclose(fclib.read(path).delassus, 2.0 * W)


def test_the_matrix_of_an_unsymmetric_storage_is_not_transposed(tmp_path):
    for storage in STORAGES:
        matrices, vectors = global_arrays(2)
        path = tmp_path / f"{storage}.hdf5"
        problem = fclib.read(put(path, "fclib_global", 2, matrices, vectors, storage))
        assert np.array_equal(problem.joint, matrices["G"].T)


@pytest.mark.parametrize("dimension", [2, 3])
def test_a_global_problem_has_mass_contacts_and_joints(tmp_path, dimension):
    matrices, vectors = global_arrays(dimension)
    problem = fclib.read(put(tmp_path / "p.hdf5", "fclib_global", dimension, matrices, vectors))
    solution = Coulomb().solve(problem)
    assert solution.status == "solved"
    M, H, G = (matrices[name] for name in "MHG")
    v = solution.velocity
    r = np.column_stack([solution.normal, solution.tangent])[:, :dimension].ravel()
    u = (H.T @ v + vectors["w"]).reshape(-1, dimension)
    assert np.allclose(M @ v, H @ r + G @ solution.joint + vectors["f"])
    assert np.allclose(G.T @ v + vectors["b"], 0.0)
    assert (u[:, 0] >= -1e-9).all()
    assert np.allclose(u[:, 0] * solution.normal, 0.0, atol=1e-9)
    held = vectors["mu"] * solution.normal
    assert (np.linalg.norm(solution.tangent, axis=1) <= held + 1e-9).all()


def test_a_global_problem_without_joints_needs_neither_g_nor_b(tmp_path):
    matrices, vectors = global_arrays(3)
    del matrices["G"], vectors["b"]
    problem = fclib.read(put(tmp_path / "p.hdf5", "fclib_global", 3, matrices, vectors))
    assert problem.nj == 0


def test_local_and_global_forms_of_a_problem_have_one_answer(tmp_path):
    matrices, vectors = global_arrays(3, seed=4)
    whole = Coulomb().solve(
        fclib.read(put(tmp_path / "g.hdf5", "fclib_global", 3, matrices, vectors))
    )
    M, H, G = (matrices[name] for name in "MHG")
    Mi = np.linalg.inv(M)
    reduced = {"W": H.T @ Mi @ H, "V": H.T @ Mi @ G, "R": G.T @ Mi @ G}
    right = {
        "q": H.T @ Mi @ vectors["f"] + vectors["w"],
        "s": G.T @ Mi @ vectors["f"] + vectors["b"],
        "mu": vectors["mu"],
    }
    path = put(tmp_path / "l.hdf5", "fclib_local", 3, reduced, right)
    local = Coulomb().solve(fclib.read(path))
    assert local.status == "solved"
    u = H.T @ whole.velocity + vectors["w"]
    assert np.allclose(local.velocity, u, atol=1e-7)


@pytest.mark.parametrize("dimension", [2, 3])
def test_a_local_problem_and_its_solution_come_back(tmp_path, dimension):
    W, q, mu = local_arrays(dimension)
    bound = np.array([0.1, 0.0, -0.2])
    problem = ContactProblem.from_delassus(W, q, friction=mu, bound=bound, dimension=dimension)
    solution = Coulomb().solve(problem)
    path = fclib.write(tmp_path / "p.hdf5", problem, solution)
    again, found = fclib.read(path), fclib.read_solution(path)
    assert np.array_equal(again.delassus, problem.delassus)
    assert np.allclose(again.velocity.reshape(-1, dimension)[:, 0], q[::dimension] - bound)
    assert np.array_equal(found.normal, solution.normal)
    assert np.array_equal(found.tangent, solution.tangent)
    assert np.array_equal(found.modes, solution.modes)
    assert found.status == "solved"


@pytest.mark.parametrize("dimension", [2, 3])
def test_a_problem_with_mass_and_its_solution_come_back(tmp_path, dimension):
    rng = np.random.default_rng(1)
    tangent = rng.standard_normal((2, 2, 6))
    tangent[:, dimension - 1 :] = 0.0
    problem = ContactProblem(
        mass=np.diag(rng.uniform(1, 2, 6)), velocity=rng.standard_normal(6), dt=0.01,
        force=rng.standard_normal(6), normal=rng.standard_normal((2, 6)), tangent=tangent,
        friction=[0.5, 0.0], bound=[-0.1, 0.2], joint=rng.standard_normal((1, 6)),
        joint_target=0.3,
    )  # fmt: skip
    solution = Coulomb().solve(problem)
    path = fclib.write(tmp_path / "p.hdf5", problem, solution)
    with h5py.File(path) as file:
        assert file["fclib_global/spacedim"][0] == dimension
        assert file["solution/r"].shape == (2 * dimension,)
        assert file["solution/u"][0] == pytest.approx(problem.normal[0] @ solution.velocity + 0.1)
    again, found = fclib.read(path), fclib.read_solution(path)
    for name in ("mass", "normal", "tangent", "friction", "bound", "joint", "joint_target"):
        assert np.array_equal(getattr(again, name), getattr(problem, name)), name
    assert np.allclose(again.free_velocity, problem.free_velocity)
    assert np.array_equal(found.velocity, solution.velocity)
    assert np.array_equal(found.joint, solution.joint)
    assert found.status == "solved"
    assert np.allclose(Coulomb().solve(again).velocity, solution.velocity)


def test_what_is_written_has_fclibs_types(tmp_path):
    W, q, mu = local_arrays(3)
    fclib.write(tmp_path / "p.hdf5", ContactProblem.from_delassus(W, q, friction=mu))
    with h5py.File(tmp_path / "p.hdf5") as file:
        group = file["fclib_local"]
        for name in ("spacedim", "W/m", "W/n", "W/nz", "W/nzmax"):
            assert group[name].shape == (1,)
        for name in ("spacedim", "W/m", "W/n", "W/nz", "W/nzmax", "W/p", "W/i"):
            assert group[name].dtype == np.int32
        for name in ("W/x", "vectors/q", "vectors/mu"):
            assert group[name].dtype == np.float64
        assert group["W/nzmax"][0] == len(group["W/x"]) == len(group["W/i"])


def test_a_solution_that_is_none_does_not_pass(local_file):
    with h5py.File(local_file, "a") as file:
        file["solution/u"], file["solution/r"] = np.zeros(9), np.zeros(9)
    found = fclib.read_solution(local_file)
    assert found.status == "error"
    assert not found.certificate.passed


def test_guesses_are_warm_starts(local_file):
    assert fclib.read_guesses(local_file) == []
    problem = fclib.read(local_file)
    solution = Coulomb().solve(problem)
    with h5py.File(local_file, "a") as file:
        file["guesses/number_of_guesses"] = np.array([1], np.int32)
        file["guesses/1/u"] = solution.velocity
        file["guesses/1/r"] = np.column_stack([solution.normal, solution.tangent]).ravel()
    (guess,) = fclib.read_guesses(local_file)
    assert np.array_equal(guess.normal, solution.normal)
    assert Coulomb().solve(problem, start=guess).status == "solved"


def change(path, name, value=None):
    """Puts another value in the place of a dataset, or none."""
    with h5py.File(path, "a") as file:
        old = file[name][()] if isinstance(file[name], h5py.Dataset) else None
        del file[name]
        if value is not None:
            file[name] = value(old)


def spoil(entry):
    def changed(old):
        new = old.astype(float) if np.isnan(entry) else old.copy()
        new[1] = entry
        return new

    return changed


@pytest.mark.parametrize(
    ("name", "value", "place", "said"),
    [
        ("W", None, "W/m", "is missing"),
        ("W/p", None, "W/p", "is missing"),
        ("vectors", None, "vectors/q", "is missing"),
        ("vectors/mu", None, "vectors/mu", "is missing"),
        ("spacedim", lambda old: old + 1, "spacedim", "is 4"),
        ("spacedim", lambda old: old - 1, "W/m", "no multiple of spacedim"),
        ("W/m", lambda old: old + 3, "vectors/q", "must have 12 entries"),
        ("W/n", lambda old: old + 3, "W/n", "is 12: must be 9"),
        ("W/nz", lambda old: old - 2, "W/nz", "whole number, -2 or more"),
        ("W/p", lambda old: old[:-1], "W/p", "must be 10 offsets"),
        ("W/p", lambda old: old[::-1], "W/p", "do not fall"),
        ("W/i", lambda old: old[:-1], "W/i", "must have 81 entries"),
        ("W/i", spoil(9), "W/i[1]", "from 0 to 8"),
        ("W/i", spoil(-1), "W/i[1]", "from 0 to 8"),
        ("W/x", lambda old: old[:-1], "W/x", "must have 81 entries"),
        ("W/x", spoil(np.nan), "W/x[1]", "is nan"),
        ("W/x", lambda old: -old, "W[", "not negative"),
        ("W/x", lambda old: "text", "W/x", "list of numbers"),
        ("vectors/q", lambda old: old[:-1], "vectors/q", "must have 9 entries"),
        ("vectors/q", spoil(np.nan), "vectors/q[1]", "is nan"),
        ("vectors/mu", lambda old: -old, "vectors/mu[0]", "lies in [0, inf]"),
    ],
)
def test_a_bad_local_file_is_refused_by_file_and_dataset(local_file, name, value, place, said):
    change(local_file, f"fclib_local/{name}", value)
    with pytest.raises(InvalidInput) as refused:
        fclib.read(local_file)
    assert f"{local_file}:/fclib_local/{place}" in str(refused.value)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "place", "said"),
    [
        ("H", None, "H/n", "is missing"),
        ("H/m", lambda old: old + 1, "H/m", "must be 7"),
        ("G/m", lambda old: old + 1, "G/m", "must be 7"),
        ("M/x", lambda old: -old, "M[", "positive inertia"),
        ("vectors/b", None, "vectors/b", "is missing"),
        ("vectors/f", spoil(np.nan), "vectors/f[1]", "is nan"),
        ("vectors/w", spoil(0.5), "vectors/w[1]", "no tangential velocity"),
    ],
)
def test_a_bad_global_file_is_refused_by_file_and_dataset(global_file, name, value, place, said):
    change(global_file, f"fclib_global/{name}", value)
    with pytest.raises(InvalidInput) as refused:
        fclib.read(global_file)
    assert f"{global_file}:/fclib_global/{place}" in str(refused.value)
    assert said in str(refused.value)


def test_files_that_hold_no_problem_are_refused(tmp_path, local_file):
    with pytest.raises(InvalidInput, match=r"local.hdf5:/solution: is missing"):
        fclib.read_solution(local_file)
    whole = local_file.read_bytes()
    for count in range(0, len(whole), len(whole) // 20):
        (tmp_path / "cut.hdf5").write_bytes(whole[:count])
        with pytest.raises(InvalidInput, match=r"cut\.hdf5"):
            fclib.read(tmp_path / "cut.hdf5")
    with h5py.File(tmp_path / "empty.hdf5", "w"):
        pass
    with pytest.raises(InvalidInput, match=r"empty\.hdf5: has no group fclib_local"):
        fclib.read(tmp_path / "empty.hdf5")
    with h5py.File(tmp_path / "rolling.hdf5", "w") as file:
        file.create_group("fclib_global_rolling")
    with pytest.raises(InvalidInput, match="rolling friction"):
        fclib.read(tmp_path / "rolling.hdf5")
    with pytest.raises(FileNotFoundError):
        fclib.read(tmp_path / "absent.hdf5")


def test_equalities_that_depend_on_each_other_are_refused(tmp_path):
    W, q, mu = local_arrays(3)
    matrices = {"W": W, "V": np.ones((9, 2)), "R": np.zeros((2, 2))}
    path = put(
        tmp_path / "p.hdf5", "fclib_local", 3, matrices, {"q": q, "mu": mu, "s": np.zeros(2)}
    )
    with pytest.raises(InvalidInput, match=r"fclib_local/R .*singular"):
        fclib.read(path)


def test_what_fclib_has_no_place_for_is_not_written(tmp_path):
    common = {
        "mass": np.eye(2), "velocity": np.zeros(2), "force": np.zeros(2), "dt": 0.01,
        "normal": [[1.0, 0.0]],
    }  # fmt: skip
    refused = {
        "box": ContactProblem(**common, box=[[0.0, 1.0]], box_limit=1.0),
        "viscosity": ContactProblem(**common, viscosity=0.1),
        "no contacts": ContactProblem(**{**common, "normal": None}),
    }
    for said, problem in refused.items():
        with pytest.raises(InvalidInput, match=said):
            fclib.write(tmp_path / "p.hdf5", problem)
    assert not (tmp_path / "p.hdf5").exists()


def test_without_h5py_the_error_names_the_extra(monkeypatch, local_file):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(StictionError, match=r"stiction\[fclib\]"):
        fclib.read(local_file)


def test_problems_are_written_from_sparse_arrays_and_read_into_them_where_asked(tmp_path):
    problem = Discs(5, 4).problem()
    path = fclib.write(tmp_path / "discs.hdf5", problem)
    dense, again = fclib.read(path), fclib.read(path, sparse=True)
    assert not dense.is_sparse
    assert again.is_sparse
    for name in ("mass", "normal", "tangent"):
        expected = getattr(problem, name).toarray()
        np.testing.assert_allclose(getattr(again, name).toarray(), expected, rtol=1e-15)
        np.testing.assert_allclose(getattr(dense, name).reshape(expected.shape), expected)
    W = csr_array(np.diag([1.0, 2.0, 3.0]))
    local = ContactProblem.from_delassus(W, [-1.0, 0.5, 0.0], friction=0.3)
    path = fclib.write(tmp_path / "local.hdf5", local)
    assert not fclib.read(path).is_sparse
    np.testing.assert_array_equal(fclib.read(path, sparse=True).delassus.toarray(), W.toarray())
