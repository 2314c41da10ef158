"""The scenes of clutter, stepped with exact contact."""

import mujoco
import numpy as np
import pytest

from stiction import Simulator, scenes
from stiction.errors import InvalidInput
from stiction.scenes.piles import RANGES, SHAPES

NAMES = ("bin", "wall", "rubble", "ragdoll")


def bodies(model):
    """Names of all but the world."""
    return [model.body(index).name for index in range(1, model.nbody)]


def fallen(name, seconds, **options):
    """Model and data of a scene after so long, positions up to date."""
    model, data, _ = scenes.load(name, **options)
    Simulator(model).step(data, round(seconds / model.opt.timestep))
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize("name", NAMES)
def test_a_hundred_steps_are_exact(name):
    model, data, controller = scenes.load(name)
    simulator = Simulator(model)
    worst = np.array([simulator.step(data).certificate.worst for _ in range(100)])
    assert controller is None
    assert np.mean(worst <= 1e-8) >= 0.99
    assert worst.max() <= 1e-6
    assert simulator.statistics.energy < 1e-9  # contact adds none


# --- Options --------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 5, 40])
def test_the_bin_holds_as_many_bodies_as_asked_for(count):
    model, _, _ = scenes.load("bin", count=count)
    assert len(bodies(model)) == count
    kinds = {name.rstrip("0123456789") for name in bodies(model)}
    assert len(kinds) == min(count, len(SHAPES))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_bodies_over_a_bin_do_not_overlap(seed):
    _, data, _ = scenes.load("bin", count=64, seed=seed)
    assert data.contact.dist.min() > -1e-12


def test_a_seed_says_how_the_bodies_of_a_bin_are_turned():
    first, again, other = (scenes.load("bin", seed=seed)[1].qpos for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_wall_has_the_courses_and_the_bricks_asked_for():
    model, data, _ = scenes.load("wall", courses=4, bricks=3, ball_mass=7.0, speed=2.5)
    assert len(bodies(model)) == 1 + 3 + 4 + 3 + 4
    assert model.body("ball").mass[0] == 7.0
    assert data.qvel[model.body("ball").dofadr[0]] == 2.5
    assert np.count_nonzero(data.qvel) == 1


def test_the_courses_of_a_wall_are_equally_long():
    model, data, _ = scenes.load("wall", courses=2, bricks=3)
    ends = [
        data.body(name).xpos[1] + sign * model.geom_size[model.body(name).geomadr[0], 1]
        for sign, names in ((-1, ("brick0_0", "brick1_0")), (1, ("brick0_2", "brick1_3")))
        for name in names
    ]
    assert ends[0] == pytest.approx(ends[1], abs=1e-15)
    assert ends[2] == pytest.approx(ends[3], abs=1e-15)


@pytest.mark.parametrize("stones", [3, 8, 11])
def test_rubble_is_the_arch_without_one_foot(stones):
    arch, _, _ = scenes.load("arch", stones=stones, thickness=0.3)
    model, _, _ = scenes.load("rubble", stones=stones, thickness=0.3)
    assert bodies(model) == [name for name in bodies(arch) if name != "stone0"]
    assert model.body_mass[1] == arch.body_mass[1]


@pytest.mark.parametrize("name", NAMES)
def test_friction_and_the_time_step_are_options(name):
    model, _, _ = scenes.load(name, friction=0.35, timestep=0.004)
    assert np.all(model.geom_friction[:, 0] == 0.35)
    assert model.opt.timestep == 0.004


@pytest.mark.parametrize("name", NAMES)
def test_an_option_that_is_none_is_refused_by_name(name):
    with pytest.raises(InvalidInput, match=f"^bricks_: no option of {name}; it has "):
        scenes.load(name, bricks_=3)


# --- What each of them shows ----------------------------------------------------------


def test_what_is_dropped_into_the_bin_stays_in_it():
    model, data = fallen("bin", 1.0, count=12)
    inner = data.geom("front").xpos[0]
    for name in bodies(model):
        assert np.abs(data.body(name).xpos[:2]).max() < inner
        assert 0.0 < data.body(name).xpos[2] < 2 * data.geom("front").xpos[2]


def test_the_ball_goes_through_the_wall():
    wall = {"courses": 4, "bricks": 2}
    _, data = fallen("wall", 0.3, **wall)
    assert data.body("ball").xpos[0] > 0.3
    assert data.body("brick2_0").xpos[0] > 0.1


def test_the_wall_stands_until_the_ball_comes():
    model, data, _ = scenes.load("wall", courses=4, bricks=2, speed=0.0)
    before = data.xpos.copy()
    Simulator(model).step(data, 100)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.xpos[2:], before[2:], atol=1e-9)


def test_the_arch_collapses_on_its_missing_foot():
    _, data = fallen("rubble", 1.2)
    assert data.body("keystone").xpos[2] < 0.3  # 1 at the start


def test_a_ragdoll_falls_and_keeps_its_joints_in_range():
    model, data, _ = scenes.load("ragdoll")
    assert model.nu == 0
    assert np.count_nonzero(model.jnt_limited) == 2 * len(RANGES)
    simulator = Simulator(model)
    low, high = model.jnt_range[1:].T
    for _ in range(50):
        simulator.step(data, 10)
        assert np.all(data.qpos[7:] > low - 0.01)
        assert np.all(data.qpos[7:] < high + 0.01)
    assert data.qpos[2] < 0.2  # 0.285 at the start


def test_the_limbs_of_a_ragdoll_touch_each_other():
    model, data, _ = scenes.load("ragdoll")
    data.qpos[model.joint("left_hip_roll").qposadr[0]] = -0.4
    data.qpos[model.joint("right_hip_roll").qposadr[0]] = 0.4
    mujoco.mj_forward(model, data)
    touching = model.geom_bodyid[data.contact.geom]
    assert np.any(np.all(touching > 0, axis=1))
