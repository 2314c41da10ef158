"""The shipped scenes, under MuJoCo's own step: they are sound before any solver of ours."""

import mujoco
import numpy as np
import pytest

from stiction import Simulator, scenes
from stiction.errors import InvalidInput
from stiction.scenes.humanoid import SQUAT_DEPTH, SQUAT_PERIOD
from stiction.scenes.legs import LEGS

NAMES = (
    "pinch", "grasp", "stack", "incline", "sliding-cube", "ladder", "arch", "quadruped",
    "humanoid", "tap-dance", "hoist", "ring", "net", "block-feeder", "jack",
    "bin", "wall", "rubble", "ragdoll",
)  # fmt: skip


def run(model, data, controller, seconds):
    """Step for so long, and stop after each step to let the caller look at the data."""
    for _ in range(round(seconds / model.opt.timestep)):
        if controller is not None:
            controller(model, data)
        before = data.time
        mujoco.mj_step(model, data)
        assert data.time > before, "MuJoCo found the state unstable and reset it"
        yield


def after(seconds, name, **options):
    """Data of a scene after so long, positions up to date."""
    model, data, controller = scenes.load(name, **options)
    for _ in run(model, data, controller, seconds):
        pass
    mujoco.mj_forward(model, data)
    return data


def contacts_at_start(name, **options):
    """Distances [m] of all contacts nearer than 0.1 mm, at the start."""
    start = scenes.load(name, **options)[1]
    model = mujoco.MjModel.from_xml_string(scenes.get(name).xml(**options))
    model.geom_margin[:] = 1e-4
    data = mujoco.MjData(model)
    data.qpos[:] = start.qpos
    mujoco.mj_forward(model, data)
    return data.contact.dist.copy()


def test_all_the_scenes_are_listed():
    assert set(scenes.names()) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_scene_compiles_and_has_the_bodies_to_watch(name):
    scene = scenes.get(name)
    model, data, _ = scenes.load(name)
    assert scene.name == name
    assert "\n" not in scene.summary
    assert scene.seconds > 0
    assert data.time == 0
    assert scene.watch
    for body in scene.watch:
        assert model.body(body).id > 0


@pytest.mark.parametrize("name", NAMES)
def test_bodies_start_just_touching(name):
    distances = contacts_at_start(name)
    assert np.min(distances) > -1e-12
    assert np.min(np.abs(distances)) < 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_a_scene_runs(name):
    model, data, controller = scenes.load(name)
    for _ in run(model, data, controller, 0.2):
        pass
    assert np.isfinite(data.qpos).all()
    assert np.isfinite(data.qvel).all()
    assert np.abs(data.qvel).max() < 100
    assert not any(warning.number for warning in data.warning)


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "tap-dance", "hoist", "jack"])
def test_a_controller_reads_only_the_state_and_writes_only_controls(name):
    model, data, controller = scenes.load(name)
    for _ in run(model, data, controller, 0.35):
        pass
    bare = mujoco.MjData(model)
    bare.time, bare.qpos[:], bare.qvel[:] = data.time, data.qpos, data.qvel
    controller(model, bare)
    controller(model, data)
    np.testing.assert_array_equal(bare.ctrl, data.ctrl)
    assert not bare.qfrc_applied.any()
    assert not bare.xpos.any()


# --- What each of them shows ----------------------------------------------------------


@pytest.mark.parametrize("boxes", [1, 2, 3, 32])
def test_a_row_of_boxes_starts_touching_at_every_face(boxes):
    distances = contacts_at_start("grasp", boxes=boxes, friction=100.0, timestep=0.01)
    assert len(distances) == 4 * (boxes + 1)
    assert np.abs(distances).max() < 1e-12


def test_the_push_on_a_row_grows_with_its_boxes():
    model, data, _ = scenes.load("grasp", boxes=4)
    np.testing.assert_array_equal(data.ctrl, [400.0, 400.0])
    assert model.opt.timestep == 0.001


def test_the_pads_press_with_the_force_asked_for():
    data = after(0.1, "pinch", force=60.0)
    np.testing.assert_allclose(data.actuator_force, 60.0 * (1 - data.qpos[:2] / 0.002))
    np.testing.assert_array_equal(data.ctrl, [0.002, 0.002])


def test_a_heavy_box_lies_on_top():
    model, _, _ = scenes.load("stack", boxes=2, top_mass=1000.0)
    np.testing.assert_array_equal(model.body_mass, [0.0, 1.0, 1000.0])


@pytest.mark.parametrize(("angle", "slides"), [(26.0, False), (27.2, True)])
def test_the_block_slides_beyond_the_friction_angle(angle, slides):
    data = after(1.0, "incline", angle=angle)
    downhill = [-np.cos(np.radians(angle)), 0.0, -np.sin(np.radians(angle))]
    assert (data.body("block").xpos @ downhill > 0.02) == slides


@pytest.mark.parametrize("heading", [0.0, 30.0])
def test_the_cube_stops_where_friction_says(heading):
    data = after(2.0, "sliding-cube", speed=1.0, heading=heading)
    way = data.body("cube").xpos[:2]
    assert np.hypot(*way) == pytest.approx(1 / (2 * 0.5 * 9.81), rel=0.03)
    assert np.degrees(np.arctan2(way[1], way[0])) == pytest.approx(heading, abs=1.0)


@pytest.mark.parametrize(("share", "slides"), [(1.03, False), (0.97, True)])
def test_the_ladder_slides_at_the_friction_that_its_docstring_gives(share, slides):
    across, up, radius = 3 * np.cos(np.radians(65)), 3 * np.sin(np.radians(65)), 0.025
    # (1 + mu^2) across / 2 = mu (up + radius) + mu^2 (across + radius)
    limit = np.roots([across / 2 + radius, up + radius, -across / 2]).max()
    data = after(1.0, "ladder", friction=share * limit)
    assert (data.body("ladder").xpos[0] < -across - radius - 0.01) == slides


@pytest.mark.parametrize(("friction", "stands"), [(0.7, True), (0.25, False)])
def test_the_arch_needs_friction(friction, stands):
    sunk = 1.0 - after(0.5, "arch", friction=friction).body("keystone").xpos[2]
    assert sunk < 0.01 if stands else sunk > 0.03


def test_the_arch_has_the_mass_of_whole_stones():
    model, _, _ = scenes.load("arch", stones=9)
    wedge = 9 * np.sin(np.pi / 9) / 2 * (1.125**2 - 0.875**2) * 0.3
    assert model.body_mass.sum() == pytest.approx(2400 * wedge, rel=1e-6)


def test_the_quadruped_walks_a_metre_in_ten_seconds_and_stays_upright():
    model, data, controller = scenes.load("quadruped")
    lifted = np.zeros(4)
    feet = [model.geom(f"{leg}_foot").id for leg in LEGS]
    for _ in run(model, data, controller, 10.0):
        lifted = np.maximum(lifted, data.geom_xpos[feet, 2])
        assert data.body("trunk").xmat[8] > 0.95
        assert data.body("trunk").xpos[2] > 0.22
    assert data.qpos[0] > 1.0
    assert abs(data.qpos[1]) < 0.2
    assert lifted.min() > 0.06  # all four are raised


def test_the_humanoid_squats_and_stays_on_its_feet():
    model, data, controller = scenes.load("humanoid")
    stands = data.qpos[2]
    heights = []
    for _ in run(model, data, controller, 2 * SQUAT_PERIOD):
        heights.append(data.qpos[2])
        assert data.body("pelvis").xmat[8] > 0.99
    assert stands - min(heights) == pytest.approx(SQUAT_DEPTH, abs=0.003)
    assert heights[-1] == pytest.approx(stands, abs=0.003)
    assert model.nu == 20
    assert data.ncon == 16


def test_the_tap_dancer_taps_with_both_feet_and_does_not_fall():
    model, data, controller = scenes.load("tap-dance")
    raised = {"left_foot": 0.0, "right_foot": 0.0}
    taps, touching = 0, True
    for _ in run(model, data, controller, 5.0):
        for foot in raised:
            raised[foot] = max(raised[foot], data.body(foot).xpos[2])
        taps += data.ncon > 8 and not touching
        touching = data.ncon > 8
        assert data.body("pelvis").xmat[8] > 0.97
    assert min(raised.values()) > 0.055
    assert taps >= 8


def test_the_hoist_lifts_its_load_and_lets_it_down():
    model, data, controller = scenes.load("hoist")
    assert model.njnt - 1 == 25
    heights = [data.body("link24").xpos[2] for _ in run(model, data, controller, 4.0)]
    assert max(heights) - heights[0] > 0.2
    assert heights[-1] < heights[0] + 0.03


def test_the_rings_stay_in_one_another():
    data = after(1.0, "ring")
    for wire in (1, 2):
        apart = data.body(f"wire{wire}_upper").xpos - data.body(f"wire{wire - 1}_lower").xpos
        assert np.linalg.norm(apart) < 0.12  # 0.11 at the start


def test_the_net_holds_most_of_the_cylinders():
    data = after(1.0, "net")
    assert data.ne == 12  # four loops, closed
    heights = [data.body(f"cylinder{index}").xpos[2] for index in range(5)]
    assert sum(height > -0.2 for height in heights) >= 4


def test_the_feeder_pushes_one_block_per_turn():
    turn = 2 * np.pi / 3.0
    data = after(2 * turn, "block-feeder")
    out = [data.body(f"block{index}").xpos[0] > 0.1 for index in range(5)]
    assert out == [True, True, False, False, False]


def test_the_jack_gains_a_tooth_on_each_stroke():
    data = after(4.0, "jack")
    assert data.body("rack").xpos[2] == pytest.approx(4 * 0.05, abs=0.01)


# --- The registry ---------------------------------------------------------------------


def test_an_unknown_scene_names_the_nearest_ones():
    with pytest.raises(InvalidInput, match=r"'gras'.*did you mean grasp"):
        scenes.get("gras")
    with pytest.raises(InvalidInput, match="one of pinch, grasp, stack"):
        scenes.load("xyzzy")


def test_an_unknown_option_names_the_ones_there_are():
    with pytest.raises(InvalidInput, match=r"no option of grasp; it has boxes, friction, force"):
        scenes.load("grasp", box=3)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("grasp", {"boxes": 0}),
        ("grasp", {"boxes": 33}),
        ("stack", {"boxes": 0}),
        ("arch", {"stones": 1}),
        ("arch", {"thickness": 2.0}),
        ("quadruped", {"roughness": -0.01}),
        ("ring", {"wires": 0}),
        ("block-feeder", {"blocks": 0}),
        ("bin", {"count": 0}),
        ("bin", {"seed": -1}),
        ("wall", {"courses": 0}),
        ("wall", {"bricks": 0}),
        ("wall", {"ball_mass": 0.0}),
        ("rubble", {"stones": 2}),
        ("rubble", {"thickness": 2.0}),
        ("ragdoll", {"damping": -0.1}),
    ],
)
def test_options_out_of_range_are_refused(name, options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        scenes.load(name, **options)


def test_a_model_file_is_a_scene(tmp_path):
    path = tmp_path / "ball.xml"
    path.write_text(
        '<mujoco><worldbody><body><freejoint/><geom size="1"/></body></worldbody></mujoco>'
    )
    for scene in (path, str(path)):
        model, data, controller = scenes.load(scene)
        assert model.nv == 6
        assert data.time == 0
        assert controller is None


def test_a_urdf_is_a_scene(tmp_path):
    path = tmp_path / "arm.urdf"
    link = """<link name="{}"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
    path.write_text(
        f"""<robot name="arm">{link.format("base")}{link.format("tip")}
        <joint name="elbow" type="continuous"><parent link="base"/><child link="tip"/>
        <axis xyz="0 1 0"/></joint></robot>"""
    )
    assert scenes.load(path)[0].joint("elbow").id == 0


def test_a_file_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no such file"):
        scenes.load(tmp_path / "none.xml")
    path = tmp_path / "broken.xml"
    path.write_text("<mujoco><worldbody><geom/></worldbody></mujoco>")
    with pytest.raises(InvalidInput, match="MuJoCo cannot read"):
        scenes.load(path)
    with pytest.raises(InvalidInput, match="a file takes no options"):
        scenes.load(path, boxes=2)


def test_a_pinched_part_comes_to_rest_to_the_last_bit():
    model, data, _ = scenes.load("pinch")
    sim = Simulator(model)
    sim.step(data, 50)
    before = data.qpos.copy()
    sim.step(data, 50)
    assert not data.qvel.any()
    assert (data.qpos == before).all()
