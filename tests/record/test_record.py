import re
from contextlib import suppress

import mujoco
import numpy as np
import pytest

import stiction
from stiction import scenes
from stiction.record import (
    Trajectory,
    compare,
    contact_name,
    diagnose,
    parse_contact,
    record,
    tuned,
)
from stiction.record.motion import bodies_to_watch

BLOCK = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1" {floor}/>
    <body name="block" pos="0 0 {height}">
      <freejoint/>
      <geom name="side" type="{shape}" size=".05 .05 .05" mass="1" {geom}/>
    </body>
    <body name="post" pos="2 0 1"><geom size=".1"/></body>
  </worldbody>
</mujoco>"""


def block_model(shape="box", floor="", geom="", height=0.05, gravity=(0.0, 0.0, -9.81)):
    text = BLOCK.format(shape=shape, floor=floor, geom=geom, height=height)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.gravity[:] = gravity
    return model, text


def loader(model):
    def load():
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        return model, data, None

    return load


@pytest.fixture(scope="module")
def fall():
    """A block that falls 1 cm and lands."""
    model, text = block_model(height=0.06)
    data = mujoco.MjData(model)
    recording = record(
        stiction.Simulator(model), data, 0.2, samples=20, name="fall <1 cm>", xml=text
    )
    return recording


def test_samples_are_evenly_apart_and_cover_the_run(fall):
    assert np.allclose(fall.time, np.linspace(0.0, 0.2, 21))
    assert fall.steps == 100
    assert fall.taken.sum() == 100
    assert sum(fall.rungs.values()) == 100


def test_without_a_watch_list_free_bodies_in_contact_are_watched(fall):
    assert fall.trajectory.watch == ("block",)
    model, _ = block_model()
    assert bodies_to_watch(model, {"world", "post"}) == ("block",)


def test_motion_contacts_and_energy_of_a_fall_are_what_they_should_be(fall):
    drop = fall.motion.displacement[:, 0, 2]
    assert drop[-1] == pytest.approx(-0.01, abs=1e-9)
    assert fall.motion.sink() == pytest.approx(0.01, abs=1e-9)
    assert fall.motion.creep(fall.time) < 1e-9
    assert fall.motion.speed.max() > 0.3
    lost = fall.motion.potential[0] - fall.motion.potential[-1]
    assert lost == pytest.approx(9.81 * 0.01, rel=1e-6)
    assert fall.motion.kinetic[-1] < 1e-12
    last = np.array(fall.contacts.sample) == len(fall.time) - 1
    assert fall.contacts.column("normal")[last].sum() == pytest.approx(9.81, rel=1e-6)
    assert fall.contacts.pairs == [("world", "block")]
    assert fall.worst.max() <= 1e-8
    assert fall.penetration.max() < 1e-9
    assert fall.us_per_step > 0.0


def test_a_trajectory_comes_back_with_its_model_and_states(fall, tmp_path):
    path = fall.trajectory.save(tmp_path / "t.npz")
    loaded = Trajectory.load(path)
    assert len(loaded) == 21
    for name in ("time", "qpos", "qvel", "ctrl", "mocap_pos"):
        assert np.array_equal(getattr(loaded, name), getattr(fall.trajectory, name))
    assert (loaded.name, loaded.contact, loaded.watch) == ("fall <1 cm>", "coulomb", ("block",))
    model = loaded.model()
    assert model.opt.timestep == 0.002
    data = mujoco.MjData(model)
    loaded.put(data, -1)
    mujoco.mj_forward(model, data)
    assert data.time == pytest.approx(0.2)
    assert data.body("block").xpos[2] == pytest.approx(0.05)


def test_a_trajectory_says_what_it_is(fall):
    text = repr(fall.trajectory)
    assert text.startswith("Trajectory('fall <1 cm>', ")
    assert f"{len(fall.trajectory)} samples, 0 to " in text


def test_a_trajectory_of_a_file_finds_it_and_says_when_it_is_gone(tmp_path):
    model, text = block_model()
    file = tmp_path / "block.xml"
    file.write_text(text, encoding="utf-8")
    data = mujoco.MjData(model)
    kept = record(stiction.Simulator(model), data, 0.01, path=str(file))
    path = kept.trajectory.save(tmp_path / "t.npz")
    assert Trajectory.load(path).model().nq == 7
    file.unlink()
    with pytest.raises(stiction.InvalidInput, match="is gone"):
        Trajectory.load(path).model()
    assert Trajectory.load(path, model=model).model() is model


def test_what_is_no_trajectory_is_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"not a zip")
    np.savez(tmp_path / "b.npz", x=1)
    for name, reason in (("a", "no trajectory"), ("b", "without format"), ("c", "no such file")):
        with pytest.raises(stiction.InvalidInput, match=reason):
            Trajectory.load(tmp_path / f"{name}.npz")


def test_a_damaged_trajectory_is_refused_by_name_or_whole(fall, tmp_path):
    path = fall.trajectory.save(tmp_path / "t.npz")
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = tmp_path / "damaged.npz"
    for trial in range(300):
        bad = bytearray(good)
        if trial % 3 == 0:
            bad = bad[: rng.integers(len(good))]
        else:
            for _ in range(rng.integers(1, 20)):
                bad[rng.integers(len(bad))] = rng.integers(256)
        damaged.write_bytes(bad)
        with suppress(stiction.InvalidInput):
            Trajectory.load(damaged).model()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("qpos", np.zeros((3, 7)), "qpos"),
        ("qvel", np.zeros(5), "qvel"),
        ("qpos", np.array(["a", "b"]), "qpos"),
        ("mocap_pos", np.zeros((1, 0, 4)), "mocap_pos"),
        ("time", np.zeros(0), "time"),
        ("timestep", np.array(-1.0), "timestep"),
        ("timestep", np.array("long"), "timestep"),
        ("timestep", np.zeros(2), "timestep"),
        ("format", np.zeros(2), "format"),
        ("xml", np.array("<mujoco"), "does not compile"),
        ("act", None, "without act"),
    ],
    ids=str,
)
def test_a_trajectory_whose_arrays_do_not_fit_is_refused_by_their_name(
    name, value, said, fall, tmp_path
):
    path = fall.trajectory.save(tmp_path / "t.npz")
    with np.load(path) as file:
        content = {key: file[key] for key in file.files}
    content[name] = value
    np.savez(path, **{key: array for key, array in content.items() if array is not None})
    with pytest.raises(stiction.InvalidInput, match=said):
        Trajectory.load(path).model()


def test_a_sample_that_is_not_a_number_is_named(fall, tmp_path):
    path = fall.trajectory.save(tmp_path / "t.npz")
    with np.load(path) as file:
        content = {key: file[key] for key in file.files}
    content["qvel"][2, 1] = np.nan
    np.savez(path, **content)
    with pytest.raises(stiction.InvalidInput, match=r"qvel\[2, 1\]"):
        Trajectory.load(path)


def test_ctrl_c_keeps_what_was_done():
    model, data, _ = scenes.load("pinch")

    def interrupt(progress):
        if progress.simulated > 0.05:
            raise KeyboardInterrupt

    kept = record(stiction.Simulator(model), data, 1.0, samples=100, on_progress=interrupt)
    assert kept.interrupted
    assert 0.05 < kept.time[-1] < 0.1
    assert len(kept.time) == len(kept.worst) == len(kept.rung) == len(kept.motion.speed)


def test_ctrl_c_within_a_sample_leaves_no_half_of_it(monkeypatch):
    model, data, _ = scenes.load("pinch")
    simulator = stiction.Simulator(model)

    def interrupt(data, report):
        if data.time > 0.05:
            monkeypatch.setattr(stiction.simulate.report.Contact, "margin", property(stop))

    def stop(contact):
        raise KeyboardInterrupt

    kept = record(simulator, data, 1.0, samples=100, on_sample=interrupt)
    assert kept.interrupted
    assert max(kept.contacts.sample) < len(kept.time)
    assert len(kept.contacts.sample) == len(kept.contacts.mode)
    assert kept.sliding_speed().shape == kept.time.shape


def test_a_state_that_is_not_finite_ends_the_run_and_keeps_it():
    model, data, _ = scenes.load("pinch")

    def break_it(model, data):
        if data.time > 0.021:
            data.ctrl[:] = np.nan

    kept = record(stiction.Simulator(model), data, 1.0, controller=break_it, samples=50)
    assert "data.ctrl" in kept.failure
    assert kept.time[-1] == pytest.approx(0.022)
    assert kept.steps == 11


def test_a_report_has_its_sections_and_needs_no_network(fall, tmp_path):
    from stiction.record.page import save_series, write_report

    text = write_report(fall, tmp_path / "r.html").read_text(encoding="utf-8")
    headings = re.findall(r"<h2>(.*?)</h2>", text)
    assert headings == [
        "Slip", "Penetration", "Contact forces", "Contact modes", "Energy", "Certificate",
        "Pivots", "Time by stage", "Machine and versions",
    ]  # fmt: skip
    assert "<h1>fall &lt;1 cm&gt;</h1>" in text
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)\s*=", text)
    assert len(re.findall(r'class="plotly-graph-div"', text)) >= 10
    assert mujoco.__version__ in text
    series = np.load(save_series(fall, tmp_path / "s.npz"))
    assert series["displacement"].shape == (21, 1, 3)


def test_names_of_contact_models_go_both_ways():
    for name in ("coulomb", "coulomb:8", "no-slip", "viscous:0.1", "frictionless", "baraff"):
        assert contact_name(parse_contact(name)) == name
    assert parse_contact("coulomb", solver="search").solver == "search"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("coulom", "did you mean coulomb"),
        ("viscous", "viscous:0.1"),
        ("no-slip:3", "takes no number"),
        ("coulomb:2", "3 or more"),
        ("coulomb:8.5", "whole number"),
        ("coulomb:x", "no number"),
    ],
)
def test_a_wrong_contact_model_says_what_is_wrong(name, reason):
    with pytest.raises(stiction.InvalidInput, match=reason):
        parse_contact(name)


def test_comparison_sees_mujoco_creep_where_the_exact_cone_holds():
    outcomes = compare(lambda: scenes.load("pinch"), ["mujoco", "coulomb", "mujoco-C"], 0.4)
    soft, exact, hard = outcomes
    assert [outcome.name for outcome in outcomes] == ["mujoco", "coulomb", "mujoco-C"]
    assert exact.motion.bodies == soft.motion.bodies == ("capsule",)
    assert exact.creep < 1e-12
    assert 1e-5 < soft.creep < 1e-2
    assert hard.creep < soft.creep / 100
    assert exact.penetration.max() < 1e-9 < soft.penetration.max()
    assert soft.worst is None
    assert exact.worst <= 1e-8


def test_tuning_leaves_the_model_itself_alone():
    model, _ = block_model()
    assert tuned(model, 20).opt.noslip_iterations == 20
    assert model.opt.noslip_iterations == 0
    assert model.geom_solref[0, 0] == 0.02


def found(model, seconds=0.1):
    return {finding.kind: finding for finding in diagnose(loader(model), seconds).findings}


def test_diagnosis_tells_a_frictionless_contact():
    model, _ = block_model(floor="condim='1'", geom="condim='1'", gravity=(1.0, 0.0, -9.81))
    assert "condim is 1" in found(model)["condim 1"].text


def test_diagnosis_tells_friction_that_is_too_small_and_how_much_would_do():
    friction = "friction='.1'"
    model, _ = block_model(floor=friction, geom=friction, gravity=(3.0, 0.0, -9.81))
    finding = found(model)["too little friction"]
    assert "mu 0.31" in finding.text
    assert "3.1 times" in finding.advice


def test_diagnosis_tells_a_block_that_holds_and_one_that_is_near_the_edge():
    friction = "friction='.32'"
    model, _ = block_model(floor=friction, geom=friction, gravity=(3.0, 0.0, -9.81))
    kinds = found(model)
    assert "96 %" in kinds["near the cone"].text
    assert "holds" in kinds
    assert "too little friction" not in kinds


@pytest.mark.parametrize(("condim", "free"), [(3, True), (4, True), (6, False)])
def test_diagnosis_tells_a_ball_that_nothing_keeps_from_rolling(condim, free):
    rough = f"condim='{condim}' friction='1 .05 .05'"
    model, _ = block_model("sphere", floor=rough, geom=rough, gravity=(1.0, 0.0, -9.81))
    kinds = found(model)
    assert ("free to turn" in kinds) == free
    if free:
        assert kinds["free to turn"].cause
        assert "touched at one point" in kinds["free to turn"].text


def test_diagnosis_tells_what_is_ignored():
    soft = "solref='.004 1' margin='.001'"
    model, _ = block_model(floor=soft)
    model.opt.noslip_iterations = 10
    findings = diagnose(loader(model), 0.05).findings
    said = " ".join(finding.text for finding in findings if finding.kind == "ignored")
    for word in ('solref "0.004 1"', "margin 0.001", "noslip_iterations 10"):
        assert word in said


def test_diagnosis_tells_that_nothing_touches():
    model, _ = block_model(height=0.5)
    assert "no contact" in found(model, 0.02)


def test_diagnosis_tells_that_only_mujoco_lets_it_creep():
    kinds = {f.kind: f for f in diagnose(lambda: scenes.load("pinch"), 0.4).findings}
    assert "regularized" in kinds["soft friction"].text
    assert "holds" in kinds
