"""Arguments of wrong types, one at a time, in every public function: refused in our own words."""

import inspect
from pathlib import Path

import mujoco
import numpy as np
import pytest

import stiction
from stiction import articulated, lcp, record, scenes
from stiction.contact import fclib

BOX = """
<mujoco><worldbody><geom type="plane" size="5 5 .1"/>
  <body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
</worldbody></mujoco>"""


class Unwilling:
    """Raises when it is asked for an array or its length."""

    def __array__(self, *_, **__):
        raise RuntimeError("no array")

    def __len__(self):
        raise RuntimeError("no length")


WRONG = {
    "none": None,
    "text": "x",
    "bytes": b"x",
    "ragged": [[1.0], [1.0, 2.0]],
    "masked": np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]),
    "words": np.array(["a", "b"]),
    "objects": np.array([object()]),
    "large": 10**30,
    "larger than a word": 2**63,
    "negative": -(10**30),
    "nan": np.nan,
    "inf": np.inf,
    "complex": 1j,
    "flag": True,
    "dictionary": {},
    "function": len,
    "fraction": 0.5,
    "empty": [],
    "four dimensions": np.zeros((1, 1, 1, 1)),
    "records": np.zeros(2, [("a", float)]),
    "class": int,
    "path": Path("/nonexistent/file"),
    "nul": "a\0b",
    "unwilling": Unwilling(),
}


CALLED = ("load", "controller", "on_progress", "on_sample")
"""Arguments that are functions."""


def defaults(function):
    return {name: each.default for name, each in inspect.signature(function).parameters.items()}


def calls(folder):
    """(function, arguments that it takes) by name."""
    model = mujoco.MjModel.from_xml_string(BOX)
    data = mujoco.MjData(model)
    sim = stiction.Simulator(model)
    batch = stiction.Batch(model, nsim=1, nthread=1)
    arrays = {
        "mass": np.eye(3), "velocity": np.zeros(3), "force": np.array([0, 0, -9.8]), "dt": 0.01,
        "normal": np.array([[0, 0, 1.0]]), "tangent": np.array([[[1.0, 0, 0], [0, 1, 0]]]),
        "friction": np.array([0.5]), "viscosity": np.zeros(1), "bound": np.zeros(1),
    }  # fmt: skip
    problem = stiction.ContactProblem(**arrays)
    answer = stiction.Coulomb().solve(problem)
    saved, exchanged = problem.save(folder / "p.npz"), folder / "p.hdf5"
    fclib.write(exchanged, problem, answer)

    def scene():
        return scenes.load("pinch")

    run_model, run_data, _ = scene()
    run = {
        "simulator": stiction.Simulator(run_model), "data": run_data, "seconds": 0.01, "watch": (),
        "samples": 5, "controller": None, "on_progress": None, "on_sample": None,
    }  # fmt: skip
    return {
        "lcp.solve": (lcp.solve, {"M": np.eye(2), "q": -np.ones(2), "method": "auto"}),
        "ContactProblem": (stiction.ContactProblem, arrays),
        "from_delassus": (
            stiction.ContactProblem.from_delassus,
            {"delassus": np.eye(3), "free_velocity": np.zeros(3), "friction": [0.5],
             "dimension": 3},
        ),
        "restricted": (problem.restricted, {"island": problem.islands()[0]}),
        "velocity_from": (problem.velocity_from, {"normal": answer.normal}),
        "solve": (stiction.Coulomb().solve, {"problem": problem, "start": answer}),
        "certify": (
            stiction.certify,
            {"problem": problem, "velocity": answer.velocity, "normal": answer.normal,
             "law": "coulomb", "facets": None},
        ),
        "ContactProblem.load": (stiction.ContactProblem.load, {"path": saved}),
        "fclib.read": (fclib.read, {"path": exchanged}),
        "fclib.write": (
            fclib.write,
            {"path": exchanged, "problem": problem, "solution": answer},
        ),
        "Trajectory.load": (record.Trajectory.load, {"path": saved}),
        "Coulomb": (stiction.Coulomb, defaults(stiction.Coulomb)),
        "Viscous": (stiction.Viscous, defaults(stiction.Viscous)),
        "DrumwrightShell": (stiction.DrumwrightShell, defaults(stiction.DrumwrightShell)),
        "EventDriven": (stiction.EventDriven, defaults(stiction.EventDriven)),
        "TimeStepping": (stiction.TimeStepping, defaults(stiction.TimeStepping)),
        "Simulator": (
            stiction.Simulator,
            {**defaults(stiction.Simulator), "model": model},
        ),
        "register": (stiction.register, {"model": stiction.Coulomb}),
        "parse_contact": (record.parse_contact, {"text": "coulomb", "solver": ""}),
        "contact_name": (record.contact_name, {"model": stiction.Coulomb()}),
        "step": (sim.step, {"data": data, "nstep": 1}),
        "derivatives": (sim.derivatives, {"data": data, "smoothing": 0.0}),
        "reset": (sim.reset, {"data": data, "keyframe": None}),
        "set_state": (sim.set_state, {"data": data, "state": sim.get_state(data)}),
        "Batch": (stiction.Batch, {"model": model, "nsim": 1, "nthread": 1}),
        "Batch.step": (batch.step, {"nstep": 1}),
        "inverse_inertia": (
            articulated.inverse_inertia, {"model": model, "data": data, "bodies": ["box"]},
        ),
        "scenes.load": (scenes.load, {"scene": "pinch", "friction": 0.5}),
        "scenes.get": (scenes.get, {"name": "pinch"}),
        "record": (record.record, run),
        "diagnose": (record.diagnose, {"load": scene, "seconds": 0.01, "watch": ()}),
        "compare": (
            record.compare, {"load": scene, "names": ["coulomb"], "seconds": 0.01, "watch": ()},
        ),
        "stiction.step": (stiction.step, {"model": model, "data": data, "nstep": 1}),
        "step1": (sim.step1, {"data": data}),
        "get_state": (sim.get_state, {"data": data}),
        "solution.derivatives": (answer.derivatives, {"smoothing": 0.0}),
        "solution.restricted": (answer.restricted, {"island": problem.islands()[0]}),
        "problem.save": (problem.save, {"path": folder / "q.npz"}),
        **trajectory_calls(folder, scene),
        **batch_calls(model, batch),
        "rollout": (
            stiction.rollout,
            {"model": model, "data": data, "nstep": 2,
             "initial_state": np.concatenate([[0.0], data.qpos, data.qvel]), "control": None,
             "control_spec": int(mujoco.mjtState.mjSTATE_CTRL), "state": None,
             "sensordata": None, "initial_warmstart": None, "chunk_size": None,
             "skip_checks": False, "persistent_pool": False, "contact": None},
        ),
        "sweep": (
            stiction.sweep,
            {"scene": "pinch", "options": {"friction": [0.5]}, "seeds": 1, "time": 0.002,
             "contact": "coulomb", "keyframe": None, "noise": 0.0, "drop": 0.01, "out": None,
             "retry": False, "workers": 0},
        ),
    }  # fmt: skip


def trajectory_calls(folder, scene):
    """Those of a trajectory that is there."""
    model, data, _ = scene()
    run = record.record(stiction.Simulator(model), data, 0.01, watch=(), samples=3)
    run.trajectory.bind(model)
    return {
        "Trajectory.save": (run.trajectory.save, {"path": folder / "t.npz"}),
        "Trajectory.bind": (run.trajectory.bind, {"model": model}),
        "Trajectory.put": (run.trajectory.put, {"data": data, "sample": 1}),
    }


def batch_calls(model, batch):
    """Those of a batch of one simulation."""
    size = 2 * model.nv + model.na
    return {
        "Batch.bind": (batch.bind, {"name": "qpos"}),
        "Batch.expand": (batch.expand, {"name": "geom_friction"}),
        "Batch.reset": (batch.reset, {"ids": [0], "keyframe": -1, "stage": 0}),
        "Batch.forward": (batch.forward, {"ids": [0], "stage": 0}),
        "Batch.step of some": (batch.step, {"ids": [0], "nstep": 1, "stage": 0}),
        "Batch.derivatives": (batch.derivatives, {"ids": [0]}),
        "Batch.jvp": (
            batch.jvp, {"state": np.zeros((1, size)), "control": None, "ids": [0]},
        ),
        "Batch.vjp": (batch.vjp, {"gradient": np.zeros((1, size)), "ids": [0]}),
    }  # fmt: skip


def test_arguments_of_wrong_types_are_taken_or_refused_in_our_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some words are names of files
    tried, raw = 0, []
    for name, (function, fitting) in calls(tmp_path).items():
        for argument in fitting:
            for kind, value in WRONG.items():
                if argument in ("seconds", "time") and kind.startswith("large"):
                    continue  # a run that long is what was asked for
                if callable(value) and argument in CALLED:
                    continue  # what it raises is the user's
                if argument == "workers" and value is None:
                    continue  # as many processes as there are processors
                tried += 1
                try:
                    function(**{**fitting, argument: value})
                except (stiction.StictionError, OSError):  # of files the system's own words
                    pass
                except Exception as error:
                    raw.append((name, argument, kind, type(error).__name__, str(error)[:90]))
    assert not raw, "\n".join(str(each) for each in raw)
    assert tried > 2500


@pytest.mark.parametrize("wrong", [4.5, "four", 2, np.nan, np.array([3, 4])])
def test_facets_are_a_whole_number(wrong):
    with pytest.raises(stiction.InvalidInput, match="facets"):
        stiction.Coulomb(facets=wrong)
