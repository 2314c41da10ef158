"""Whatever is done between two steps, a step is answered by the compiled solvers; where there is
one answer, it is that of a new simulator."""

import copy

import mujoco
import numpy as np
import pytest

import stiction

SCENES = {"incline": True, "pinch": True, "grasp": False, "humanoid": False}
"""Whether the velocity is unique: of faces that slide and turn it is not, as friction follows from
how their corners share the load."""


def reset(sim, data, kept, rng):
    mujoco.mj_resetData(sim.model, data)


def forward(sim, data, kept, rng):
    mujoco.mj_forward(sim.model, data)


def step_by_mujoco(sim, data, kept, rng):
    mujoco.mj_step(sim.model, data)


def keep(sim, data, kept, rng):
    kept.append(sim.get_state(data))


def put_back(sim, data, kept, rng):
    if kept:
        sim.set_state(data, kept[rng.integers(len(kept))])


def change_friction(sim, data, kept, rng):
    sim.model.geom_friction[:, 0] *= rng.uniform(0.95, 1.05)


def kick(sim, data, kept, rng):
    data.qvel += 0.02 * rng.normal(size=data.qvel.shape)


def stop(sim, data, kept, rng):
    data.qvel[:] = 0.0


def push(sim, data, kept, rng):
    mass = sim.model.body_mass[1:, None]
    data.xfrc_applied[1:] = 0.2 * mass * rng.normal(size=(len(mass), 6))


def go_on(sim, data, kept, rng):
    sim.step(data, int(rng.integers(1, 6)))


def begin_anew(sim, data, kept, rng):
    sim.reset(data)


DEEDS = (
    reset, forward, step_by_mujoco, keep, put_back, change_friction, kick, stop, push, go_on,
    begin_anew,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("scene", SCENES)
def test_no_step_is_misled_by_what_is_remembered(scene, seed):
    rng, kept = np.random.default_rng(seed), []
    model, data, _ = stiction.scenes.load(scene)
    sim = stiction.Simulator(model)
    for _ in range(40):
        deed = DEEDS[rng.integers(len(DEEDS))]
        deed(sim, data, kept, rng)
        other = copy.copy(data)
        report = sim.step(data)
        stiction.Simulator(model).step(other)
        assert report.rung in ("", "proximal", "interior point"), deed.__name__
        assert report.certificate.worst < 1e-7
        if SCENES[scene]:
            assert np.abs(data.qvel - other.qvel).max() < 1e-6 * (1.0 + np.abs(other.qvel).max())
