"""Vector environments on a batch: the same episodes as one environment each."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.vector import AutoresetMode  # noqa: E402

import stiction.gym  # noqa: E402


def make(name, count=3, **kwargs):
    return gymnasium.make_vec(
        name, num_envs=count, vectorization_mode="vector_entry_point", **kwargs
    )


def episode(envs, steps, seed=7):
    """What a vector environment returns for actions drawn by the seed."""
    envs.action_space.seed(seed)
    seen = [(envs.reset(seed=seed)[0],)]
    for _ in range(steps):
        *rest, info = envs.step(envs.action_space.sample())
        seen.append((*(np.copy(part) for part in rest), info["certificate"]))
    return seen


@pytest.mark.parametrize(
    "name", ["Ant-v5", "Humanoid-v5", "Hopper-v5", "Reacher-v5", "PinchLift-v0", "PushT-v0"]
)
def test_a_batch_of_environments_takes_the_steps_of_each_alone(name):
    batched = episode(make(f"stiction/{name}"), 12)
    alone = episode(gymnasium.make_vec(f"stiction/{name}", 3, vectorization_mode="sync"), 12)
    for one, other in zip(batched, alone, strict=True):
        for ours, theirs in zip(one, other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_time_passes_in_every_environment():
    envs = make("stiction/Hopper-v5")
    envs.reset(seed=0)
    for _ in range(3):
        envs.step(np.zeros(envs.action_space.shape, np.float32))
    for env in envs.envs:
        assert env.unwrapped.data.time == pytest.approx(3 * env.unwrapped.dt)


@pytest.mark.parametrize("mode", list(AutoresetMode)[:2])
def test_environments_that_end_begin_anew_as_gymnasiums_do(mode):
    many = make("stiction/Hopper-v5", 4, autoreset_mode=mode)
    assert many.metadata["autoreset_mode"] is mode
    alone = gymnasium.make_vec(
        "stiction/Hopper-v5", 4, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}
    )
    ours, theirs = episode(many, 60), episode(alone, 60)
    assert sum(part[2].sum() for part in ours[1:]) >= 2  # some fell
    for one, other in zip(ours, theirs, strict=True):
        for mine, their in zip(one, other, strict=True):
            np.testing.assert_array_equal(mine, their)


def test_episodes_end_after_their_number_of_steps():
    envs = make("stiction/PinchLift-v0", 2, max_episode_steps=5)
    envs.reset(seed=0)
    for step in range(5):
        *_, truncated, _ = envs.step(envs.action_space.sample())
        assert truncated.all() == (step == 4)


def test_the_number_of_threads_changes_no_bit():
    one, two = (episode(make("stiction/PushT-v0", 4, nthread=n), 20) for n in (1, 2))
    for mine, other in zip(one, two, strict=True):
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_contact_model_is_taken():
    envs = make("stiction/Hopper-v5", contact=stiction.NoSlip(), simulator={"tolerance": 1e-5})
    assert isinstance(envs.batch.settings.contact, stiction.NoSlip)
    assert envs.batch.settings.tolerance == 1e-5


def test_edits_of_an_environments_own_model_hold_from_the_next_step_on():
    batched = make("stiction/Hopper-v5")
    alone = gymnasium.make_vec("stiction/Hopper-v5", 3, vectorization_mode="sync")
    for envs in (batched, alone):
        envs.reset(seed=3)
        for k in range(4):
            if k == 2:
                model = envs.envs[1].unwrapped.model
                model.opt.gravity[2], model.body_mass[2] = -3.0, 20.0
            observations, *_ = envs.step(np.full(envs.action_space.shape, 0.3, np.float32))
    ours, theirs = batched.envs, alone.envs
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine.unwrapped.data.qpos, other.unwrapped.data.qpos)
    heights = observations[:, 5 + 1]  # speed along z
    assert heights[1] != pytest.approx(heights[0], rel=0.1)


@pytest.mark.parametrize(
    "actions", [np.zeros((4, 3)), np.zeros(3), np.zeros((3, 4)), "jump", [[0, 0, 0], [0, 0]]]
)
def test_actions_of_another_shape_are_refused_and_change_nothing(actions):
    envs = make("stiction/Hopper-v5", 3)
    envs.reset(seed=0)
    before = [env.unwrapped.data.qpos.copy() for env in envs.envs]
    with pytest.raises(stiction.InvalidInput, match=r"^actions"):
        envs.step(actions)
    for env, qpos in zip(envs.envs, before, strict=True):
        assert env.unwrapped.data.time == 0.0
        np.testing.assert_array_equal(env.unwrapped.data.qpos, qpos)
    np.testing.assert_array_equal(envs.batch.bind("time"), 0.0)
