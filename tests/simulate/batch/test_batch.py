"""`Batch`: the bits of one `Simulator` each, and simulations that fail alone."""

import copy
import os
import pickle
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import mujoco
import numpy as np
import pytest
from mjcf import BOX, jumble, load

import stiction
from stiction import Baraff, Batch, Coulomb, InvalidInput, NoSlip, SimulationError, Simulator

NSIM = 5
DERIVED = ("xpos", "qacc", "qfrc_constraint", "qfrc_smooth", "ncon")


def spread(model, data):
    """States that differ."""
    states = np.tile(np.concatenate([data.qpos, data.qvel]), (NSIM, 1))
    rng = np.random.default_rng(3)
    states[:, model.nq :] += 0.2 * rng.standard_normal((NSIM, model.nv))
    return states[:, : model.nq], states[:, model.nq :]


def alone(model, qpos, qvel, contact=None, **options):
    """A simulator and a data of its own for each."""
    pairs = []
    for q, v in zip(qpos, qvel, strict=True):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = q, v
        pairs.append((Simulator(model, contact, **options), data))
    return pairs


def assert_same(batch, pairs):
    for sim, (_, data) in enumerate(pairs):
        assert np.array_equal(batch.qpos[sim], data.qpos)
        assert np.array_equal(batch.qvel[sim], data.qvel)
        assert batch.time[sim] == data.time
        for name in DERIVED:
            assert np.array_equal(batch.bind(name)[sim], getattr(data, name)), name


@pytest.mark.parametrize("nthread", [1, 2, 3])
@pytest.mark.parametrize(
    "contact", [Coulomb(), Coulomb(facets=4), NoSlip(), Baraff()], ids=lambda c: repr(c)[:10]
)
def test_a_batch_has_the_bits_of_one_simulator_each(contact, nthread):
    model, start = jumble()
    qpos, qvel = spread(model, start)
    pairs = alone(model, qpos, qvel, contact)
    batch = Batch(model, NSIM, nthread, contact)
    batch.qpos[:], batch.qvel[:] = qpos, qvel
    for name in DERIVED:
        batch.bind(name)
    steps = 0
    for nstep in (1, 7, 40, 3):
        batch.step(nstep=nstep)
        steps += nstep
        for sim, data in pairs:
            report = sim.step(data, nstep)
    assert_same(batch, pairs)
    worst = [sim.statistics.worst for sim, _ in pairs]
    assert batch.certificate.max() <= max(worst)
    assert batch.certificate.shape == batch.rung.shape == (NSIM,)
    assert report.time == pytest.approx(steps * model.opt.timestep)


def test_simulations_that_are_stepped_now_and_then_keep_their_own_impulses():
    model, start = jumble()
    qpos, qvel = spread(model, start)
    pairs = alone(model, qpos, qvel)
    batch = Batch(model, NSIM, 2)
    batch.qpos[:], batch.qvel[:] = qpos, qvel
    for name in DERIVED:
        batch.bind(name)
    rng = np.random.default_rng(0)
    for _ in range(40):
        chosen = rng.random(NSIM) < 0.5
        batch.step(chosen, nstep=2)
        for k in np.flatnonzero(chosen):
            pairs[k][0].step(pairs[k][1], 2)
    assert_same(batch, pairs)
    assert (batch.rung == "proximal").any()


def test_what_rests_has_the_same_bits_and_outputs_though_threads_serve_many():
    model, start = load(BOX)
    qpos, qvel = np.tile(start.qpos, (NSIM, 1)), np.zeros((NSIM, 6))
    qvel[:, 0] = np.linspace(0.0, 0.5, NSIM)
    pairs = alone(model, qpos, qvel)
    batch = Batch(model, NSIM, 2)
    batch.qpos[:], batch.qvel[:] = qpos, qvel
    for name in DERIVED:
        batch.bind(name)
    for _ in range(30):
        batch.step(nstep=10)
        for sim, data in pairs:
            sim.step(data, 10)
        assert_same(batch, pairs)


def test_each_simulation_may_have_its_own_friction_mass_and_gravity():
    model, start = load(BOX)
    batch = Batch(model, NSIM, 2)
    mu = np.linspace(0.1, 0.5, NSIM)
    batch.expand("geom_friction")[:, :, 0] = mu[:, None]
    batch.expand("body_mass")[:, 1] = np.arange(1, NSIM + 1)
    batch.expand("opt.gravity")[:, 2] = -np.linspace(1.0, 9.0, NSIM)
    batch.expand("opt.timestep")[:] = 0.001
    batch.expand("dof_damping")[1] = 0.3
    batch.set_const()
    batch.qvel[:, 0] = 1.0
    batch.step(nstep=20)
    expected = 1.0 - 0.02 * mu * np.linspace(1.0, 9.0, NSIM)
    assert np.delete(batch.qvel[:, 0], 1) == pytest.approx(np.delete(expected, 1), rel=1e-9)
    for sim in range(NSIM):
        own = batch.get_model(sim)
        data = mujoco.MjData(own)
        data.qpos[:], data.qvel[0] = start.qpos, 1.0
        Simulator(own).step(data, 20)
        assert np.array_equal(batch.qpos[sim], data.qpos)
        assert np.array_equal(batch.qvel[sim], data.qvel)
    # Changed once more, without being asked.
    batch.expand("geom_friction")[:, :, 0] = 0.0
    before = batch.qvel[0, 0]
    batch.step(nstep=5)
    assert batch.qvel[0, 0] == pytest.approx(before, rel=1e-12)


def test_a_field_that_cannot_be_fails_its_simulation_alone():
    model, _ = load(BOX)
    batch = Batch(model, NSIM, 2)
    batch.expand("geom_friction")[2, 0, 0] = -1.0
    with pytest.raises(SimulationError, match=r"1 of 5 simulations \(2\); simulation 2: friction"):
        batch.step()
    assert batch.time.tolist() == [0.002, 0.002, 0.0, 0.002, 0.002]
    batch.expand("geom_friction")[2, 0, 0] = 1.0
    batch.step()
    assert batch.error(2) == ""
    assert batch.time[2] == 0.002


def test_simulations_that_fail_keep_their_state_and_are_listed():
    model, _ = load(BOX)
    batch = Batch(model, NSIM, 2)
    batch.qvel[1, 0] = np.nan
    batch.qvel[3, 0] = np.inf
    with pytest.raises(SimulationError) as caught:
        batch.step(nstep=4)
    assert caught.value.ids.tolist() == [1, 3]
    assert isinstance(caught.value, mujoco.batch.SimulationError)
    assert isinstance(caught.value, stiction.StictionError)
    assert batch.status.tolist() == [0, 1, 0, 1, 0]
    assert "joint 'free'" in batch.error(1)
    assert batch.error(0) == ""
    assert np.isnan(batch.certificate[[1, 3]]).all()
    assert (batch.rung[[1, 3]] == "failed").all()
    assert batch.time.tolist() == [0.008, 0.0, 0.008, 0.0, 0.008]
    batch.reset([1, 3])
    batch.step([1, 3])
    assert not batch.status.any()
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.ids.tolist() == [1, 3]


def test_a_contact_model_that_is_not_compiled_is_called_from_python():
    class Uncompiled(Coulomb):
        @property
        def compiled(self):
            return None

    model, _ = load(BOX)
    batch = Batch(model, 3, 2, Uncompiled())
    batch.qvel[:, 0] = 1.0
    batch.step(nstep=3)
    assert batch.qvel[:, 0] == pytest.approx(1.0 - 0.006 * 9.81, rel=1e-6)
    assert len(set(batch.rung)) == 1
    assert batch.rung[0] not in ("proximal", "failed", "")


def test_reset_drops_the_impulses():
    model, _ = jumble()
    batch = Batch(model, 3, 1)
    batch.step(nstep=60)
    batch.reset([1])
    batch.step([1], nstep=60)
    data = mujoco.MjData(model)
    Simulator(model).step(data, 60)
    assert np.array_equal(batch.qpos[1], data.qpos)


def test_derived_fields_are_up_to_date_where_that_is_asked_for():
    model, _ = load(BOX)
    batch = Batch(model, NSIM, 2)
    xpos, forces = batch.bind("xpos"), batch.bind("qfrc_constraint")
    batch.qvel[:, 0] = 1.0
    batch.step(nstep=3)
    assert not np.array_equal(xpos[:, 1], batch.qpos[:, :3])
    own = forces.copy()
    batch.step(nstep=1, stage=mujoco.mjtStage.mjSTAGE_VEL)
    assert np.array_equal(xpos[:, 1], batch.qpos[:, :3])
    assert forces == pytest.approx(own, rel=1e-9)
    batch.step(nstep=1, stage=mujoco.mjtStage.mjSTAGE_ACC)
    assert np.array_equal(xpos[:, 1], batch.qpos[:, :3])


def test_models_of_the_callers_are_stepped_each_with_its_own():
    model, _ = load(BOX)
    models = []
    for k in range(NSIM):
        variant = copy.copy(model)
        variant.geom_friction[:, 0] = 0.1 * k
        models.append(variant)
    batch = Batch(model, NSIM, 2)
    batch.set_models(models)
    batch.qvel[:, 0] = 1.0
    batch.step(nstep=10)
    assert batch.qvel[:, 0] == pytest.approx(1.0 - 0.02 * 9.81 * 0.1 * np.arange(NSIM), rel=1e-9)
    batch.set_models(None)
    batch.qvel[:, 0] = 1.0
    batch.step(nstep=10)
    assert np.ptp(batch.qvel[:, 0]) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"nsim": 0}, "nsim"),
        ({"nsim": 2.0}, "nsim"),
        ({"nsim": 2, "nthread": -1}, "nthread"),
        ({"nsim": 2, "contact": "coulomb"}, "contact"),
        ({"nsim": 2, "stepper": stiction.EventDriven()}, "stepper"),
        ({"nsim": 2, "tolerance": 2.0}, "tolerance"),
        ({"nsim": 2, "tolerence": 1e-8}, "did you mean tolerance"),
    ],
)
def test_what_cannot_be_a_batch_is_refused_by_name(options, told):
    model, _ = load(BOX)
    with pytest.raises(InvalidInput, match=told):
        Batch(model, **options)


@pytest.mark.parametrize("nstep", [0, -1, 1.5, True, None])
def test_a_number_of_steps_that_is_none_is_refused(nstep):
    model, _ = load(BOX)
    with pytest.raises(InvalidInput, match="nstep"):
        Batch(model, 2).step(nstep=nstep)


def test_many_contacts_find_room():
    boxes = "".join(
        f'<body pos="{0.5 * i} 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        for i in range(12)
    )
    model, _ = load(
        f'<mujoco><worldbody><geom type="plane" size="20 9 1"/>{boxes}</worldbody></mujoco>'
    )
    batch = Batch(model, 4, 2)
    data = mujoco.MjData(model)
    sim = Simulator(model)
    for _ in range(3):
        batch.step(nstep=5)
        sim.step(data, 5)
    assert all(np.array_equal(qpos, data.qpos) for qpos in batch.qpos)


def test_ctrl_c_ends_a_call_soon_and_simulations_that_were_not_through_keep_their_state():
    model, _ = load(BOX)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    batch = Batch(model, 4, 2)
    batch.xfrc_applied[:, 1, 0] = 100.0  # they slide for ever
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    begun = time.perf_counter()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            batch.step(nstep=10**8)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - begun < 3.0
    assert not batch.time.any()
    batch.step()
    assert (batch.time == 0.002).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, if it was imported
def test_a_forked_process_can_step_a_batch():
    model, _ = load(BOX)
    batch = Batch(model, 4, 2)
    batch.step()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        status = 1
        try:
            batch.step()
            status = 0 if (batch.time > 0.003).all() else 2
            with pytest.raises(stiction.StictionError, match="make another Batch here"):
                batch.reset()  # by MuJoCo's threads, which this process does not have
            del batch  # nor waits for
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0


def test_calls_from_many_threads_take_turns():
    model, _ = load(BOX)
    batch, alone = Batch(model, 4, 2), Batch(model, 4, 2)

    def work(k):
        for _ in range(5):
            if k % 3 == 2:
                batch.derivatives()
            elif k % 3 == 1:
                batch.rollout(2)
            else:
                batch.step()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(12)))
    alone.step(nstep=4 * 5 * (2 + 1))
    np.testing.assert_array_equal(batch.bind("qpos"), alone.bind("qpos"))
    assert batch.bind("time")[0] == pytest.approx(60 * model.opt.timestep)
