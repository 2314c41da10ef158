"""Piles: every step certified, rest for nothing, a bound on a step's time."""

import copy

import mujoco
import numpy as np
import pytest

import stiction
from stiction.contact.certificate.laws import Law
from stiction.contact.solvers.blocks.workspace import ENDLESS, Outcome, Room, Setting
from stiction.simulate.settings import check_settings
from stiction.simulate.time_stepping import climb
from stiction.simulate.time_stepping.climb import climb_islands
from stiction.simulate.time_stepping.config import Stop
from stiction.simulate.time_stepping.engine import TimeEngine
from stiction.simulate.time_stepping.request import keep_free, solve_until
from stiction.simulate.time_stepping.workspace import Count, Workspace, first_room

WALLS = "".join(
    f'<geom type="plane" pos="{a * 0.2} {b * 0.2} 0" zaxis="{-a} {-b} 0" size="5 5 1"/>'
    for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1))
)


def pile(count, shape="box", friction=0.5, ratio=1.0):
    """Bodies above a bin, tumbled; every other one `ratio` times as heavy."""
    rng = np.random.default_rng(1)
    size = {"box": ".05 .04 .03", "sphere": ".05", "capsule": ".025 .03"}
    bodies = ""
    for i in range(count):
        kind = ("sphere", "box", "capsule")[i % 3] if shape == "mixed" else shape
        place = np.array([i % 2, i // 2 % 2, i // 4]) * 0.15 - [0.075, 0.075, -0.1]
        x, y, z = place + rng.normal(size=3) * 0.004
        q = rng.normal(size=4)
        bodies += (
            f'<body pos="{x} {y} {z}" quat="{q[0]} {q[1]} {q[2]} {q[3]}"><freejoint/>'
            f'<geom type="{kind}" size="{size[kind]}" mass="{0.5 * ratio ** (i % 2)}"/></body>'
        )
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="0.002"/><default><geom friction="{friction} 0 0"/></default>'
        f'<worldbody><geom type="plane" size="5 5 1"/>{WALLS}{bodies}</worldbody></mujoco>'
    )


@pytest.mark.parametrize(
    ("count", "shape", "friction", "ratio"),
    [
        (8, "box", 0.5, 1.0),
        (10, "mixed", 0.9, 1.0),
        (8, "box", 0.5, 100.0),
        (12, "sphere", 0.3, 1.0),
    ],
)
def test_every_step_of_a_pile_is_certified(count, shape, friction, ratio):
    model = pile(count, shape, friction, ratio)
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    for _ in range(300):
        assert sim.step(data).certificate.worst <= 1e-8
    assert set(sim.statistics.rungs) <= {"proximal", "interior point", "patches"}


def test_polygons_no_slip_and_viscous_contact_solve_piles_as_well():
    model = pile(6)
    for contact in (stiction.Coulomb(facets=8), stiction.NoSlip(), stiction.Viscous(50.0)):
        data, sim = mujoco.MjData(model), stiction.Simulator(model, contact)
        for _ in range(150):
            assert sim.step(data).certificate.worst <= 1e-6


def test_islands_are_solved_apart():
    """Two boxes far from each other move to the bit as each does alone."""
    box = '<body pos="{} 0 .12" euler="10 20 30"><freejoint/>{}</body>'
    geom = '<geom type="box" size=".05 .04 .03"/>'
    ground = '<geom type="plane" size="50 50 1"/>'
    both = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody>"
        f"{ground}{box.format(0, geom)}{box.format(20, geom)}</worldbody></mujoco>"
    )
    one = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{ground}{box.format(0, geom)}</worldbody></mujoco>"
    )
    data, alone = mujoco.MjData(both), mujoco.MjData(one)
    sims = stiction.Simulator(both), stiction.Simulator(one)
    for _ in range(300):
        sims[0].step(data)
        sims[1].step(alone)
        assert np.array_equal(data.qvel[:6], alone.qvel)


def test_what_rests_costs_no_solve_and_stays_to_the_bit():
    model = pile(1)
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    sim.step(data, 2000)
    before = copy.copy(data)
    sim.reset_statistics()
    report = sim.step(data, 100)
    assert sim.statistics.pivots == 0.0
    assert np.array_equal(data.qpos, before.qpos)
    assert data.time == pytest.approx(before.time + 0.2)
    assert report.certificate.passed
    assert sum(contact.force[0] for contact in report.contacts) == pytest.approx(0.5 * 9.81)


def test_what_rests_wakes_when_it_is_pushed_or_its_model_changes():
    model = pile(1)
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    sim.step(data, 2000)
    data.xfrc_applied[1, 2] = 10.0
    sim.step(data, 10)
    assert data.qvel[2] > 0.0
    data.xfrc_applied[:] = 0.0
    sim.step(data, 2000)
    model.opt.gravity[:] = [3.0, 0.0, 0.0]
    sim.step(data)
    assert data.qvel[0] > 0.0


def test_the_same_steps_are_taken_whether_rest_is_noticed_or_not():
    model = pile(2)
    data = mujoco.MjData(model)
    stiction.Simulator(model).step(data, 1500)
    other = copy.copy(data)
    stiction.Simulator(model).step(data, 50)
    sim = stiction.Simulator(model)
    for _ in range(50):
        sim.forget()
        sim.step(other)
    assert np.array_equal(other.qpos, data.qpos) or np.abs(other.qpos - data.qpos).max() < 1e-12


def test_a_step_within_its_budget_is_flagged_where_that_ran_out():
    model = pile(12)
    data = mujoco.MjData(model)
    sim = stiction.Simulator(model, budget=1e-9, on_failure="best", tolerance=1e-7)
    sim._engine.config = sim._engine.config._replace(budget=np.int64(1))
    rungs = [sim.step(data).rung for _ in range(200)]
    assert set(rungs) <= {"proximal", "interior point", "budget", "best attempt"}
    assert np.isfinite(data.qpos).all()
    with pytest.raises(stiction.InvalidInput, match="budget"):
        stiction.Simulator(model, budget=-1.0)


def test_what_comes_after_a_solve_is_kept_free_of_the_next_ones():
    step = Workspace(pile(1)).step
    budget, counts = 900, step.counts
    counts[Count.DEADLINE], counts[Count.SOLVED_AT] = 1000, 400
    keep_free(step, 700, budget)
    assert solve_until(step, budget) == 1000 - 300
    keep_free(step, 450, budget)  # a step that needed less: it falls slowly
    assert solve_until(step, budget) == 1000 - 225
    keep_free(step, 9000, budget)  # however long one took, solves have a third
    assert solve_until(step, budget) == 1000 - 600
    counts[Count.DEADLINE] = ENDLESS
    assert solve_until(step, budget) == ENDLESS


def test_a_pile_that_has_no_time_neither_sinks_nor_flies():
    """Best attempts without any time: sweeps alone. What a path had come to, cut short, would throw
    bodies out of the bin; no impulses at all would let them fall through its floor."""
    model = pile(12)
    data = mujoco.MjData(model)
    sim = stiction.Simulator(model, budget=1e-9, on_failure="best")
    sim._engine.config = sim._engine.config._replace(budget=np.int64(1))
    fastest = 0.0
    for _ in range(500):
        sim.step(data)
        fastest = max(fastest, np.abs(data.qvel.reshape(-1, 6)[:, :3]).max())
    assert sim.statistics.rungs["best attempt"] > 100
    assert fastest < np.sqrt(2.0 * 9.81 * 0.6)  # that of a fall from the top
    assert np.abs(data.qvel.reshape(-1, 6)[:, :3]).max() < 0.3
    mujoco.mj_forward(model, data)
    assert data.contact.dist.min() > -2e-3


def test_a_budget_that_suffices_changes_nothing():
    model = pile(6)
    free, bound = mujoco.MjData(model), mujoco.MjData(model)
    stiction.Simulator(model).step(free, 200)
    stiction.Simulator(model, budget=60.0).step(bound, 200)
    assert np.array_equal(free.qpos, bound.qpos)


def test_overlap_of_a_large_island_is_taken_back_within_a_step():
    boxes = "".join(
        f'<body pos="{0.1999 * i} {0.1999 * j} {0.0999 + 0.1998 * k}"><freejoint/>'
        '<geom type="box" size=".1 .1 .1" mass="1"/></body>'
        for i in range(3)
        for j in range(3)
        for k in range(3)
    )
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep="0.002"/><default><geom friction="0.5 0 0"/></default>'
        f'<worldbody><geom type="plane" size="5 5 1"/>{boxes}</worldbody></mujoco>'
    )
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    assert sim.step(data).overlap > 9e-5
    for _ in range(3):
        report = sim.step(data)
    assert report.overlap < 1e-6
    assert np.abs(data.qvel).max() < 1e-2


def test_a_pile_seldom_makes_its_workspace_grow():
    model = pile(40)
    engine = TimeEngine(model, check_settings(on_failure="best"))
    data, grown = mujoco.MjData(model), 0
    for _ in range(250):
        before = engine.work
        engine.step(data, 1)
        grown += engine.work is not before
    assert engine.work.step.counts[Count.BLOCKS] > 100
    assert grown <= 2  # it doubles; how many contacts there are at most lies near the second time


def test_a_chain_has_room_for_the_contacts_of_all_of_its_links():
    links = 20
    begin = '<body pos="0 0 .1"><joint type="ball"/><geom size=".04"/>'
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{begin * links}{'</body>' * links}</worldbody></mujoco>"
    )
    room = first_room(model)
    assert room.blocks == 16 * links
    assert room.entries == room.blocks * 3 * model.nv
    assert room.fill == Room().fill


def test_corners_whose_gaps_differ_by_rounding_land_together():
    """A box that falls flat, tilted by a millionth: without merged gaps one corner would meet the
    ground a step before the others, and the box would rock."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 1"/>'
        '<body pos="0 0 .06"><freejoint/><geom type="box" size=".05 .05 .05"/></body>'
        "</worldbody></mujoco>"
    )
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    data.qpos[3:] = [1.0, 1e-6, 1e-6, 0.0]
    sim.step(data, 100)
    assert np.abs(data.qvel).max() == 0.0


def test_soft_equalities_between_bodies_move_as_in_mujoco():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep="0.002" integrator="implicitfast"/><worldbody>'
        '<body name="a" pos="0 0 1"><freejoint/><geom size=".05" mass="1"/></body>'
        '<body name="b" pos=".2 0 1"><freejoint/><geom size=".05" mass="2"/></body>'
        '<body name="c" pos=".4 0 1"><joint type="slide" axis="0 0 1"/>'
        '<geom size=".05" mass="1"/></body></worldbody><equality><weld body1="a" body2="b"/>'
        '<connect body1="b" body2="c" anchor=".1 0 0"/></equality></mujoco>'
    )
    data = mujoco.MjData(model)
    other = copy.copy(data)
    stiction.Simulator(model).step(data, 200)
    mujoco.mj_step(model, other, 200)
    assert data.qpos == pytest.approx(other.qpos, abs=1e-6)
    assert data.efc_force[:9] == pytest.approx(other.efc_force[:9], abs=1e-3)


def test_a_body_with_many_contacts_and_few_degrees_of_freedom_is_left_to_pivoting():
    """Where the interior point has come nowhere: links that touch in hundreds of points."""
    feet = "".join(
        f'<geom type="sphere" size="0.01" pos="{0.05 * (k % 8)} {0.05 * (k // 8)} 0"/>'
        for k in range(64)
    )
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="plane" size="5 5 1"/>'
        f'<body pos="0 0 0.01"><freejoint/>{feet}</body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    data.qvel[:2] = 0.3, 0.1
    engine = TimeEngine(model, stiction.Simulator(model)._engine.settings)
    engine.config = engine.config._replace(law=np.int64(-1))
    while (stop := engine._run(engine.session_address, data._address, 1, 0)) == Stop.ROOM:
        engine.resolve(Stop.ROOM, data)
    assert stop == Stop.UNSOLVED
    request = engine.work.solver.request
    request.setting[Setting.LAW] = Law.COULOMB
    request.outcome[:, Outcome.RESIDUAL] = request.outcome[:, Outcome.LOAD] = 1.0
    engine.work.newton.f[:] = 0.0
    worst, rungs = climb_islands(engine.work, stiction.Coulomb(), model.opt.timestep, 1e-6)
    assert worst <= 1e-8
    assert rungs == ("reduced",)


@pytest.mark.parametrize("every", [True, False])
def test_where_one_island_has_no_answer_others_are_tried_only_for_the_best(every, monkeypatch):
    plates = "".join(
        f'<body pos="{k} 0 0.01"><freejoint/>'
        + "".join(f'<geom type="sphere" size="0.01" pos="{0.05 * i} 0 0"/>' for i in range(101))
        + "".join(f'<geom type="sphere" size="0.01" pos="0 {0.05 * i} 0"/>' for i in range(1, 9))
        + "</body>"
        for k in (0, 20)
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><geom type="plane" size="90 90 1"/>{plates}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    engine = TimeEngine(model, check_settings())
    engine.config = engine.config._replace(law=np.int64(-1))
    while (stop := engine._run(engine.session_address, data._address, 1, 0)) == Stop.ROOM:
        engine.resolve(Stop.ROOM, data)
    assert stop == Stop.UNSOLVED
    request = engine.work.solver.request
    request.setting[Setting.LAW] = Law.COULOMB
    request.outcome[:, Outcome.RESIDUAL] = request.outcome[:, Outcome.LOAD] = 1.0
    engine.work.newton.f[:] = 0.0
    tried = []
    monkeypatch.setattr(climb, "NARROW", 0)
    monkeypatch.setattr(climb, "persist", lambda _, k, *__: tried.append(k))
    climb_islands(engine.work, stiction.Coulomb(), model.opt.timestep, 1e-6, every)
    assert len(tried) == (2 if every else 1)


@pytest.mark.parametrize("seed", [1, 4])
def test_chain_that_lands_is_seldom_left_to_the_interior_point(seed):
    link = '<geom type="capsule" size=".02 .028" euler="0 90 0" mass=".1"/>'
    joint = '<joint type="ball" pos="-.05 0 0" damping="1e-3"/>'
    body = f'<body pos="0 0 2.3" euler="0 80 0"><freejoint/>{link}'
    body += f'<body pos=".1 0 0">{joint}{link}' * 19 + "</body>" * 20
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep="0.002"/><worldbody>'
        f'<geom type="plane" size="0 0 .1" friction="0.6"/>{body}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    data.qvel[3:] = np.random.default_rng(seed).normal(size=model.nv - 3) * 0.1
    engine, attempts = TimeEngine(model, check_settings()), []
    for _ in range(600):
        engine.step(data, 1)
        attempts.append(int(engine.work.step.counts[Count.ATTEMPTS]))
    assert sum(count > 0 for count in attempts) <= 36
    assert sum(count > 1 for count in attempts) <= 12
