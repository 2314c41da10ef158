import pickle
from contextlib import suppress

import numpy as np
import pytest
from random_problem import NB, NC, NJ, NV, arguments, delassus_of, with_entry

from stiction.contact.problem.problem import ContactProblem
from stiction.errors import InvalidInput

BAD_SHAPES = [
    ("mass", np.eye(NV)[:5]),
    ("mass", np.ones(NV)),
    ("velocity", np.zeros(5)),
    ("velocity", np.zeros((NV, 1))),
    ("force", np.zeros(7)),
    ("normal", np.zeros((NC, 5))),
    ("normal", np.zeros(NV)),
    ("tangent", np.zeros((NC, 1, NV))),
    ("tangent", np.zeros((2, 2, NV))),
    ("tangent", np.zeros((NC, NV))),
    ("friction", np.zeros(2)),
    ("viscosity", np.zeros((NC, 1))),
    ("bound", np.zeros(4)),
    ("joint", np.zeros((NJ, 5))),
    ("joint_target", np.zeros(3)),
    ("box", np.zeros((NB, 7))),
    ("box_limit", np.zeros(3)),
    ("box_contact", np.zeros(3)),
    ("box_contact", np.zeros((NB, 1))),
    ("box_friction", np.zeros(1)),
    ("dt", np.zeros(2)),
]


@pytest.mark.parametrize(("name", "value"), BAD_SHAPES)
def test_a_wrong_shape_is_named_with_what_it_should_be(name, value):
    with pytest.raises(InvalidInput, match=name) as caught:
        ContactProblem(**{**arguments(), name: value})
    assert caught.value.name == name
    assert caught.value.shape == value.shape
    assert "must" in str(caught.value)


BAD_ENTRIES = [
    *((name, np.nan) for name in arguments() if name != "dt"),
    *((name, np.inf) for name in arguments() if name not in ("dt", "friction", "box_limit")),
    *((name, -0.1) for name in ("friction", "viscosity", "box_limit", "box_friction")),
    *(("box_contact", value) for value in (-2, 0.5, NC)),
    ("box_friction", 0.1),  # the last row has no contact
    *((name, -np.inf) for name in ("friction", "box_limit", "bound")),
]


def test_infinities_of_both_signs_are_refused_without_a_warning():
    velocity = [np.inf, -np.inf, 1e308, 1e308, 0, 0]
    with pytest.raises(InvalidInput, match=r"velocity\[0\]"):
        ContactProblem(**{**arguments(), "velocity": velocity})


@pytest.mark.parametrize(("name", "value"), BAD_ENTRIES)
def test_a_bad_entry_is_named_with_its_index(name, value):
    array = np.asarray(arguments()[name])
    index = tuple(length - 1 for length in array.shape)
    broken = with_entry(array, index, value)
    with pytest.raises(InvalidInput) as caught:
        ContactProblem(**{**arguments(), name: broken})
    assert caught.value.name == name
    assert caught.value.index == index
    assert caught.value.shape == array.shape


@pytest.mark.parametrize("dt", [0.0, -1e-3, np.nan, np.inf])
def test_a_step_needs_a_positive_finite_time(dt):
    with pytest.raises(InvalidInput, match="dt"):
        ContactProblem(**{**arguments(), "dt": dt})


@pytest.mark.parametrize("value", [np.zeros(NV) * 1j, ["a"] * NV, [None] * NV, [[1], [1, 2]]])
def test_what_is_not_real_numbers_is_refused(value):
    with pytest.raises(InvalidInput, match="velocity"):
        ContactProblem(**{**arguments(), "velocity": value})


def test_an_asymmetric_mass_is_named_with_the_pair():
    mass = with_entry(arguments()["mass"], (1, 4), 3.0)
    with pytest.raises(InvalidInput, match="symmetric") as caught:
        ContactProblem(**{**arguments(), "mass": mass})
    assert sorted(caught.value.index) == [1, 4]


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_an_indefinite_mass_is_named_with_its_row(unit):
    mass = np.diag([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    mass[3, 1] = mass[1, 3] = 3.0  # 2 * 4 < 9
    with pytest.raises(InvalidInput, match="positive definite") as caught:
        ContactProblem(**{**arguments(), "mass": unit * mass})
    assert caught.value.index == (3, 3)


def test_a_singular_mass_is_refused_in_spite_of_rounding():
    row = np.array([1.0, 2.0, 3.0, 0.1, 0.7, 0.3])
    mass = np.eye(NV)
    mass[:, 5] = mass[5, :] = 0.0
    transform = np.eye(NV) + 0.1 * np.outer(row, row)
    mass = transform @ mass @ transform.T
    with pytest.raises(InvalidInput, match="positive definite"):
        ContactProblem(**{**arguments(), "mass": 0.5 * (mass + mass.T)})


@pytest.mark.parametrize("entry", [0.0, -1.0])
def test_a_dof_without_inertia_is_named(entry):
    mass = with_entry(np.eye(NV), (2, 2), entry)
    with pytest.raises(InvalidInput, match="positive inertia") as caught:
        ContactProblem(**{**arguments(), "mass": mass})
    assert caught.value.index == (2, 2)


def test_tangents_without_friction_and_boxes_without_limits_are_refused():
    for missing in ("friction", "box_limit"):
        given = {**arguments(), missing: None}
        given["viscosity"] = None
        with pytest.raises(InvalidInput, match=f"{missing}: is missing"):
            ContactProblem(**given)


def test_rows_with_a_contact_need_no_limit_and_a_ratio_needs_a_contact():
    given = {**arguments(), "box_limit": None, "box_contact": [0, 0], "box_friction": 0.1}
    tied = ContactProblem(**given)
    assert tied.box_limit.tolist() == [0.0, 0.0]
    assert tied.box_contact.dtype == np.int64
    assert tied.box_friction.tolist() == [0.1, 0.1]
    with pytest.raises(InvalidInput, match="box_limit: is missing"):
        ContactProblem(**{**given, "box_contact": [0, -1]})
    with pytest.raises(InvalidInput, match=r"box_friction\[0\].*no contact"):
        ContactProblem(**{**arguments(), "box_contact": None, "box_friction": 0.1})
    some = ContactProblem(**{**arguments(), "box_contact": [-1, 1], "box_friction": 0.1})
    assert some.box_friction.tolist() == [0.0, 0.1]
    none = ContactProblem(**{**arguments(), "box_contact": None, "box_friction": None})
    assert none.box_contact.tolist() == [-1, -1]
    assert none.box_friction.tolist() == [0.0, 0.0]


def test_what_may_be_left_out_is_empty_or_zero():
    given = {name: arguments()[name] for name in ("mass", "velocity", "force", "dt")}
    bare = ContactProblem(**given)
    assert (bare.nc, bare.nj, bare.nb) == (0, 0, 0)
    assert bare.islands() == []
    np.testing.assert_allclose(bare.velocity_from(), bare.free_velocity, rtol=1e-15)
    limits = ContactProblem(**given, normal=arguments()["normal"])
    assert not limits.tangent.any()
    assert not limits.friction.any()
    assert not limits.bound.any()


def test_nothing_at_all_is_a_problem():
    none = ContactProblem(mass=np.zeros((0, 0)), velocity=[], force=[], dt=1.0)
    assert none.whitened.momentum.shape == (0,)
    assert none.velocity_from().shape == (0,)


def test_scalars_serve_every_row():
    given = {**arguments(), "friction": 0.5, "bound": -1, "box_limit": np.inf, "joint_target": 2}
    problem = ContactProblem(**given)
    assert problem.friction.tolist() == [0.5] * NC
    assert problem.bound.tolist() == [-1.0] * NC
    assert problem.box_limit.tolist() == [np.inf] * NB
    assert problem.joint_target.tolist() == [2.0] * NJ


def test_inputs_are_copied_and_attributes_locked():
    given = arguments()
    problem = ContactProblem(**given)
    given["velocity"][0] = 100.0
    assert problem.velocity[0] == arguments()["velocity"][0]
    with pytest.raises(ValueError, match="read-only"):
        problem.mass[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        problem.box_contact[0] = 1
    with pytest.raises(AttributeError, match="not changed"):
        problem.dt = 2.0


def test_any_layout_and_number_type_gives_the_same_problem():
    given = arguments()
    exact = {
        name: np.float64(np.float32(value)) if name != "mass" else np.diag(np.arange(1.0, 7.0))
        for name, value in given.items()
    }
    reference = ContactProblem(**exact)
    variants = [
        {name: np.asarray(value, np.float32) for name, value in exact.items()},
        {name: np.array(value, order="F") for name, value in exact.items()},
        {name: np.asarray(value).tolist() for name, value in exact.items()},
        {**exact, "mass": np.diag(np.arange(1, 7))},
        {**exact, "normal": np.repeat(exact["normal"], 2, axis=1)[:, ::2]},
    ]
    for variant in variants:
        before = {name: np.array(value) for name, value in variant.items()}
        problem = ContactProblem(**variant)
        for name in exact:
            np.testing.assert_array_equal(getattr(problem, name), getattr(reference, name))
            np.testing.assert_array_equal(variant[name], before[name])


def test_single_precision_asymmetry_of_the_mass_is_averaged_away():
    mass = arguments()["mass"]
    mass[0, 1] *= 1 + 1e-7
    problem = ContactProblem(**{**arguments(), "mass": mass})
    assert (problem.mass == problem.mass.T).all()


def test_whitened_rows_reproduce_velocities_under_impulses():
    problem = ContactProblem(**arguments())
    rng = np.random.default_rng(1)
    f_n, f_t = rng.normal(size=NC), rng.normal(size=(NC, 2))
    f_j, f_b = rng.normal(size=NJ), rng.normal(size=NB)
    v = problem.velocity_from(f_n, f_t, f_j, f_b)
    a = problem
    balance = a.mass @ (v - a.velocity) - a.dt * a.force
    balance -= f_n @ a.normal + f_j @ a.joint + f_b @ a.box + np.einsum("ik,ikj", f_t, a.tangent)
    np.testing.assert_allclose(balance, 0.0, atol=1e-13)

    w = problem.whitened
    push = f_n @ w.rows_normal + f_j @ w.rows_joint + f_b @ w.rows_box
    push += np.einsum("ik,ikj", f_t, w.rows_tangent)
    along = problem.contact_velocity(v)
    kwargs = {"rtol": 1e-11, "atol": 1e-12}
    np.testing.assert_allclose(
        w.free_normal + w.rows_normal @ push, along.normal - a.bound, **kwargs
    )
    np.testing.assert_allclose(w.free_tangent + w.rows_tangent @ push, along.tangent, **kwargs)
    joint = along.joint - a.joint_target
    np.testing.assert_allclose(w.free_joint + w.rows_joint @ push, joint, **kwargs)
    np.testing.assert_allclose(w.free_box + w.rows_box @ push, along.box, **kwargs)
    np.testing.assert_allclose(w.rows_normal @ w.momentum - a.bound, w.free_normal, **kwargs)
    assert all(array.flags.c_contiguous for array in w)
    assert problem.whitened is w


def test_a_problem_survives_saving_and_pickling_bit_by_bit(tmp_path):
    mass_problem = ContactProblem(**arguments())
    W = delassus_of(mass_problem)
    free = np.random.default_rng(2).normal(size=9)
    contact_space = ContactProblem.from_delassus(W, free, friction=[0.5, 0, np.inf], bound=-0.1)
    for problem in (mass_problem, contact_space):
        path = problem.save(tmp_path / "failed.problem")
        for copy in (ContactProblem.load(path), pickle.loads(pickle.dumps(problem))):
            assert copy.dt == problem.dt
            for name, array in problem.arrays._asdict().items():
                np.testing.assert_array_equal(getattr(copy.arrays, name), array)
            for ours, theirs in zip(problem.whitened, copy.whitened, strict=True):
                np.testing.assert_array_equal(ours, theirs)


def test_a_file_from_before_rows_had_contacts_is_loaded(tmp_path):
    later = ("box_contact", "box_friction")
    old = {name: value for name, value in arguments().items() if name not in later}
    path = tmp_path / "old.npz"
    np.savez(path, format=1, **old)
    problem = ContactProblem.load(path)
    assert problem.box_contact.tolist() == [-1, -1]
    assert problem.box_limit.tolist() == [0.2, 0.1]


def test_files_that_are_no_problem_are_refused(tmp_path):
    text = tmp_path / "notes.npz"
    text.write_text("not an archive")
    other = tmp_path / "other.npz"
    np.savez(other, mass=np.eye(2))
    later = tmp_path / "later.npz"
    np.savez(later, format=99, mass=np.eye(2))
    short = tmp_path / "short.npz"
    np.savez(short, format=1, mass=np.eye(2))
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, format=1, mass=np.array([{}], dtype=object))
    for path in (text, other, later, short, pickled):
        with pytest.raises(InvalidInput, match=path.name):
            ContactProblem.load(path)
    with pytest.raises(FileNotFoundError):
        ContactProblem.load(tmp_path / "absent.npz")


POINT = dict(mass=np.eye(2), velocity=np.zeros(2), force=np.zeros(2), dt=0.1)
WRONG = {
    "words": dict(velocity=["a", "b"]),
    "numbers as words": dict(velocity=["1", "2"]),
    "complex": dict(force=[1j, 0]),
    "ragged": dict(mass=[[1.0], [1.0, 2.0]]),
    "masked": dict(velocity=np.ma.array([1.0, 2.0], mask=[0, 1])),
    "objects": dict(force=[None, object()]),
    "step of words": dict(dt="long"),
    "list of steps": dict(dt=[0.1]),
    "ragged friction": dict(normal=[[1.0, 0.0]], friction=[[1.0], [1.0, 2.0]]),
    "words for friction": dict(normal=[[1.0, 0.0]], friction="rough"),
    "ragged bound": dict(normal=[[1.0, 0.0]], bound=[[1.0], [1.0, 2.0]]),
    "masked normal": dict(normal=np.ma.array([[1.0, 0.0]], mask=[[0, 1]])),
    "words for contacts": dict(box=[[1.0, 0.0]], box_contact=["a"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_array_of_numbers_is_refused_by_its_name(case):
    with pytest.raises(InvalidInput) as refusal:
        ContactProblem(**{**POINT, **WRONG[case]})
    assert refusal.value.name == list(WRONG[case])[-1]


@pytest.mark.parametrize("dimension", ["3", None, [3], 4, 2.5, np.nan])
def test_what_is_no_dimension_is_refused_by_its_name(dimension):
    with pytest.raises(InvalidInput, match="dimension"):
        ContactProblem.from_delassus(np.eye(3), np.zeros(3), friction=0.5, dimension=dimension)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_damaged_file_is_refused_and_never_a_raw_error(tmp_path, compressed):
    path = ContactProblem(**POINT, normal=[[1.0, 0.0]], bound=0.1).save(tmp_path / "one.npz")
    if compressed:
        with np.load(path) as file:
            np.savez_compressed(path, **{name: file[name] for name in file.files})
    whole, damaged = path.read_bytes(), tmp_path / "damaged.npz"
    rng = np.random.default_rng(0)
    for turn in range(300):
        content = bytearray(whole)
        if turn < 50:
            del content[int(rng.integers(len(whole))) :]
        else:
            for at in rng.integers(len(whole), size=int(rng.integers(1, 6))):
                content[at] = rng.integers(256)
        damaged.write_bytes(content)
        with suppress(InvalidInput):  # what was hit may be of no consequence
            ContactProblem.load(damaged)
