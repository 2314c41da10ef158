"""Gymnasium: wrapped environments, registered ids, our own tasks."""

import copy
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402

import stiction  # noqa: E402
import stiction.gym  # noqa: E402
from stiction.record import record, shoot  # noqa: E402
from stiction.record.render import offscreen  # noqa: E402
from stiction.record.render.offscreen import NoGraphics  # noqa: E402


def run(env, seed, steps=20):
    """Observations of an episode with actions drawn by the seed."""
    env.action_space.seed(seed)
    seen = [env.reset(seed=seed)[0]]
    for _ in range(steps):
        observation, _, terminated, truncated, info = env.step(env.action_space.sample())
        seen.append(observation)
        assert 0.0 <= info["certificate"] < 1e-6
        if terminated or truncated:
            break
    return np.array(seen)


@pytest.mark.parametrize("name", stiction.gym.ids())
def test_registered_environments_pass_gymnasiums_own_check(name):
    with warnings.catch_warnings():
        # Spaces without bounds, or not from -1 to 1, are Gymnasium's own choice.
        warnings.filterwarnings("ignore", message=".*Box (observation|action) space.*")
        env = gymnasium.make(name)
        check_env(env.unwrapped, skip_render_check=True)
    assert env.spec.max_episode_steps
    env.close()


@pytest.mark.filterwarnings("ignore:.*Box (observation|action) space")
@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")  # that is the point
def test_a_wrapped_environment_passes_gymnasiums_own_check():
    env = stiction.gym.wrap(gymnasium.make("Hopper-v5"))
    check_env(env, skip_render_check=True)
    env.close()


def test_a_wrapped_environment_is_made_again_from_its_spec():
    law = stiction.NoSlip()
    env = stiction.gym.wrap(gymnasium.make("Hopper-v5"), law, tolerance=1e-5)
    other = gymnasium.make(env.spec)
    made = other.stepping.simulator(other.unwrapped.model)
    assert isinstance(made.contact, stiction.NoSlip)
    assert made.tolerance == 1e-5
    np.testing.assert_array_equal(run(other, 3), run(env, 3))


FILM = """
import gymnasium, numpy, sys
import stiction.gym

name, wrapped = sys.argv[1], sys.argv[2] == "wrapped"
env = gymnasium.make(name, render_mode="rgb_array", width=64, height=48)
env = stiction.gym.wrap(env) if wrapped else env
env.reset(seed=0)
before = env.render()
for _ in range(5):
    env.step(env.action_space.high)
after = env.render()
assert before.shape == after.shape == (48, 64, 3), before.shape
assert before.dtype == numpy.uint8
assert before.std() > 1.0, "nothing is seen"
assert (before != after).any(), "nothing moves"
env.close()
"""


@pytest.mark.parametrize(
    ("name", "way"),
    [("Hopper-v5", "wrapped"), ("stiction/Hopper-v5", "made"), ("stiction/PushT-v0", "made")],
)
def test_environments_are_rendered(name, way, backend):
    # In a process of its own: MuJoCo chooses its graphics when it is imported.
    subprocess.run([sys.executable, "-c", FILM, name, way], env=backend, check=True, timeout=300)


@pytest.fixture(scope="module")
def backend():
    """The environment of a process in which MuJoCo can draw."""
    model, data, _ = stiction.scenes.load("pinch")
    film = shoot([record(stiction.Simulator(model), data, 0.01).trajectory])
    try:
        film.picture()
    except NoGraphics as error:
        pytest.skip(str(error))
    chosen = os.environ.get("MUJOCO_GL") or offscreen._working[0]
    return {**os.environ, "MUJOCO_GL": chosen}


def test_a_wrapped_environment_and_the_registered_one_take_the_same_steps():
    wrapped = run(stiction.gym.wrap(gymnasium.make("Hopper-v5")), 3)
    registered = run(gymnasium.make("stiction/Hopper-v5"), 3)
    np.testing.assert_array_equal(wrapped, registered)
    assert (run_plain("Hopper-v5", 3)[-1] != wrapped[-1]).any()


def run_plain(name, seed):
    env = gymnasium.make(name)
    env.action_space.seed(seed)
    seen = [env.reset(seed=seed)[0]]
    for _ in range(20):
        seen.append(env.step(env.action_space.sample())[0])
    return np.array(seen)


def test_spaces_and_starts_are_those_of_the_environment():
    plain, ours = gymnasium.make("Ant-v5"), gymnasium.make("stiction/Ant-v5")
    assert plain.observation_space == ours.observation_space
    assert plain.action_space == ours.action_space
    np.testing.assert_array_equal(plain.reset(seed=5)[0], ours.reset(seed=5)[0])


def test_an_episode_does_not_depend_on_the_one_before():
    env = gymnasium.make("stiction/Hopper-v5")
    first = run(env, 1)
    run(env, 2)
    np.testing.assert_array_equal(run(env, 1), first)


def test_ants_feet_push_back_with_the_forces_that_carry_it():
    env = gymnasium.make("stiction/Ant-v5").unwrapped
    env.reset(seed=0)
    for _ in range(60):
        env.step(np.zeros(8))
    weight = 9.81 * env.model.body_subtreemass[1]
    assert env.data.cfrc_ext[1:, 5].sum() == pytest.approx(weight, rel=0.05)


def test_a_contact_model_and_options_of_the_simulator_are_taken():
    law = stiction.NoSlip()
    env = gymnasium.make("stiction/Hopper-v5", contact=law, simulator={"tolerance": 1e-5})
    made = env.unwrapped.stepping.simulator(env.unwrapped.model)
    assert made.contact is law
    assert made.tolerance == 1e-5
    wrapped = stiction.gym.wrap(gymnasium.make("Hopper-v5"), law)
    assert wrapped.stepping.simulator(wrapped.unwrapped.model).contact is law


def test_environments_can_be_copied_to_other_processes():
    env = gymnasium.make("stiction/Hopper-v5", contact=stiction.NoSlip()).unwrapped
    other = pickle.loads(pickle.dumps(env))
    assert isinstance(other.stepping.simulator(other.model).contact, stiction.NoSlip)
    np.testing.assert_array_equal(run(other, 1), run(env, 1))
    lift = gymnasium.make("stiction/PinchLift-v0").unwrapped
    np.testing.assert_array_equal(run(copy.deepcopy(lift), 1), run(lift, 1))


@pytest.mark.parametrize("twice", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_of_a_wrapped_environment_step_by_stiction_too(twice):
    env = stiction.gym.wrap(gymnasium.make("Hopper-v5"), stiction.NoSlip())
    other = twice(env)
    assert other.unwrapped is not env.unwrapped
    np.testing.assert_array_equal(run(other, 1), run(env, 1))
    assert other.stepping.simulator(other.unwrapped.model).statistics.steps > 0
    assert isinstance(other.stepping.simulator(other.unwrapped.model).contact, stiction.NoSlip)


def test_what_is_no_mujoco_environment_is_refused():
    with pytest.raises(stiction.InvalidInput, match="no MujocoEnv"):
        stiction.gym.wrap(gymnasium.make("CartPole-v1"))
    with pytest.raises(stiction.InvalidInput, match="neither"):
        stiction.gym.wrap("Ant-v5")


def test_without_gymnasium_the_extra_is_named(monkeypatch):
    for name in [word for word in sys.modules if word.startswith("stiction.gym")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"stiction\[gym\]"):
        __import__("stiction.gym")


def lift(env, grip, release=None, **options):
    """Grips for 0.24 s, lifts, holds; `release`: step from which it grips no more."""
    seen, _ = env.reset(seed=0, options=options)
    total = 0.0
    for step in range(200):
        speed = 0.0 if step < 12 else np.clip(20.0 * (0.1 - seen[0]), -1.0, 1.0)
        held = -1.0 if release is not None and step >= release else grip
        seen, reward, terminated, truncated, info = env.step(np.array([held, speed], np.float32))
        total += reward
        if terminated or truncated:
            break
    return step, total, info


def test_pinch_lift_is_solved_by_who_grips_hard_enough():
    env = gymnasium.make("stiction/PinchLift-v0")
    heavy = {"mass": 0.2, "friction": 0.3}  # 3.3 N hold it
    _, good, held = lift(env, -0.2, **heavy)  # 4 N
    assert held["success"]
    _, dear, held = lift(env, 1.0, **heavy)  # 10 N
    assert held["success"]
    _, _, left = lift(env, -0.4, **heavy)  # 3 N
    assert not left["success"]
    assert left["height"] < 1e-3
    assert good > dear


def test_pinch_lift_ends_where_the_part_is_lost():
    step, _, info = lift(gymnasium.make("stiction/PinchLift-v0"), 0.5, release=100)
    assert info["lost"]
    assert 100 <= step < 130


def test_pinch_lift_does_not_creep_while_it_holds():
    env = gymnasium.make("stiction/PinchLift-v0")
    lift(env, 0.0, mass=0.1, friction=0.5)
    data = env.unwrapped.data
    before = data.body("part").xpos - data.body("carriage").xpos
    env.reset(seed=0, options={"mass": 0.1, "friction": 0.5})
    seen = []
    for step in range(150):
        env.step(np.array([0.0, 1.0 if 12 <= step < 50 else 0.0], np.float32))
        seen.append(data.body("part").xpos - data.body("carriage").xpos)
    assert abs(before[2]) < 1e-4
    assert np.abs(np.array(seen[60:]) - seen[60])[:, 2].max() < 1e-9


def test_push_t_is_solved_by_a_straight_push_along_its_axis():
    env = gymnasium.make("stiction/PushT-v0")
    seen, _ = env.reset(seed=0, options={"pose": (0.0, -0.1, 0.0), "pusher": (0.0, -0.25)})
    for _ in range(300):
        speed = min(1.0, 8.0 * (0.005 - seen[5]) + 0.05)
        seen, reward, terminated, _, info = env.step(np.array([0.0, speed], np.float32))
        if terminated:
            break
    assert info["success"]
    assert info["angle"] < 0.01
    assert reward > 9.0


def test_push_t_stays_where_it_is_left():
    env = gymnasium.make("stiction/PushT-v0")
    env.reset(seed=1, options={"pose": (0.05, 0.0, 0.5), "pusher": (0.3, 0.3)})
    for _ in range(50):
        *_, info = env.step(np.zeros(2, np.float32))
    assert info["distance"] == pytest.approx(0.05, abs=1e-12)
    assert info["angle"] == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("name", ["stiction/PinchLift-v0", "stiction/PushT-v0"])
def test_random_policies_run_to_the_end(name):
    env = gymnasium.make(name)
    for seed in range(2):
        env.action_space.seed(seed)
        env.reset(seed=seed)
        ended = False
        while not ended:
            observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
            assert env.observation_space.contains(observation)
            assert np.isfinite(reward)
            assert info["certificate"] < 1e-6
            ended = terminated or truncated


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("x", "options"),
        ([1], "options"),
        ({"weight": 1.0}, "weight"),
        ({"mass": "heavy"}, "mass"),
        ({"mass": -1.0}, "mass"),
        ({"mass": [1.0, 2.0]}, "mass"),
        ({"friction": np.nan}, "friction"),
    ],
)
def test_a_reset_says_which_of_its_options_it_cannot_set_and_changes_nothing(options, told):
    env = gymnasium.make("stiction/PinchLift-v0").unwrapped
    env.reset(seed=1)
    before = env.model.body_mass.copy(), env.data.qpos.copy()
    with pytest.raises(stiction.InvalidInput, match=told):
        env.reset(options=options)
    assert np.array_equal(env.model.body_mass, before[0])
    assert np.array_equal(env.data.qpos, before[1])


@pytest.mark.parametrize("seed", ["x", 1.5, -1, [1], True])
@pytest.mark.parametrize("name", ["stiction/PinchLift-v0", "stiction/Ant-v5"])
def test_a_seed_is_a_whole_number(name, seed):
    with pytest.raises(stiction.InvalidInput, match="seed"):
        gymnasium.make(name).unwrapped.reset(seed=seed)
    with pytest.raises(stiction.InvalidInput, match="seed"):
        stiction.gym.wrap(gymnasium.make("Ant-v5")).reset(seed=seed)


@pytest.mark.parametrize("action", ["x", [0.0], [0.0, np.nan], None, [[0.0], [0.0, 1.0]]])
def test_an_action_that_is_none_is_refused_and_changes_nothing(action):
    env = gymnasium.make("stiction/PinchLift-v0").unwrapped
    env.reset(seed=1)
    before = env.data.qpos.copy()
    with pytest.raises(stiction.InvalidInput, match="action"):
        env.step(action)
    assert np.array_equal(env.data.qpos, before)


@pytest.mark.parametrize(
    "wrong",
    [{"contact": "coulomb"}, {"simulator": "best"}, {"simulator": {"budgett": 1.0}},
     {"simulator": {"tolerance": "x"}}],
)  # fmt: skip
def test_environments_are_not_made_with_options_that_are_none(wrong):
    with pytest.raises(stiction.InvalidInput):
        gymnasium.make("stiction/Ant-v5", **wrong)
    with pytest.raises(stiction.InvalidInput):
        gymnasium.make_vec(
            "stiction/Ant-v5", num_envs=2, vectorization_mode="vector_entry_point", **wrong
        )


def test_an_environment_is_not_wrapped_with_what_is_no_contact_model():
    with pytest.raises(stiction.InvalidInput, match="contact"):
        stiction.gym.wrap(gymnasium.make("Ant-v5"), "coulomb")
    with pytest.raises(stiction.InvalidInput, match="env"):
        stiction.gym.wrap("Ant-v5")


@pytest.mark.parametrize("count", [0, -1, 1.5, "two", None])
def test_the_number_of_environments_is_a_whole_one(count):
    with pytest.raises(stiction.InvalidInput, match="num_envs"):
        gymnasium.make_vec(
            "stiction/Ant-v5", num_envs=count, vectorization_mode="vector_entry_point"
        )
