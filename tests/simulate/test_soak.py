"""A bounded part of the soak: an episode of every model, none of it unsolved."""

import mujoco
import pytest
from soak import Runner, Soak, families, table

RUNAWAY = """
<mujoco><worldbody><body><joint name="x" type="slide"/><geom size=".1" mass="1"/></body></worldbody>
  <actuator><general joint="x" biastype="affine" biasprm="0 1e5 0"/></actuator>
</mujoco>"""
"""Pushed away from zero the more the farther it is."""

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


@pytest.mark.parametrize("too", [True, False])
def test_what_diverges_is_told_apart_from_what_mujoco_lets_diverge_as_well(monkeypatch, too):
    if not too:
        monkeypatch.setattr(Runner, "mujoco_diverges", lambda *_: False)
    found = Soak([("runaway", mujoco.MjModel.from_xml_string(RUNAWAY))])
    found.run(rounds=1)
    (line,) = found.errors
    assert line.startswith("runaway, episode 0: mj_step diverges too: the" if too else "runaway")
    assert 0 < found.steps < 400
    *_, last = table({"runaway": found}, {"runaway": 1})
    assert last.split()[-3:] == (["0", "0", "1"] if too else ["0", "1", "0"])


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_random_loads_are_solved_for_long(models, family):
    found = Soak(models[family], seed=1)
    found.run(600.0)
    assert found.steps > 10_000
    assert not found.errors
