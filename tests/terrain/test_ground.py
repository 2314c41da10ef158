"""Height fields and tiled floors: cells and seams are not felt."""

import numpy as np
import pytest
from mjcf import load

import stiction

G = 9.81


FIELD = """
<mujoco>
  <asset>
    <hfield name="field" nrow="12" ncol="12" size=".8 .8 .06 .1" elevation="{heights}"/>
  </asset>
  <worldbody>
    <geom {ground} friction=".5"/>
    <body pos="-.4 .013 {height}"><freejoint/>
      <geom {shape} friction=".5 .001 .001" mass="1"/></body>
  </worldbody>
</mujoco>
"""
SLAB = 'type="box" size=".05 .04 .03"'


@pytest.mark.parametrize(
    ("shape", "spin", "end"),
    [(SLAB, 0.0, 1.5**2 / (2 * 0.5 * G)), ('size=".03"', 1.5 / 0.03, 0.6)],
    ids=["box", "ball"],
)
def test_cells_of_a_level_field_are_not_felt(shape, spin, end):
    ends = []
    for ground in ('type="plane" size="2 2 .1"', 'type="hfield" hfield="field"'):
        model, data = load(
            FIELD.format(heights=" ".join(["0"] * 144), ground=ground, height=0.03, shape=shape)
        )
        data.qvel[[0, 4]] = 1.5, spin
        sim = stiction.Simulator(model)
        sim.step(data, 200)
        assert sim.statistics.overlap < 1e-9
        ends.append(data.qpos.copy())
    np.testing.assert_allclose(*ends, atol=1e-9)
    assert ends[0][0] == pytest.approx(end - 0.4, abs=2e-3)


@pytest.mark.parametrize(
    "shape",
    [
        SLAB,
        'type="cylinder" size=".02 .002" condim="6"',
        'type="capsule" size=".03 .06" condim="6"',
    ],
    ids=["box", "coin", "capsule"],
)
@pytest.mark.parametrize("seed", range(2))
def test_things_dropped_on_bumpy_ground_come_to_rest(shape, seed):
    rng = np.random.default_rng(seed)
    heights = " ".join(f"{h:.4f}" for h in rng.random(144))
    ground = 'type="hfield" hfield="field"'
    model, data = load(FIELD.format(heights=heights, ground=ground, height=0.2, shape=shape))
    quat = rng.normal(size=4)
    data.qpos[3:] = quat / np.linalg.norm(quat)
    sim = stiction.Simulator(model)
    sim.step(data, 1500)
    assert np.abs(data.qvel).max() < 1e-6
    assert data.qpos[2] > 0.0
    assert sim.statistics.worst <= 1e-6


TILES = "".join(
    f'<geom type="box" size=".1 .5 .05" pos="{0.2 * i - 0.8} 0 -.05" friction=".5"/>'
    for i in range(12)
)
PLANE = '<geom type="plane" size="2 2 .1" friction=".5"/>'


def on_floor(floor, geom, x=-0.43):
    """A model and data of a body of 1 kg that rests on a floor, its middle at x, 3 cm high."""
    return load(f"""<mujoco><worldbody>{floor}<body pos="{x} .013 .03"><freejoint/>
        <geom {geom} mass="1" friction=".5"/></body></worldbody></mujoco>""")


@pytest.mark.parametrize(
    ("geom", "velocity"),
    [
        (SLAB, [1.5, 0, 0, 0, 0, 0]),
        ('type="cylinder" size=".05 .03"', [1.5, 0, 0, 0, 0, 0]),
        ('size=".03"', [1.0, 0, 0, 0, 1 / 0.03, 0]),
    ],
    ids=["box", "cylinder", "ball"],
)
def test_seams_of_a_tiled_floor_are_not_felt(geom, velocity):
    ends = []
    for floor in (PLANE, TILES):
        model, data = on_floor(floor, geom)
        data.qvel[:] = velocity
        stiction.Simulator(model).step(data, 400)
        ends.append(data.qpos.copy())
    np.testing.assert_allclose(*ends, atol=1e-9)


def test_a_box_that_stands_at_a_seam_can_be_pushed_over_it():
    model, data = on_floor(TILES, SLAB, x=-0.35)
    sim = stiction.Simulator(model)
    sim.step(data, 10)
    data.xfrc_applied[1, 0] = 8.0
    sim.step(data, 100)
    assert data.qvel[0] == pytest.approx((8.0 - 0.5 * G) * 0.2, abs=1e-9)


def test_a_step_in_the_floor_stops_a_box():
    raised = TILES + '<geom type="box" size=".1 .5 .05" pos="-.1 0 -.04"/>'
    model, data = on_floor(raised, SLAB)
    data.qvel[0] = 2.0
    stiction.Simulator(model).step(data, 200)
    assert data.qpos[0] + 0.05 <= -0.2 + 1e-6


@pytest.mark.parametrize(
    ("place", "turn", "speed"),
    [
        ((73.89, -62.29, 74.9), "0.36 -0.65 -0.13 0.78", (-338.0, 285.0, -343.0)),
        ((101.31, -73.42, -36.78), "0.05 0.68 1.0 -0.62", (-435.0, 315.0, 158.0)),
        ((39.82, 86.14, -52.06), "-0.49 -0.98 -0.62 -1.0", (-206.0, -446.0, 269.0)),
    ],
)
def test_boxes_meet_in_millimetres_as_they_do_in_metres(place, turn, speed):
    """MuJoCo says of boxes that overlap by little that their distance is zero, in such units."""
    found = []
    for unit in (1.0, 1e-3):
        x, y, z = (unit * each for each in place)
        box = f'<geom type="box" size="{50 * unit} {40 * unit} {30 * unit}" mass="1"/>'
        model, data = load(f"""
<mujoco><option gravity="0 0 0" timestep=".001"/><worldbody>
  <body><freejoint/>{box}</body>
  <body pos="{x} {y} {z}" quat="{turn}"><freejoint/>{box}</body>
</worldbody></mujoco>""")
        data.qvel[6:9] = np.array(speed) * unit
        stiction.Simulator(model).step(data)
        found.append(data.qvel[6:9] / unit)
    assert found[0] == pytest.approx(found[1], abs=1e-6)
    assert np.abs(found[0] - speed).max() > 1.0
