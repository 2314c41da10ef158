"""Stages look for the contacts that are held alone, and all others are looked for again after."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import stiction
from stiction.simulate.event_driven.engine import EventEngine

XML = """<mujoco><worldbody><geom type="plane" size="5 5 .1"/>
  <body pos="0 0 .05"><freejoint/><geom type="box" size=".1 .1 .05"/></body>
  <body pos=".3 0 .06"><freejoint/><geom size=".05"/></body>
</worldbody></mujoco>"""
"""A box that stands, and a ball that falls beside it."""


@pytest.mark.parametrize("call", [1, 2, 3, 4, 5])
def test_an_exception_within_a_stage_loses_no_contact(call: int) -> None:
    model = mujoco.MjModel.from_xml_string(XML)
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    engine = EventEngine(model, stiction.Coulomb(), stiction.EventDriven())
    engine.step(data)
    calls = 0

    def interrupt(_model: mujoco.MjModel, _data: mujoco.MjData) -> None:
        nonlocal calls
        calls += 1
        if calls == call:
            raise RuntimeError("within a stage")

    mujoco.set_mjcb_passive(interrupt)
    try:
        with pytest.raises(RuntimeError, match="within a stage"):
            engine.step(data)
    finally:
        mujoco.set_mjcb_passive(None)
    np.testing.assert_array_equal(engine._own.model.geom_contype, model.geom_contype)
    np.testing.assert_array_equal(engine._own.model.body_contype, model.body_contype)
    for _ in range(200):
        engine.step(data)
    stiction.Simulator(model, stepper=stiction.EventDriven()).step(other, 201)
    assert data.qpos[9] == pytest.approx(0.05, abs=1e-6)
    np.testing.assert_allclose(data.qpos, other.qpos, atol=1e-12)
