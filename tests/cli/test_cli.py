import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import terminal

import stiction
from stiction import cli
from stiction.record import Trajectory

URDF = """<robot name="cart">
  <link name="base"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="arm"/>
    <axis xyz="0 1 0"/></joint>
</robot>"""


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def test_run_writes_a_report_and_a_trajectory(tmp_path, capsys):
    assert cli.main(["run", "pinch", "--time", "0.05", "--contact", "no-slip"]) == 0
    folder = tmp_path / "stiction-runs" / "pinch-no-slip"
    assert sorted(p.name for p in folder.iterdir()) == [
        "report.html", "series.npz", "trajectory.npz",
    ]  # fmt: skip
    trajectory = Trajectory.load(folder / "trajectory.npz")
    assert trajectory.time[-1] == pytest.approx(0.05)
    assert trajectory.contact == "no-slip"
    assert "worst certificate" in capsys.readouterr().out


def test_run_takes_options_a_time_step_and_a_folder(tmp_path):
    words = "run grasp --set boxes=3 friction=0.9 --set force=400 --time 0.02 --dt 0.002 --out here"
    assert cli.main(words.split()) == 0
    trajectory = Trajectory.load(tmp_path / "here" / "trajectory.npz")
    assert trajectory.timestep == 0.002
    assert len(trajectory) == 11
    assert trajectory.model().nbody == stiction.scenes.load("grasp", boxes=3)[0].nbody


def test_run_takes_an_mjcf_file_with_a_keyframe_and_a_urdf(tmp_path, capsys):
    (tmp_path / "ball.xml").write_text(
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body name='ball' pos='0 0 .1'>"
        "<freejoint/><geom size='.1'/></body></worldbody><keyframe>"
        "<key name='high' qpos='0 0 .5 1 0 0 0'/></keyframe></mujoco>",
        encoding="utf-8",
    )
    (tmp_path / "cart.urdf").write_text(URDF, encoding="utf-8")
    assert (
        cli.main(["run", "ball.xml", "--time", "0.02", "--keyframe", "high", "--out", "ball"]) == 0
    )
    assert Trajectory.load("ball/trajectory.npz").qpos[0, 2] == 0.5
    assert cli.main(["run", "cart.urdf", "--time", "0.02"]) == 0
    assert cli.main(["run", "ball.xml", "--time", "0.02", "--keyframe", "hihg"]) == 2
    assert "did you mean high?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("rnu pinch", "did you mean run?"),
        ("xyz", "one of run, compare"),
        ("run pnch", "did you mean pinch"),
        ("run pinch --contact coulom", "did you mean coulomb?"),
        ("run pinch --contact viscous", "viscous:0.1"),
        ("run pinch --set frction=1", "did you mean friction?"),
        ("run pinch --set friction", "option=value"),
        ("run stack --set boxes=few", "whole number"),
        ("run pinch --time -1", "positive time"),
        ("run pinch --dt 0", "positive time"),
        ("run absent.xml", "no such file"),
        ("compare pinch --contact coulomb,mujoko", "did you mean mujoco"),
        ("replay absent.npz", "no such file"),
        ("replay absent.npz --solver lemk", "one of reduced"),
        ("run pinch --contatc coulomb", "--contact"),
        ("run", "SCENE"),
    ],
)
def test_a_mistake_is_named_and_ends_with_2(words, said, capsys):
    assert cli.main(words.split()) == 2
    assert said in capsys.readouterr().err


def test_a_file_near_the_misspelt_one_is_named(tmp_path, capsys):
    (tmp_path / "gripper.xml").write_text("<mujoco/>", encoding="utf-8")
    assert cli.main(["run", "griper.xml"]) == 2
    assert "did you mean gripper.xml?" in capsys.readouterr().err


def test_a_model_is_no_saved_problem(tmp_path, capsys):
    (tmp_path / "model.xml").write_text("<mujoco/>", encoding="utf-8")
    assert cli.main(["replay", "model.xml"]) == 2
    said = capsys.readouterr().err
    assert "not a .npz file of numbers" in said
    assert "pickle" not in said


def test_a_model_that_mujoco_refuses_is_a_mistake(tmp_path, capsys):
    (tmp_path / "bad.xml").write_text("<mujoco><nonsense/></mujoco>", encoding="utf-8")
    assert cli.main(["run", "bad.xml"]) == 2
    assert "nonsense" in capsys.readouterr().err


def test_compare_prints_a_table_and_writes_plots(tmp_path, capsys):
    assert cli.main(["compare", "pinch", "--time", "0.1", "--contact", "coulomb,mujoco"]) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    ours = next(line for line in lines if line[:1] == ["coulomb"])
    theirs = next(line for line in lines if line[:1] == ["mujoco"])
    assert float(ours[1]) < 1e-6 < float(theirs[1])
    text = (tmp_path / "stiction-runs" / "pinch-compare" / "compare.html").read_text("utf-8")
    assert ">ended<" not in text  # a column that only runs which end early fill
    assert "<h2>Slip</h2>" in text
    assert 'src="http' not in text


def test_diagnose_says_why(capsys):
    assert cli.main(["diagnose", "incline", "--time", "0.1", "--set", "friction=0.3"]) == 0
    out = capsys.readouterr().out
    assert "world - block" in out
    assert "too little friction: world and block" in out


@pytest.mark.parametrize("scene", ["incline", "stack"])
def test_no_number_is_cut_at_80_columns(scene, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    options = ["--set", "friction=0.3"] if scene == "incline" else []
    assert cli.main(["diagnose", scene, "--time", "0.05", *options]) == 0
    out = capsys.readouterr().out
    assert "\u2026" not in out
    assert max(map(len, out.splitlines())) <= 80
    table = out.split("\n\n")[1].splitlines()
    assert len({len(line.rstrip()) for line in table if line[-1].isdigit()}) == 1


def test_runs_of_two_files_of_a_common_name_do_not_overwrite_each_other(tmp_path, capsys):
    for folder in ("dog", "cat"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "scene.xml").write_text("<mujoco/>", encoding="utf-8")
        assert cli.main(["run", f"{folder}/scene.xml", "--time", "0.02"]) == 0
    kept = sorted(path.name for path in (tmp_path / "stiction-runs").iterdir())
    assert kept == ["cat-coulomb", "dog-coulomb"]
    assert "in the place of" not in capsys.readouterr().out
    assert cli.main(["run", "cat/scene.xml", "--time", "0.02"]) == 0
    assert f"in the place of an earlier run of {tmp_path}/cat/scene.xml" in capsys.readouterr().out


@pytest.mark.parametrize("solver", ["reduced", "structural", "standard", "search"])
def test_replay_takes_the_solver_that_was_asked_for_on_the_exact_cone_too(solver, capsys):
    saved_block().save("p.npz")
    assert cli.main(["replay", "p.npz", "--solver", solver]) == 0
    assert f"rungs       {solver}\n" in capsys.readouterr().out


def saved_block():
    return stiction.ContactProblem(
        mass=np.eye(3), velocity=np.zeros(3), force=[4.0, 0.0, -9.81], dt=0.01,
        normal=[[0, 0, 1]], tangent=[[[1, 0, 0], [0, 1, 0]]], friction=0.5,
    )  # fmt: skip


def test_replay_solves_a_saved_problem_again(tmp_path, capsys):
    saved_block().save(tmp_path / "p.npz")
    assert cli.main(["replay", "p.npz"]) == 0
    out = capsys.readouterr().out
    for word in ("status      solved", "rungs       reduced", "1 stick", "certificate passed"):
        assert word in out
    assert cli.main(["replay", "p.npz", "--contact", "frictionless", "--solver", "search"]) == 2
    (tmp_path / "not.npz").write_bytes(b"nothing")
    assert cli.main(["replay", "not.npz"]) == 2


def test_scenes_lists_every_scene(capsys):
    assert cli.main(["scenes"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in stiction.scenes.names())


def test_bench_says_when_its_script_is_missing(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("stiction.cli.bench.PLACES", (tmp_path,))
    assert cli.main(["bench"]) == 1
    assert "simulator_speed.py" in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_prints_a_script_that_knows_commands_and_options(shell, capsys):
    assert cli.main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("diagnose", "--contact", "stiction"))


def test_without_a_command_the_help_is_shown(capsys):
    assert cli.main([]) == 0
    assert "diagnose" in capsys.readouterr().out
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"stiction {stiction.__version__}\n"


def test_help_needs_none_of_the_heavy_packages():
    code = (
        "import sys\nfrom stiction.cli import main\nassert main(['--help']) == 0\n"
        "assert main(['run', '--help']) == 0\n"
        "heavy = {'numpy', 'numba', 'mujoco', 'plotly', 'scipy', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "compare" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to a child process on Windows")
def test_ctrl_c_in_a_process_of_its_own_keeps_the_results(tmp_path):
    # Compiled beforehand: while kernels compile there is nothing to keep yet.
    assert cli.main(["run", "quadruped", "--time", "0.01", "--out", "before"]) == 0
    for patience in (1.0, 5.0, 25.0):
        out, err, code = interrupt_a_run(tmp_path / f"after-{patience:g}", patience)
        assert code == 1, err
        if out:
            break
        assert "stopped" in err, "what was stopped before its first step should say so"
    assert "stopped by Ctrl-C" in out
    kept = tmp_path / f"after-{patience:g}"
    assert len(Trajectory.load(kept / "trajectory.npz")) > 1
    assert (kept / "report.html").is_file()


def interrupt_a_run(folder, patience):
    """What `stiction run` prints that is sent Ctrl-C that long after it made its folder."""
    process = terminal.start("run", "quadruped", "--time", "1e4", "--out", folder.name)
    deadline = time.monotonic() + 300
    while not folder.exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(patience)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    return out, err, process.returncode


@pytest.mark.parametrize("command", ["run", "compare"])
@pytest.mark.parametrize("out", ["taken", "taken/below", "/dev/null/x"])
def test_an_out_that_cannot_be_written_to_is_named_before_anything_runs(
    command, out, tmp_path, capsys
):
    (tmp_path / "taken").write_text("mine", encoding="utf-8")
    assert cli.main([command, "pinch", "--out", out]) == 2
    assert_one_line(capsys, "--out")
    assert (tmp_path / "taken").read_text(encoding="utf-8") == "mine"


def assert_one_line(capsys, said):
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("stiction: ")
    assert said in told.err
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "compare", "diagnose"])
@pytest.mark.parametrize("name", ["robots", "robot.xml"])
def test_a_directory_for_a_scene_is_named(command, name, tmp_path, capsys):
    (tmp_path / name).mkdir()
    assert cli.main([command, name]) == 2
    assert_one_line(capsys, "is a directory")


@pytest.mark.parametrize("value", ["1e300", "nan", "inf", "-inf"])
@pytest.mark.parametrize("command", ["run", "diagnose"])
def test_an_option_beyond_use_ends_with_a_sentence(command, value, capfd):
    code = cli.main([command, "pinch", "--set", f"force={value}"])
    told = capfd.readouterr()
    assert code in (1, 2)
    assert "Traceback" not in told.out + told.err
    assert "diverges" in told.out + told.err or "stiction: " in told.err


def test_ctrl_c_in_bench_is_one_line():
    with terminal.start("bench") as process:
        time.sleep(2.0)
        os.kill(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 1
    assert told.strip().splitlines() == ["stiction: stopped"]


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="pipes end otherwise here")
def test_a_reader_of_bench_that_stops_early_sees_no_traceback():
    with terminal.start("bench") as process:
        process.stdout.close()  # before the first line
        told = process.stderr.read()
        process.wait(timeout=60)
    assert process.returncode == 0
    assert told == ""


@pytest.mark.parametrize(
    "content", [b"", bytes(range(256)) * 8, b"<mujoco", b"<mujoco><worldbody>"]
)
@pytest.mark.parametrize("command", ["run", "compare", "diagnose"])
@pytest.mark.parametrize("name", ["broken.xml", "broken.urdf"])
def test_a_scene_that_is_no_model_is_one_line(name, command, content, capfd):
    Path(name).write_bytes(content)
    code = cli.main([command, name])
    told = capfd.readouterr()
    assert code == 2
    assert "Traceback" not in told.out + told.err
    assert "broken" in told.err


@pytest.mark.parametrize(
    "setting",
    ["friction", "=", "=0.5", "friction=", "friction=a=b", "friction==1", "a b=1", "force=[1"],
)
def test_a_setting_that_is_none_is_named(setting, capfd):
    assert cli.main(["run", "pinch", "--time", "0.01", "--set", setting]) == 2
    told = capfd.readouterr()
    assert "Traceback" not in told.out + told.err
