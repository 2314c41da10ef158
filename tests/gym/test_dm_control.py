"""dm_control: its suite and Composer's environments, stepped by stiction."""

import sys
from contextlib import contextmanager
from types import SimpleNamespace
from typing import NamedTuple

import mujoco
import numpy as np
import pytest

pytest.importorskip("gymnasium")
import stiction
import stiction.gym


@pytest.fixture(scope="module")
def suite():
    """dm_control's, with what this MuJoCo has no more taken out of its table."""
    loaded = pytest.importorskip("dm_control.suite")
    stiction.gym.patch_dm_control()
    return loaded


class Pointer(NamedTuple):
    ptr: object


class Physics:
    """What `wrap` uses of dm_control's physics, which not every release of MuJoCo can have."""

    legacy_step = True

    def __init__(self, scene):
        model, data, _ = stiction.scenes.load(scene)
        self.model, self.data, self.checked = Pointer(model), Pointer(data), 0

    @contextmanager
    def check_invalid_state(self):
        yield
        self.checked += 1

    def step(self, nstep=1):
        raise AssertionError("this is MuJoCo's")

    def reset(self, keyframe_id=None):
        mujoco.mj_resetDataKeyframe(self.model.ptr, self.data.ptr, keyframe_id)


def test_physics_steps_by_stiction_and_leaves_positions_evaluated():
    physics = Physics("incline")
    task = SimpleNamespace(physics=physics)
    assert stiction.gym.wrap(task) is task
    physics.step(5)
    assert physics.checked == 1
    assert 0.0 < physics.certificate < 1e-6
    model, data = physics.model.ptr, physics.data.ptr
    assert data.time == pytest.approx(5 * model.opt.timestep)
    place = data.xpos.copy()
    mujoco.mj_kinematics(model, data)
    np.testing.assert_array_equal(data.xpos, place)


DOMAINS = [
    "acrobot", "ball_in_cup", "cartpole", "cheetah", "dog", "finger", "fish", "hopper", "humanoid",
    "humanoid_CMU", "manipulator", "pendulum", "point_mass", "quadruped", "reacher", "stacker",
    "swimmer", "walker",
]  # fmt: skip


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_domain_of_the_suite_steps_by_stiction(suite, domain):
    task = next(task for name, task in suite.ALL_TASKS if name == domain)
    env = stiction.gym.wrap(suite.load(domain, task, task_kwargs={"random": 1}))
    random, spec = np.random.default_rng(0), env.action_spec()
    for _ in range(2):
        env.reset()
        for _ in range(10):
            answer = env.step(random.uniform(spec.minimum, spec.maximum))
            assert 0.0 <= env.physics.certificate < 1e-6
        assert env.physics.time() == pytest.approx(10 * env.control_timestep())
        assert np.isfinite(answer.reward)


def test_dm_controls_names_still_point_at_the_data(suite):
    env = stiction.gym.wrap(suite.load("walker", "walk", task_kwargs={"random": 1}))
    env.reset()
    env.step(np.zeros(env.action_spec().shape))
    physics = env.physics
    assert physics.certificate > 0.0
    assert physics.named.data.xpos["torso", "z"] == physics.data.ptr.body("torso").xpos[2]
    place = physics.data.xpos.copy()
    mujoco.mj_kinematics(physics.model.ptr, physics.data.ptr)
    np.testing.assert_array_equal(physics.data.xpos, place)
    env.reset()
    assert physics.certificate == 0.0


def test_the_second_patch_finds_nothing_to_drop(suite):
    assert stiction.gym.patch_dm_control() == ()


def test_without_dm_control_the_patch_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "dm_control.mujoco.wrapper.mjbindings", None)
    with pytest.raises(ImportError, match="pip install dm_control"):
        stiction.gym.patch_dm_control()


def test_composers_environments_step_by_stiction_in_every_episode(suite):
    composer = pytest.importorskip("dm_control.composer")
    floors = pytest.importorskip("dm_control.locomotion.arenas.floors")
    arena = floors.Floor()
    box = arena.mjcf_model.worldbody.add("body", name="box", pos=(0, 0, 0.1))
    box.add("freejoint")
    box.add("geom", type="box", size=(0.1, 0.1, 0.1), friction=(0.5, 0.005, 1e-4))
    arena.mjcf_model.option.gravity = (3.0, 0.0, -9.81)  # below the cone's edge: it stays
    env = stiction.gym.wrap(composer.Environment(composer.NullTask(arena), random_state=1))
    for _ in range(2):
        env.reset()
        first = env.physics
        for _ in range(20):
            env.step([])
        assert 0.0 < env.physics.certificate < 1e-6
        assert abs(env.physics.bind(box).xpos[0]) < 1e-12
    env.reset()
    with pytest.raises(ReferenceError):
        first.time()  # compiled anew, and taken over again
