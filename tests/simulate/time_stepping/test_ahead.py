"""Contacts ahead that a step does not come to are left out of it, and nothing is missed."""

import mujoco
import numpy as np
import pytest
from mjcf import load

import stiction
from stiction.simulate.report import BEST
from stiction.simulate.time_stepping.config import Stop
from stiction.simulate.time_stepping.fallback import Answer
from stiction.simulate.time_stepping.workspace import Count

RADIUS = 0.02


def spheres(places, joint="<freejoint/>", floor="", gravity="0 0 0"):
    bodies = "".join(
        f'<body pos="{x} {y} {z}">{joint}<geom type="sphere" size="{RADIUS}" mass="1"/></body>'
        for x, y, z in places
    )
    return load(
        f'<mujoco><option gravity="{gravity}"/><worldbody>{floor}{bodies}</worldbody></mujoco>'
    )


def least_gap(data):
    place = data.xpos[1:]
    apart = np.linalg.norm(place[:, None] - place[None], axis=2)
    return apart[np.triu_indices(len(place), 1)].min() - 2.0 * RADIUS


def test_bodies_that_fall_together_do_not_meet():
    grid = [
        (0.05 * i, 0.05 * j, 1.0 + 0.05 * k) for i in range(4) for j in range(4) for k in range(4)
    ]
    model, data = spheres(grid, floor='<geom type="plane" size="2 2 1"/>', gravity="0 0 -9.81")
    data.qvel.reshape(-1, 6)[:, 2] = -4.0
    sim = stiction.Simulator(model)
    sim.step(data, 50)
    assert data.ncon > 100  # within the reach of their speed
    assert not data.nefc
    assert sim.statistics.most_contacts == 0
    fall = 4.0 * 0.1 + 9.81 * 0.002**2 * 50 * 51 / 2
    np.testing.assert_allclose(
        data.qpos.reshape(-1, 7)[:, 2], np.array(grid)[:, 2] - fall, atol=1e-12
    )
    sim.step(data, 150)
    mujoco.mj_kinematics(model, data)
    assert least_gap(data) > -1e-6
    assert data.xpos[1:, 2].min() > RADIUS - 1e-6


@pytest.mark.parametrize("gap", [1e-5, 1e-4, 3e-4])
def test_a_push_through_a_row_of_bodies_is_seen_to_its_end(gap):
    """Each is run into only because the one before it is."""
    rows, count, pitch = 8, 12, 2.0 * RADIUS + gap
    model, data = spheres(
        [(pitch * k, 1.0 * row, 0.0) for row in range(rows) for k in range(count)],
        '<joint type="slide" axis="1 0 0"/>',
    )
    speed = data.qvel.reshape(rows, count)
    speed[:, 0] = np.linspace(10.0, 40.0, rows)
    ends = speed.mean(axis=1, keepdims=True) * np.ones(count)
    sim = stiction.Simulator(model)
    for _ in range(20):
        report = sim.step(data)
        assert report.certificate.worst <= 1e-8
        mujoco.mj_kinematics(model, data)
        assert least_gap(data) > -1e-9
        np.testing.assert_allclose(speed.mean(axis=1, keepdims=True), ends[:, :1])
    np.testing.assert_allclose(speed, ends)


def test_what_was_left_out_looks_as_mujoco_leaves_contacts_in_a_gap():
    model, data = spheres([(0.05 * k, 0.0, 0.0) for k in range(60)])
    data.qvel.reshape(-1, 6)[:, 2] = 3.0
    stiction.Simulator(model).step(data)
    assert data.ncon == 59
    assert set(data.contact.exclude) == {1}
    assert set(data.contact.efc_address) == {-1}


def test_a_step_that_is_solved_anew_begins_with_its_first_answer():
    """Of a row that is pushed, as many as are looked at before; then all that are behind them."""
    pitch, count = 2.0 * RADIUS + 1e-5, 80
    model, data = spheres([(pitch * k, 0.0, 0.0) for k in range(count)])
    data.qvel[0] = 10.0
    sim = stiction.Simulator(model)
    report = sim.step(data)
    assert report.certificate.worst <= 1e-8
    step = sim._engine.work.step
    known, blocks = step.counts[Count.ANSWERED], step.counts[Count.BLOCKS]
    assert 0 < known < blocks
    kept = {tuple(line) for line in step.answer[:known, :3].astype(int)}
    assert kept < {tuple(line[:3]) for line in step.key[:blocks]}


def test_a_heap_that_forms_is_seldom_solved_twice():
    """What is hit runs into its neighbours, and they into theirs."""
    rng = np.random.default_rng(3)
    grid = np.array([(i, j, k) for i in range(4) for j in range(4) for k in range(5)]) - 1.5
    places = 2.1 * RADIUS * grid + rng.normal(size=(80, 3)) * 0.001 + [0.0, 0.0, 0.1]
    walls = "".join(
        f'<geom type="plane" size="1 1 1" pos="{-0.1 * x} {-0.1 * y} 0" zaxis="{x} {y} 0"/>'
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )
    floor = '<geom type="plane" size="1 1 1"/>' + walls
    model, data = spheres(places, floor=floor, gravity="0 0 -9.81")
    sim = stiction.Simulator(model)
    anew, spared = 0, 0
    for _ in range(150):
        sim.step(data)
        counts = sim._engine.work.step.counts
        anew += counts[Count.ANSWERED] > 0
        spared += counts[Count.LEFT_OUT] > 0
    assert spared > 100
    assert anew <= 10


@pytest.mark.parametrize("offset", [1.02, 0.98])
def test_spheres_meet_if_their_paths_do(offset):
    """At a step that is longer than they are, and a normal that points elsewhere."""
    model, data = spheres([(-0.06, 0.0, 0.0), (0.06, 2.0 * RADIUS * offset, 0.0)])
    data.qvel[0], data.qvel[6] = 30.0, -30.0
    stiction.Simulator(model).step(data)
    assert (data.qvel[0] == 30.0) == (offset > 1.0)


@pytest.mark.parametrize("adhesion", [0.2, 0.05])
def test_what_clings_to_a_ceiling_does_so_among_many(adhesion):
    """The weight is 0.0981 N; neighbours are 0.3 mm apart, and pull nothing."""
    bodies = "".join(
        f'<body pos="{0.0403 * i} {0.0403 * j} -.02"><freejoint/>'
        f'<geom type="sphere" size=".02" mass=".01" adhesion="{adhesion}"/></body>'
        for i in range(6)
        for j in range(6)
    )
    model, data = load(
        f'<mujoco><worldbody><geom type="plane" size="2 2 1" zaxis="0 0 -1"/>{bodies}</worldbody>'
        "</mujoco>"
    )
    sim = stiction.Simulator(model)
    sim.step(data)
    assert data.ncon > 90
    assert sim.statistics.most_contacts == 36
    sim.step(data, 49)
    fall = 0.0 if adhesion > 0.0981 else 0.02
    heights = data.qpos.reshape(-1, 7)[:, 2]
    assert np.ptp(heights) < 1e-12
    assert (heights[0] < -0.02 - fall) == (fall > 0.0)
    np.testing.assert_allclose(data.qpos.reshape(-1, 7)[:, :2], model.body_pos[1:, :2], atol=1e-12)


def test_a_step_whose_answers_lead_elsewhere_every_time_ends(monkeypatch):
    """A ball flings another one into a third, and a lever beyond its limit; no answer of the
    compiled solvers is good enough, and each would pass the limit: contacts are sought anew in
    every round, until none of them is left out."""
    boxes = "".join(
        f'<body pos="{0.3 * k} 0 .05"><freejoint/><geom type="box" size=".05 .05 .05"/></body>'
        for k in range(15)
    )
    model, data = load(f"""
<mujoco><worldbody><geom type="plane" size="9 9 1"/>{boxes}
  <body pos="0 2 1"><freejoint name="ball"/><geom size=".05" mass="10"/></body>
  <body pos=".11 2 1"><freejoint/><geom size=".05" mass=".1"/></body>
  <body pos=".2107 2 1"><freejoint name="third"/><geom size=".05" mass=".1"/></body>
  <body pos="0 4 1"><joint name="lever" axis="0 0 1" range="-5 5"/>
    <geom pos=".02 0 0" size=".01" mass=".01"/></body>
  <body pos=".02 3.93 1"><freejoint name="hammer"/><geom size=".05" mass="10"/></body>
</worldbody></mujoco>""")
    data.joint("ball").qvel[0] = data.joint("hammer").qvel[1] = 10.0
    sim = stiction.Simulator(model)
    sim._engine.config = sim._engine.config._replace(tolerance=-1.0, touch=-1e-6)
    answer, asked = sim._engine.fallback.answer, []

    def count(*args):
        asked.append(1)
        assert len(asked) < 10
        return answer(*args)

    monkeypatch.setattr(sim._engine.fallback, "answer", count)
    sim.step(data)
    assert data.joint("third").qvel[0] > 4.0
    assert data.joint("lever").qpos[0] <= np.deg2rad(5.0) + 1e-6


@pytest.mark.parametrize("taken_in", [0, 2])
def test_an_answer_that_runs_into_contacts_is_not_the_one_of_the_step(taken_in, monkeypatch):
    """A step that was flagged, and then solved with what it would run into, keeps no flag."""
    model, data = spheres([(0.0, 0.0, RADIUS)], floor='<geom type="plane" size="2 2 1"/>')
    sim = stiction.Simulator(model, on_failure="best")
    sim.step(data)
    engine, stops = sim._engine, [Stop.UNSOLVED, Stop.DONE]
    counts = engine.work.step.counts

    def run(*_):
        counts[Count.LEFT_OUT] = 5 if len(stops) == 2 else 5 - taken_in
        counts[Count.DONE] = 0
        return stops.pop(0)

    monkeypatch.setattr(engine, "_run", run)
    monkeypatch.setattr(engine.fallback, "answer", lambda *_: Answer(None, BEST))
    assert (BEST in sim.step(data).rungs) is (taken_in == 0)
