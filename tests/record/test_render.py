"""Pictures and clips. What needs graphics is skipped where there are none."""

import struct

import mujoco
import numpy as np
import pytest

import stiction
from stiction import cli, scenes
from stiction.errors import InvalidInput
from stiction.record import Camera, Look, Trajectory, compare, record, shoot
from stiction.record.render import offscreen
from stiction.record.render.encode import png, write_clip
from stiction.record.render.offscreen import NoGraphics

SMALL = Look(width=160, height=120)

BALL = """<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 .1'><freejoint/>
<geom size='.1'/></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def pinched():
    model, data, _ = scenes.load("pinch")
    scene = scenes.get("pinch")
    simulator = stiction.Simulator(model)
    return record(simulator, data, 0.2, samples=20, name="pinch", xml=scene.xml()).trajectory


def drawn(film):
    try:
        return np.stack(list(film.frames())).astype(int)
    except NoGraphics as error:
        pytest.skip(str(error))


def share(frames, colour):
    return (np.abs(frames - colour).max(axis=-1) < 60).mean()


def test_a_film_has_as_many_frames_as_its_length_and_its_slow_motion_ask_for(pinched):
    assert len(shoot([pinched], fps=20.0).time) == 5
    slow = shoot([pinched], fps=20.0, slow=3.0)
    assert len(slow.time) == 13
    assert slow.time[-1] == pytest.approx(0.2)
    few = shoot([pinched], fps=100.0, most=10)
    assert len(few.time) == 11
    assert few.fps == 50.0


def test_sticking_contacts_are_drawn_in_green_unless_they_are_not_wanted(pinched):
    frames = drawn(shoot([pinched], fps=10.0, look=SMALL))
    assert frames.shape == (3, 120, 160, 3)
    bare = drawn(shoot([pinched], fps=10.0, look=Look(160, 120, contacts=False)))
    green = (20, 200, 120)
    assert share(frames, green) > share(bare, green) + 0.002
    assert share(frames, (200, 50, 40)) > 0.05  # the pads are in the picture


def test_two_sides_stand_beside_each_other_and_mujoco_s_contacts_slide():
    both = compare(lambda: scenes.load("pinch"), ["coulomb", "mujoco"], 0.2, samples=10)
    film = shoot([outcome.trajectory for outcome in both], fps=10.0, look=Look(320, 160))
    left, right = np.split(drawn(film), 2, axis=2)
    magenta = (230, 10, 160)
    assert share(right, magenta) > share(left, magenta) + 0.0003


def test_the_camera_follows_what_goes_far():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><option gravity='0 0 0'/><worldbody><light pos='0 0 9'/>"
        "<body name='ball'><freejoint/><geom size='.1' rgba='1 0 0 1'/></body>"
        "</worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    data.qvel[0] = 5.0
    far = record(stiction.Simulator(model), data, 1.0, samples=20).trajectory
    frames = drawn(shoot([far], fps=4.0, look=SMALL))
    red = (frames[..., 0] > 1.5 * frames[..., 2]) & (frames[..., 0] > 60)
    assert red.mean(axis=(1, 2)).min() > 0.02


@pytest.mark.parametrize(
    ("look", "said"),
    [
        (lambda: Look(width=161), "even number"),
        (lambda: Look(camera=Camera("top")), "none of its own"),
        (lambda: Look(camera=Camera(follow="capsul")), "did you mean capsule"),
        (lambda: Look(camera=Camera(zoom=0.0)), "positive"),
    ],
)
def test_a_look_that_cannot_be_says_why(look, said, pinched):
    with pytest.raises(InvalidInput, match=said):
        next(shoot([pinched], look=look()).frames())


@pytest.mark.parametrize("ending", ["mp4", "gif", "webp", "webm"])
def test_the_ending_of_the_file_decides_its_format(ending, tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    frames = np.random.default_rng(1).integers(0, 255, (4, 32, 48, 3), np.uint8)
    head = write_clip(tmp_path / f"clip.{ending}", frames, 10.0, 32, 48).read_bytes()[:16]
    marks = {"mp4": b"ftyp", "gif": b"GIF89a", "webp": b"WEBP", "webm": b"\x1aE\xdf"}
    assert marks[ending] in head


def test_a_film_shows_itself_in_a_notebook(pinched):
    film = shoot([pinched], fps=10.0, look=SMALL)
    drawn(film)
    assert film._repr_html_().startswith(("<video", "<img"))


def test_without_graphics_a_film_and_a_report_say_so(pinched, monkeypatch, tmp_path):
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    film = shoot([pinched], fps=10.0, look=SMALL)
    with pytest.raises(NoGraphics, match="nonsense"):
        film.picture()
    assert "no graphics backend" in film._repr_html_()


def test_backends_that_failed_are_not_tried_again(pinched, monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(offscreen, "_working", ["nonsense"])
    monkeypatch.setattr(offscreen, "_said", [])
    film = shoot([pinched], fps=10.0, look=SMALL)
    with pytest.raises(NoGraphics, match="nonsense"):
        film.picture()
    monkeypatch.setattr(offscreen.subprocess, "Popen", None)
    with pytest.raises(NoGraphics, match="nonsense"):
        film.picture()


def test_a_report_does_not_wait_for_ever_for_its_clip(pinched, monkeypatch):
    from stiction.record import page

    drawn(shoot([pinched], fps=10.0, look=SMALL))
    monkeypatch.setattr(page, "CLIP_WAIT", 0.0)
    assert "the first" in page._seen([pinched]).text


def test_a_png_is_one():
    pixels = np.zeros((3, 5, 3), np.uint8)
    content = png(pixels)
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) == (5, 3)


def test_steps_and_comparisons_show_themselves_in_notebooks():
    model, data, _ = scenes.load("pinch")
    html = stiction.Simulator(model).step(data)._repr_html_()
    assert "certificate passed" in html
    assert html.count("<td>stick</td>") == 4
    table = compare(lambda: scenes.load("pinch"), ["coulomb"], 0.01)._repr_html_()
    assert "<td>coulomb</td>" in table


def test_render_films_a_scene_and_a_trajectory(pinched, tmp_path, monkeypatch, capsys):
    drawn(shoot([pinched], fps=10.0, look=SMALL))
    monkeypatch.chdir(tmp_path)
    words = "render pinch --time 0.1 --size 160 120 --fps 10 --out a.png --beside mujoco"
    assert cli.main(words.split()) == 0
    pinched.save("t.npz")
    assert cli.main(words.replace("pinch --time 0.1", "t.npz").split()) == 2
    assert cli.main(["render", "t.npz", "--out", "b.png"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.png", "t.npz"]
    assert len(Trajectory.load("t.npz")) == 21
    assert cli.main(["render", "t.npz", "--time", "3", "--out", "b.png"]) == 2
    assert cli.main(["render", "pinch", "--out", "b.avi"]) == 2
    assert "ends in none of" in capsys.readouterr().err


def test_films_of_two_files_of_a_common_name_do_not_overwrite_each_other(
    pinched, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("imageio_ffmpeg")
    drawn(shoot([pinched], fps=10.0, look=SMALL))
    monkeypatch.chdir(tmp_path)
    short = ["--time", "0.02", "--size", "64", "48", "--fps", "100"]
    for folder in ("dog", "cat"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "scene.xml").write_text(BALL, encoding="utf-8")
        assert cli.main(["render", f"{folder}/scene.xml", *short]) == 0
    (tmp_path / "held").mkdir()
    pinched.save("held/trajectory.npz")
    assert cli.main(["render", "held/trajectory.npz", "--size", "64", "48"]) == 0
    assert sorted(path.name for path in tmp_path.glob("*.mp4")) == [
        "cat.mp4",
        "dog.mp4",
        "held.mp4",
    ]
    assert "in the place of" not in capsys.readouterr().out
    assert cli.main(["render", "cat/scene.xml", *short]) == 0
    assert "MB) in the place of an earlier one" in capsys.readouterr().out
