"""Signals, threads and forks."""

import os
import signal
import threading
import time

import mujoco
import numpy as np
import pytest
from mjcf import BOX, load
from mjdata import state

import stiction

FOREVER = 10**8
"""Steps: at rest these take twenty seconds."""


@pytest.fixture
def hears_ctrl_c():
    """A process that was started in the background ignores Ctrl-C from the beginning."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt(simulator, data):
    """Steps without an end, ended by Ctrl-C half a second later, soon."""
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        simulator.step(data, FOREVER)
    assert time.perf_counter() - begun < 1.5


@pytest.mark.parametrize("stepper", [stiction.TimeStepping(), stiction.EventDriven()])
@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_ends_many_steps_soon_and_between_two_of_them(stepper):
    model, data = load(BOX)
    simulator = stiction.Simulator(model, stepper=stepper)
    simulator.step(data, 10)
    interrupt(simulator, data)
    steps = data.time / model.opt.timestep
    assert steps == pytest.approx(round(steps), abs=1e-6 * steps)
    twin = mujoco.MjData(model)
    stiction.Simulator(model, stepper=stepper).step(twin, round(steps))
    assert np.allclose(twin.qpos, data.qpos, rtol=0.0, atol=1e-9)
    simulator.step(data, 10)


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_ends_many_steps_of_what_moves_with_the_bits_of_as_many_steps():
    model, data = load(BOX)
    data.xfrc_applied[1, 0] = 100.0  # it slides for ever
    simulator = stiction.Simulator(model)
    simulator.step(data, 10)
    interrupt(simulator, data)
    twin = mujoco.MjData(model)
    twin.xfrc_applied[1, 0] = 100.0
    stiction.Simulator(model).step(twin, round(data.time / model.opt.timestep))
    assert twin.qpos[0] > 1.0
    assert state(twin) == state(data)
    simulator.step(data, 10)
    assert np.isfinite(data.qpos).all()


def test_steps_in_chunks_are_the_same_steps():
    model, one = load(BOX)
    many = mujoco.MjData(model)
    one.qvel[:] = many.qvel[:] = [0.3, 0.2, 1.0, 0.5, -0.4, 2.0]
    first, second = stiction.Simulator(model), stiction.Simulator(model)
    for _ in range(700):
        first.step(one)
    second.step(many, 700)
    assert state(one) == state(many)
    assert first.statistics.steps == second.statistics.steps == 700


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, if it was imported
def test_a_process_forked_while_a_step_runs_can_step():
    model, data = load(BOX)
    simulator, own = stiction.Simulator(model), mujoco.MjData(model)
    data.xfrc_applied[1, 0] = 100.0  # it slides for ever: at rest steps take no time
    simulator.step(data, 5)
    thread = threading.Thread(target=lambda: simulator.step(data, 400_000), daemon=True)
    thread.start()
    time.sleep(0.2)
    assert thread.is_alive()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        status = 1
        try:
            simulator.step(own, 5)
            stiction.step(model, own)
            status = 0 if own.time > 0.0 else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    thread.join()
    assert status == 0
