"""A bounded part of the soak: an episode of every model, none of it unsolved."""

import mujoco
import numpy as np
import pytest
from soak import families, soak

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
    steps, errors = soak(light, np.inf, episode=100, rounds=1)
    assert steps == 100 * len(light)
    assert not errors


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_random_loads_are_solved_for_long(models, family):
    steps, errors = soak(models[family], 600.0, seed=1)
    assert steps > 10_000
    assert not errors
