"""Steps whose contact-space matrix comes from assembly, beside those of the factored mass."""

import mujoco
import numpy as np
import pytest

import stiction
from stiction import scenes
from stiction.contact.problem.block_problem import to_problem
from stiction.simulate.time_stepping import assembled, fallback

# Two workers would compile the same kernels at once.
pytestmark = pytest.mark.xdist_group("articulated")

# A floating tree with limits, dry friction, damping, a spinning and rolling contact, an elliptic
# cone, a planar arm with a servo, a soft and a stiff loop, and a damped tendon across joints.
MIXED = """
<mujoco>
  <option timestep="0.002" cone="elliptic"/>
  <default><geom friction="0.7 0.02 0.01"/></default>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="trunk" pos="0 0 0.195">
      <freejoint/>
      <geom type="box" size="0.2 0.1 0.05" mass="4"/>
      <body name="thigh" pos="0.2 0 0"><joint name="hip" axis="0 1 0" damping="0.3" armature="0.01"
          limited="true" range="-60 60"/>
        <geom type="capsule" fromto="0 0 0 0.15 0 -0.1" size="0.02" mass="1" contype="0"/>
        <body name="shank" pos="0.15 0 -0.1"><joint name="knee" axis="0 1 0" frictionloss="0.2"
            limited="true" range="-30 0"/>
          <geom name="foot" type="sphere" pos="0.05 0 -0.06" size="0.035" mass="0.5" condim="6"/>
        </body>
      </body>
      <body name="tail" pos="-0.2 0 0"><joint name="wag" type="ball" damping="0.05"/>
        <geom type="capsule" fromto="0 0 0 -0.2 0 -0.1" size="0.02" mass="0.4" condim="4"/>
      </body>
    </body>
    <body name="upper" pos="1 0 0.5"><joint name="a" axis="0 1 0" damping="1"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="1"/>
      <body name="lower" pos="0.3 0 0"><joint name="b" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 -0.48" size="0.02" mass="1"/>
      </body>
    </body>
    <body name="crate" pos="-1 0 0.1"><freejoint/>
      <geom type="box" size="0.1 0.1 0.1" mass="2"/></body>
    <body name="lid" pos="-1 0 0.35"><freejoint/>
      <geom type="box" size="0.1 0.1 0.05" mass="1"/></body>
  </worldbody>
  <equality>
    <weld body1="crate" body2="lid" relpose="0 0 0.25 1 0 0 0" solref="0.02 1"/>
    <joint joint1="a" joint2="b" polycoef="0 -0.5 0 0 0"/>
  </equality>
  <tendon>
    <fixed name="strap" damping="0.4">
      <joint joint="hip" coef="1"/><joint joint="knee" coef="2"/>
    </fixed>
  </tendon>
  <actuator>
    <position joint="a" kp="30" kv="2"/>
    <damper tendon="strap" kv="0.3" ctrlrange="0 1"/>
  </actuator>
</mujoco>
"""


def posed(monkeypatch, model, data, **options):
    """What `Assembled` was at the last of some steps."""
    kept = []

    class Kept(assembled.Assembled):
        def __init__(self, model, data, work):
            super().__init__(model, data, work)
            self.whole = to_problem(work.blocks, self._count, model.opt.timestep)
            kept.append(self)

    monkeypatch.setattr(fallback, "Assembled", Kept)
    report = stiction.Simulator(model, delassus="assembly", **options).step(data, 20)
    assert report.certificate.passed
    assert report.rungs[0] == "assembly"
    return kept[-1]


@pytest.mark.parametrize("equality", ["soft", "rigid"])
def test_the_matrix_by_assembly_is_that_of_the_factored_mass(monkeypatch, equality):
    model = mujoco.MjModel.from_xml_string(MIXED)
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(3).normal(0.0, 0.2, model.nv)
    data.ctrl[:] = 0.3, 0.5
    found = posed(monkeypatch, model, data, equality=equality)
    whole, part = found.whole, found.problem
    assert (whole.box_contact >= 0).any()  # spin and rolling
    assert (whole.box_contact < 0).any()  # dry friction
    assert whole.nj == (7 if equality == "rigid" else 0)
    by_mass = found._rows @ np.linalg.solve(whole.mass, found._rows.T)
    rows = np.vstack([part.normal, part.tangent.reshape(-1, part.nv), part.joint, part.box])
    size = np.sqrt(by_mass.diagonal())
    np.testing.assert_allclose(rows @ rows.T, by_mass, atol=1e-9 * np.outer(size, size).max())
    free = whole.velocity + np.linalg.solve(whole.mass, whole.dt * whole.force)
    np.testing.assert_allclose(found._free, free, atol=1e-9 * np.abs(free).max())
    np.testing.assert_allclose(rows @ part.velocity, found._rows @ free, atol=1e-9)


def test_a_row_that_nothing_gives_way_to_has_no_coordinate(monkeypatch):
    model, data = scenes.load("jack")[:2]
    found = posed(monkeypatch, model, data)
    across = np.abs(found._rows).max(axis=1) < 1e-12
    assert across.any()  # a planar mechanism cannot move out of its plane
    part = found.problem
    rows = np.vstack([part.normal, part.tangent.reshape(-1, part.nv)])
    assert not rows[across].any()


@pytest.mark.parametrize("name", ["stack", "sliding-cube", "ladder", "humanoid", "block-feeder"])
def test_both_ways_take_the_same_steps(name):
    model, data, controller = scenes.load(name)
    other = mujoco.MjData(model)
    mujoco.mj_copyState(model, data, other, mujoco.mjtState.mjSTATE_INTEGRATION)
    ways = [(data, "factorized"), (other, "assembly")]
    simulators = [stiction.Simulator(model, delassus=way) for _, way in ways]
    for _ in range(30):
        for (state, _), sim in zip(ways, simulators, strict=True):
            if controller is not None:
                controller(model, state)
            sim.step(state)
    np.testing.assert_allclose(other.qvel, data.qvel, atol=1e-9 * max(1.0, np.abs(data.qvel).max()))
    np.testing.assert_allclose(other.qpos, data.qpos, atol=1e-9)


@pytest.mark.parametrize(("way", "assembles"), [("factorized", False), ("assembly", True)])
def test_a_step_assembles_only_where_that_is_asked_for(way, assembles):
    model, data = scenes.load("stack")[:2]
    contact = stiction.Coulomb(facets=4, solver="search")  # not compiled: either way is open
    sim = stiction.Simulator(model, contact=contact, delassus=way)
    assert ("assembly" in sim.step(data).rungs) == assembles


def test_what_assembly_cannot_do_is_refused_by_name():
    model = mujoco.MjModel.from_xml_string(MIXED)
    with pytest.raises(stiction.InvalidInput, match="'factorized' or 'assembly'"):
        stiction.Simulator(model, delassus="assembled")
    with pytest.raises(stiction.InvalidInput, match=r"EventDriven\(\) factorizes"):
        stiction.Simulator(model, delassus="assembly", stepper=stiction.EventDriven())
    armored = mujoco.MjModel.from_xml_string(
        MIXED.replace('name="strap"', 'name="strap" armature="0.1"')
    )
    data = mujoco.MjData(armored)
    with pytest.raises(stiction.InvalidInput, match="tendon_armature"):
        stiction.Simulator(armored, delassus="assembly").step(data)
    assert data.time == 0.0
