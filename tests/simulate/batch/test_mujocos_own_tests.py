"""MuJoCo's own tests of `mujoco.batch` (batch_test.py in its wheel, Apache-2.0, DeepMind), run on
ours.

What they compare a batch with is a loop of `mj_step` over one MjData per simulation. Here a
`Simulator` for each takes these steps, so that the tests ask for its bits.
"""

import types
import unittest

import pytest
from our_steps import Steps

import stiction

theirs = pytest.importorskip("mujoco.batch_test")

OTHER = {
    "test_sleep_needs_persistent": "our steps know no sleep",
    "test_callbacks_checked_on_construction": "about bodies that start asleep",
    "test_errors_name_every_simulation": "in our own words, below",
    "test_rollout_matches_mujoco_rollout": "against our own rollout, in test_rollout.py",
    "test_warning_counters_and_rollout_stop": "what is no number is an error, in test_batch.py",
}
"""Tests that do not apply, and why."""


def names():
    found = unittest.defaultTestLoader.getTestCaseNames(theirs.BatchTest)
    return [name for name in found if not name.startswith(tuple(OTHER))]


def make_batch(model, nsim, nthread=0, persistent=False):
    if persistent:
        pytest.skip("one MjData per simulation: ours has one per thread")
    return stiction.Batch(model, nsim, nthread)


@pytest.mark.parametrize("name", names())
def test_mujocos_own_test_passes(name, monkeypatch):
    batch = types.SimpleNamespace(**vars(theirs.batch))
    batch.Batch = make_batch
    monkeypatch.setattr(theirs, "batch", batch)
    monkeypatch.setattr(theirs, "mujoco", Steps())
    case = theirs.BatchTest(name)
    case.setUp()
    getattr(case, name)()
