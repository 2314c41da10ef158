"""What the page shows, without the page: live sessions, replays, marks of contacts."""

import mujoco
import numpy as np
import pytest

from stiction import scenes
from stiction.contact.problem.modes import Mode
from stiction.errors import InvalidInput, SolveFailed
from stiction.record import Trajectory, marks, record
from stiction.record import contacts as shown
from stiction.simulate import Simulator
from stiction.status import Status
from stiction.view import Live, Replay
from stiction.view.history import SPAN, History
from stiction.view.place import PANEL, arrange

FRAME = 1.0 / 60.0

BLOCKS = """<mujoco><option timestep=".005" cone="elliptic"/><statistic extent="1"/><worldbody>
  <geom name="floor" type="box" size="2 2 .1" pos="0 0 -.1" friction="{mu}"/>
  <body name="light" pos="-.5 0 .05"><freejoint/><geom type="box" size=".05 .05 .05" mass=".01"
    friction="{mu}"/></body>
  <body name="heavy" pos=".5 0 .05"><freejoint/><geom type="box" size=".05 .05 .05" mass="100"
    friction="{mu}"/></body>
</worldbody></mujoco>"""


def blocks(mu=0.5, tilt=0.0):
    def load():
        model = mujoco.MjModel.from_xml_string(BLOCKS.format(mu=mu))
        model.opt.gravity[:] = 10.0 * np.array([np.sin(tilt), 0.0, -np.cos(tilt)])
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        return model, data, None

    return load


def pinch(**options):
    return Live(lambda: scenes.load("pinch"), name="pinch", watch=("capsule",), **options)


def play(session, seconds):
    session.play()
    for _ in range(round(seconds / FRAME)):
        session.advance(FRAME)


# --- The session ----------------------------------------------------------------------------


def test_stiction_holds_where_mujoco_creeps_and_frictionless_lets_go():
    live = pinch()
    play(live, 0.5)
    ours, theirs = live.views()
    assert ours.travel < 1e-12
    assert ours.contacts.fastest < 1e-12
    assert ours.contacts.count(Mode.STICK) == 4
    assert theirs.travel > 1e-5
    assert theirs.contacts.fastest > 1e-5
    assert theirs.contacts.count(Mode.SLIDE) == 4
    live.set_contact("frictionless")
    play(live, 0.1)
    ours, _ = live.views()
    assert ours.travel > 0.5 * 9.81 * 0.08**2
    assert live.history.columns()[1].max() > 0.3  # while it fell along the pads
    assert live.time == pytest.approx(0.6, abs=0.01)


def test_mu_is_switched_on_both_sides_and_back():
    live = Live(blocks(mu=0.5, tilt=0.3))  # tan 0.3 = 0.31: holds
    play(live, 0.2)
    assert live.views()[0].travel < 1e-9
    live.set_friction(0.1)
    play(live, 0.2)
    for view in live.views():
        assert view.contacts.fastest > 0.1
        assert np.all(view.contacts.friction == 0.1)
    live.set_friction(None)
    play(live, 0.5)
    assert live.views()[0].contacts.fastest < 1e-9
    assert np.all(live.views()[1].contacts.friction == 0.5)


def test_a_spring_pulls_a_body_and_lets_go():
    live = Live(blocks())
    body = live.ours.model.body("light").id
    start = live.ours.data.xpos[body].copy()
    live.grab(7, body, start, start + np.array([0.0, 0.0, 0.3]))
    play(live, 2.0)
    for view in live.views():
        # The weight stretches the spring: g / stiffness = extent / PULL.
        assert view.data.xpos[body] == pytest.approx(start + np.array([0.0, 0.0, 0.25]), abs=0.02)
    live.drag(7, start + np.array([0.2, 0.0, 0.3]))
    play(live, 2.0)
    assert live.ours.data.xpos[body, 0] == pytest.approx(start[0] + 0.2, abs=0.02)
    live.release(7)
    play(live, 1.0)
    assert not live.ours.data.xfrc_applied.any()
    assert live.ours.data.xpos[body, 2] == pytest.approx(0.05, abs=1e-6)


def test_heavy_and_light_bodies_follow_the_mouse_alike():
    live = Live(blocks(), beside="nothing")
    for name, who in (("light", 1), ("heavy", 2)):
        body = live.ours.model.body(name).id
        point = live.ours.data.xpos[body].copy()
        live.grab(who, body, point, point + np.array([0.0, 0.0, 0.3]))
    play(live, 0.3)
    heights = live.ours.data.xpos[1:, 2]
    assert heights[0] > 0.1
    assert heights[0] == pytest.approx(heights[1], rel=1e-3)


def test_two_visitors_pull_at_the_same_body():
    live = Live(blocks(), beside="nothing")
    body = live.ours.model.body("light").id
    point = live.ours.data.xpos[body].copy()
    live.grab(1, body, point, point + np.array([0.0, 0.0, 0.1]))
    live.step()
    alone = live.ours.data.xfrc_applied[body, 2]
    live.reset()
    assert not live.springs
    for who in (1, 2):
        live.grab(who, body, point, point + np.array([0.0, 0.0, 0.1]))
    live.step()
    assert live.ours.data.xfrc_applied[body, 2] == pytest.approx(2 * alone)


def test_reset_restores_the_start_and_keeps_the_settings():
    live = pinch(contact="frictionless", friction=0.2)
    start = [side.data.qpos.copy() for side in (live.ours, live.theirs)]
    play(live, 0.2)
    live.reset()
    assert live.time == 0.0
    for side, qpos in zip((live.ours, live.theirs), start, strict=True):
        assert np.array_equal(side.data.qpos, qpos)
        assert np.all(side.model.geom_friction[:, 0] == 0.2)
    assert (live.contact, live.playing, live.worst) == ("frictionless", True, 0.0)
    assert len(live.history.columns()[0]) == 0


def test_a_failure_pauses_keeps_the_state_and_says_so(monkeypatch):
    live = pinch(beside="nothing")
    play(live, 0.1)

    def fail(data, count):
        raise SolveFailed(None, Status.CYCLE, "of capsule and left")

    with monkeypatch.context() as patch:
        patch.setattr(live.ours.simulator, "step", fail)
        before = live.ours.data.qpos.copy()
        live.advance(FRAME)
    assert not live.playing
    assert np.array_equal(live.ours.data.qpos, before)
    assert "of capsule and left" in live.notice
    live.ours.data.qvel[0] = np.nan  # and a state that is not finite
    live.play()
    assert live.notice == ""
    live.advance(FRAME)
    assert not live.playing
    assert "left" in live.notice
    live.reset()
    play(live, 0.1)
    assert live.notice == ""
    assert live.time == pytest.approx(0.1, abs=0.01)


def test_what_mujoco_warns_of_is_told_and_not_written_to_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    live = pinch()
    live.theirs.data.qvel[0] = 1e12
    play(live, 0.1)
    assert "MuJoCo warned" in live.notice
    assert live.playing
    assert not list(tmp_path.iterdir())


def test_what_does_not_fit_into_a_frame_is_left_out():
    live = pinch()
    live.play()
    live.advance(1.0, allowance=0.0)
    assert live.behind
    assert live.time == pytest.approx(0.002)
    live.set_speed(0.5)
    live.advance(0.1)
    assert not live.behind
    assert live.time == pytest.approx(0.052, abs=0.0021)


def test_wrong_values_are_refused_and_change_nothing():
    live = pinch()
    for refused in (
        lambda: live.set_friction(-0.1),
        lambda: live.set_friction(float("nan")),
        lambda: live.set_contact("coulom"),
        lambda: live.set_beside("bullet"),
        lambda: live.set_speed(0.0),
        lambda: live.set_speed(float("inf")),
        lambda: live.set_strength(-1.0),
        lambda: live.grab(1, 0, np.zeros(3), np.zeros(3)),
        lambda: live.grab(1, 99, np.zeros(3), np.zeros(3)),
        lambda: live.grab(1, 3, np.full(3, np.nan), np.zeros(3)),
        lambda: live.grab(1, 3, np.zeros(3), np.zeros(2)),
    ):
        with pytest.raises(InvalidInput):
            refused()
    assert (live.contact, live.friction, live.beside, live.speed) == (
        "coulomb", None, "mujoco", 1.0,
    )  # fmt: skip
    assert not live.springs


def test_the_neighbour_can_be_tuned_or_left_out():
    live = pinch(beside="mujoco-C")
    play(live, 0.3)
    assert live.views()[1].contacts.fastest < 1e-6  # 178 um/s as the model sets it
    live.set_beside("nothing")
    assert live.time == 0.0
    assert len(live.views()) == 1


def test_the_history_keeps_the_last_seconds_and_follows_the_clock_back():
    history = History()
    for k in range(300):
        history.add(0.1 * k, k, 0.0, 1e-12)
    time, slip, _, _ = history.columns()
    assert time[-1] - time[0] <= SPAN
    assert slip[-1] == 299
    history.add(25.0, 7.0, 0.0, 1e-12)
    time, slip, _, _ = history.columns()
    assert time[-1] == 25.0
    assert np.all(np.diff(time) > 0.0)


# --- What is drawn --------------------------------------------------------------------------


def test_arrows_bear_the_weight_whichever_geom_comes_first():
    live = Live(blocks())
    play(live, 0.5)
    for view, rel in zip(live.views(), (1e-9, 1e-3), strict=True):
        arrows = marks.arrows(view.contacts, 1.0)
        total = (arrows[:, 1] - arrows[:, 0]).sum(axis=0)
        assert total == pytest.approx([0.0, 0.0, 1000.1], rel=rel, abs=1e-6)


def test_the_arrow_of_a_sliding_contact_ends_on_the_rim_of_its_cone():
    live = Live(blocks(mu=0.3, tilt=0.5), beside="nothing")
    play(live, 0.2)
    contacts = live.views()[0].contacts
    assert contacts.count(Mode.SLIDE) == 8
    assert np.all(marks.colours(contacts) == marks.COLOURS[Mode.SLIDE])
    cones = marks.cones(contacts, 0.01)
    tips = marks.arrows(contacts, 0.01)[cones.row, 1] - cones.position
    for tip, quaternion, size in zip(tips, cones.quaternion, cones.size, strict=True):
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, quaternion)
        across = (turn.reshape(3, 3).T @ tip) / size  # in the unit cone
        assert across[2] == pytest.approx(1.0)
        assert np.hypot(across[0], across[1]) == pytest.approx(1.0, rel=1e-6)


def test_arrows_are_as_long_as_the_largest_force_allows_and_recover_from_a_blow():
    ruler = marks.Ruler(extent=2.0)
    contact = shown.Contacts(
        np.zeros((1, 3)), np.eye(3)[None], np.array([[10.0, 0.0, 0.0]]), np.ones((1, 2)),
        np.zeros(1), np.array([int(Mode.STICK)]),
    )  # fmt: skip
    assert ruler.scale([contact], FRAME) == pytest.approx(marks.REACH * 2.0 / 10.0)
    ruler.peak = 1000.0
    assert ruler.scale([contact], 0.0) == pytest.approx(marks.REACH * 2.0 / 1000.0)
    assert ruler.scale([contact], 100.0) == pytest.approx(marks.REACH * 2.0 / 10.0)
    assert marks.Ruler(1.0).scale([shown.none()], FRAME) == 0.0


@pytest.mark.parametrize("size", [(1280, 800), (700, 900)])
@pytest.mark.parametrize("name", scenes.names())
def test_both_sides_of_every_scene_are_in_the_picture(name, size):
    model, data, _ = scenes.load(name)
    place = arrange(model, data, two=True)
    camera, look_at = place.camera(*size)
    forward = look_at - camera
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    axes = np.array([right, np.cross(right, forward), forward])
    scale = 0.5 * size[1] / np.tan(0.5 * place.fov)  # pixels, from the middle of the picture
    for middle in (place.middle - 0.5 * place.offset, place.middle + 0.5 * place.offset):
        x, y, far = axes @ (middle - camera)
        assert far > 0.0
        assert -size[0] / 2 < scale * x / far < size[0] / 2 - min(PANEL, size[0] // 2)
        assert abs(scale * y / far) < size[1] / 2
    assert np.linalg.norm(place.offset) > 0.05 * model.stat.extent


# --- Replay ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trajectory(tmp_path_factory):
    model, data, controller = scenes.load("pinch")
    done = record(
        Simulator(model), data, 0.2, controller=controller, name="pinch",
        xml=scenes.get("pinch").xml(), watch=("capsule",),
    )  # fmt: skip
    path = tmp_path_factory.mktemp("replay") / "trajectory.npz"
    return done.trajectory.save(path)


def test_a_trajectory_is_replayed_with_its_contacts(trajectory):
    replay = Replay(Trajectory.load(trajectory))
    assert replay.span == (0.0, pytest.approx(0.2))
    replay.seek(0.1)
    assert replay.time == pytest.approx(0.1)
    assert replay.data.qpos == pytest.approx(replay.trajectory.qpos[50])
    assert replay.views()[0].contacts.count(Mode.STICK) == 4
    replay.step()
    assert replay.sample == 51
    play(replay, 0.3)
    assert not replay.playing
    assert replay.time == replay.span[1]
    replay.play()
    assert replay.time == 0.0
    with pytest.raises(InvalidInput):
        replay.seek(float("nan"))


def test_a_trajectory_of_another_simulator_is_replayed_without_contacts(trajectory):
    loaded = Trajectory.load(trajectory)
    object.__setattr__(loaded, "contact", "of another simulator")
    replay = Replay(loaded)
    replay.seek(0.1)
    assert len(replay.views()[0].contacts.mode) == 0
    assert "Contacts are not shown" in replay.notice


ARM = """<mujoco><worldbody><body><joint name="lift" type="hinge" axis="0 1 0" range="-90 90"/>
<geom type="capsule" size=".02 .1"/></body></worldbody>
<actuator><position name="hold" joint="lift" kp="5"/>
<motor name="push" joint="lift" ctrlrange="-2 2"/></actuator>
<keyframe><key name="up" qpos="1.2" ctrl="0.5 0"/></keyframe></mujoco>"""


def load_arm():
    model = mujoco.MjModel.from_xml_string(ARM)
    return model, mujoco.MjData(model), None


def test_controls_and_keyframes_reach_both_sides():
    live = Live(load_arm)
    live.set_control(1, 1.5)
    assert [view.data.ctrl[1] for view in live.views()] == [1.5, 1.5]
    assert live.keyframes == ("as loaded", "up")
    live.set_keyframe("up")
    assert [(view.data.qpos[0], *view.data.ctrl) for view in live.views()] == [(1.2, 0.5, 0.0)] * 2
    with pytest.raises(InvalidInput, match="did you mean up"):
        live.set_keyframe("u")
    with pytest.raises(InvalidInput):
        live.set_control(0, float("nan"))


def test_a_slider_covers_the_control_range_or_the_servo_s_joint():
    pytest.importorskip("viser", reason="the extra `view` is not installed")
    from stiction.view.robot import joint_table, range_of

    model, data, _ = load_arm()
    assert range_of(model, 0, 0.0) == pytest.approx((-np.pi / 2, np.pi / 2))
    assert range_of(model, 1, 0.0) == (-2.0, 2.0)
    data.qpos[0] = 2.0
    assert "114.6 deg" in joint_table(model, data, [0])
    assert "at its limit" in joint_table(model, data, [0])


def test_time_may_pass_from_event_to_event():
    live = Live(lambda: scenes.load("pinch"), beside="nothing", stepper="event-driven")
    live.step()
    assert live.time == pytest.approx(0.002)
    assert live.views()[0].title == "stiction, coulomb, event-driven"
    with pytest.raises(InvalidInput, match="time stepping"):
        live.set_stepper("leapfrog")


def test_textures_go_over_as_jpeg_unless_they_can_be_seen_through():
    trimesh = pytest.importorskip("trimesh")
    pytest.importorskip("viser")
    image = pytest.importorskip("PIL.Image")
    from stiction.view.below import Below

    class Scene:
        def add_mesh_trimesh(self, name, mesh):
            return mesh

    class Server:
        scene = Scene()

    box = trimesh.creation.box()
    for colour, kind in (((90, 60, 30, 255), b"image/jpeg"), ((90, 60, 30, 128), b"image/png")):
        material = trimesh.visual.material.PBRMaterial(
            baseColorTexture=image.new("RGBA", (8, 8), colour)
        )
        uv = np.zeros((len(box.vertices), 2))
        box.visual = trimesh.visual.TextureVisuals(uv=uv, material=material)
        below = Below(Server(), "/side0")
        below.scene.opacity = 0.7
        sent = below.scene.add_mesh_trimesh("/bodies/box", box)
        assert kind in sent.export(file_type="glb")
        assert list(sent.visual.material.baseColorFactor) == [255, 255, 255, 178]
        assert material.baseColorTexture.format is None  # the mesh itself is left as it is
