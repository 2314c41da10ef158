import re
from contextlib import suppress

import mujoco
import numpy as np
import pytest
from blocks import block_model

import stiction
from stiction import scenes
from stiction.record import (
    Trajectory,
    compare,
    contact_name,
    parse_contact,
    record,
    tuned,
)
from stiction.record.motion import bodies_to_watch


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


def test_where_nothing_is_watched_nothing_sinks():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>"
    )
    still = record(stiction.Simulator(model), mujoco.MjData(model), 0.02, samples=2)
    assert still.motion.sink() == 0.0


def test_motion_contacts_and_energy_of_a_fall_are_what_they_should_be(fall):
    drop = fall.motion.displacement[:, 0, 2]
    assert drop[-1] == pytest.approx(-0.01, abs=1e-9)
    assert fall.motion.sink() == pytest.approx(0.01, abs=1e-9)
    assert fall.motion.net_speed(fall.time) < 1e-9
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
    assert not re.search(r"""<[^>]+(src|href)\s*=\s*["'](?!data:)""", text)
    assert len(re.findall(r'class="plot"', text)) >= 10
    assert len(text) < 3e6
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
    assert exact.net_speed < 1e-12
    assert 1e-5 < soft.net_speed < 1e-2
    assert hard.net_speed < soft.net_speed / 100
    assert exact.penetration.max() < 1e-9 < soft.penetration.max()
    assert soft.worst is None
    assert exact.worst <= 1e-8


def test_tuning_leaves_the_model_itself_alone():
    model, _ = block_model()
    assert tuned(model, 20).opt.noslip_iterations == 20
    assert model.opt.noslip_iterations == 0
    assert model.geom_solref[0, 0] == 0.02


def test_a_run_without_contacts_does_not_claim_to_have_solved_anything():
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    kept = record(stiction.Simulator(model), mujoco.MjData(model), 0.1, samples=5)
    assert kept.rungs == {"no contact": 50}


def test_the_headline_overlap_is_the_deepest_of_all_steps_not_of_the_samples():
    from stiction.record.page import summary
    from stiction.record.words import length

    model, _ = block_model(height=0.049)
    kept = record(stiction.Simulator(model), mujoco.MjData(model), 0.2, samples=2)
    assert kept.penetration.max() < 1e-5
    assert summary(kept)["deepest overlap, all steps"] == length(kept.overlap.max()) == "1 mm"
