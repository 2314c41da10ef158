"""Models that a visitor sends are checked before MuJoCo reads them."""

import io
import zipfile
from pathlib import Path

import pytest

from stiction.errors import InvalidInput
from stiction.view import upload
from stiction.view.picker import Picker

BALL = "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
MESH = (
    "<mujoco><asset><mesh name='m' file='{file}'/></asset>"
    "<worldbody><geom type='mesh' mesh='m'/></worldbody></mujoco>"
)


def archive(**files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return content.getvalue()


def test_a_model_by_itself_and_one_with_its_assets_are_taken(tmp_path):
    assert upload.unpack("ball.xml", BALL.encode(), tmp_path).name == "model.xml"
    files = {"robot/scene.xml": "<mujoco><include file='arm.xml'/></mujoco>"}
    files["robot/arm.xml"] = MESH.format(file="parts/a.obj")
    files["robot/parts/a.obj"] = TETRAHEDRON
    files["robot/run.sh"] = "rm -rf /"
    folder = tmp_path / "zip"
    folder.mkdir()
    path = upload.unpack("robot.zip", archive(**files), folder)
    assert path == folder / "robot" / "scene.xml"
    assert not (folder / "robot" / "run.sh").exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.exe", b"MZ", "neither an .xml"),
        ("a.zip", b"nothing", "no archive"),
        ("a.zip", archive(**{"readme.md": "x"}), "no .xml"),
        ("a.zip", archive(**{"../a.xml": BALL}), "leads out"),
        ("a.zip", archive(**{"/etc/a.xml": BALL}), "leads out"),
        ("a.xml", b"<robot/>", "no MJCF"),
        ("a.xml", b"<mujoco", "no XML"),
        ("a.xml", b"<!DOCTYPE a><mujoco/>", "DOCTYPE"),
        ("a.xml", MESH.format(file="/etc/passwd").encode(), "leads out"),
        ("a.xml", MESH.format(file="../../a.obj").encode(), "leads out"),
        ("a.xml", MESH.format(file="C:a.obj").encode(), "leads out"),
        ("a.xml", b"<mujoco><include file='/etc/hosts'/></mujoco>", "leads out"),
        ("a.xml", b"<mujoco><compiler meshdir='/'/></mujoco>", "leads out"),
        ("a.xml", b"<mujoco><extension/></mujoco>", "extension"),
        ("a.xml", MESH.format(file="absent.obj").encode(), "does not compile"),
    ],
)
def test_what_could_do_harm_or_is_no_model_is_refused(name, content, said, tmp_path):
    with pytest.raises(InvalidInput, match=said):
        upload.unpack(name, content, tmp_path)


def test_sizes_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(upload, "MOST_UNPACKED", 1000)
    with pytest.raises(InvalidInput, match="unpacks to more"):
        upload.unpack("a.zip", archive(**{"a.xml": BALL, "b.txt": "0" * 2000}), tmp_path)
    monkeypatch.setattr(upload, "MOST_FILES", 1)
    with pytest.raises(InvalidInput, match="2 files"):
        upload.unpack("a.zip", archive(a="1", b="2"), tmp_path)
    monkeypatch.setattr(upload, "MOST_DOFS", 5)
    with pytest.raises(InvalidInput, match="6 degrees of freedom"):
        upload.unpack("a.xml", BALL.encode(), tmp_path)
    monkeypatch.setattr(upload, "MOST_SENT", 10)
    with pytest.raises(InvalidInput, match="10 at most"):
        upload.unpack("a.xml", BALL.encode(), tmp_path)


def test_what_was_sent_is_gone_when_the_picker_closes():
    opened = []
    picker = Picker(upload=True, make=lambda source, name: opened.append((source, name)))
    picker.receive("ball.xml", BALL.encode())
    ((source, name),) = opened
    assert name == "ball"
    assert Path(source).read_text(encoding="utf-8") == BALL
    picker.close()
    assert not Path(source).exists()
    with pytest.raises(InvalidInput, match="did you mean pinch"):
        picker.open("pnch")
