"""A bounded part of the soak: an episode of every model, none of it unsolved."""

import mujoco
import pytest
from soak import Soak, families

FAMILIES = ("gymnasium", "dm_control", "ragdoll", "drop", "jumble", "chain")


@pytest.fixture(scope="module")
def models():
    return families()


@pytest.fixture(autouse=True)
def _quiet():
    mujoco.set_mju_user_warning(lambda text: None)
    yield
    mujoco.set_mju_user_warning(None)


@pytest.mark.parametrize("family", FAMILIES)
def test_random_loads_are_solved(models, family):
    if family not in models:
        pytest.skip(f"{family} is not installed; its models come with the `dev` extra")
    light = [(name, model) for name, model in models[family] if name != "dog"]  # 400 contacts
    found = Soak(light)
    found.run(episode=100, rounds=1)
    assert found.steps == 100 * len(light)
    assert not found.errors


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_random_loads_are_solved_for_long(models, family):
    found = Soak(models[family], seed=1)
    found.run(600.0)
    assert found.steps > 10_000
    assert not found.errors
