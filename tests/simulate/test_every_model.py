"""`every_model.py`: what came of the files of a folder is told as it is."""

import os
import signal

import mujoco
import pytest
from every_model import Limits, in_own_process, summary

import stiction

BALL = """
<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 .1"><freejoint/><geom type="sphere" size=".1"/></body>
</worldbody></mujoco>"""
FLEX = """
<mujoco><worldbody><body name="sheet">
  <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" mass="1"/>
</body></worldbody></mujoco>"""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a process of its own by fork")


def outcome(tmp_path, text, **limits):
    path = tmp_path / "model.xml"
    path.write_text(text)
    return in_own_process(path, Limits(**limits))


def test_a_model_that_runs_is_timed_beside_mj_step(tmp_path):
    found = outcome(tmp_path, BALL, steps=20)
    assert found.word == "OK"
    assert "steps 20 " in found.text
    assert found.ratio > 0.0
    told = summary({"ball": found, "slow": found._replace(ratio=12.0)})
    assert told[0] == "2 OK"
    assert "above 10: 1" in told[1]


def test_what_does_not_run_is_told_by_its_kind(tmp_path, monkeypatch):
    assert outcome(tmp_path, "<mujoco><nonsense/></mujoco>").word == "NOLOAD"
    assert outcome(tmp_path, FLEX).word == "REFUSED"

    def ends(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def hangs(*_):
        while True:
            mujoco.mju_str2Type("body")

    def raises(*_):
        raise ZeroDivisionError

    def fails(*_):
        raise stiction.StictionError("unsolved")

    for step, word in ((ends, "CRASH"), (hangs, "TIMEOUT"), (raises, "RAWERR"), (fails, "FAILED")):
        monkeypatch.setattr(stiction.Simulator, "step", step)
        assert outcome(tmp_path, BALL, limit=2).word == word
