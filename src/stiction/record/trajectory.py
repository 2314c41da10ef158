"""`Trajectory`: the states of a run, in one .npz file from which the run can be shown again.

    trajectory = Trajectory.load("trajectory.npz")
    model, data = trajectory.model(), mujoco.MjData(trajectory.model())
    trajectory.put(data, 100)          # the hundredth sample: qpos, qvel, ctrl, time, ...
    mujoco.mj_forward(model, data)     # ... and all that follows from it

The model is kept as its MJCF text, or, where it came from a file with meshes and includes, as the
path of that file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.files import read_npz
from stiction.errors import InvalidInput, as_path
from stiction.simulate.options import is_whole

Array = NDArray[np.float64]

FORMAT = 1
"""Version of the files that `save` writes; `load` refuses others."""

_STATES = ("time", "qpos", "qvel", "ctrl", "act", "mocap_pos", "mocap_quat")
"""Entries of MjData that a sample holds."""

_AXES: dict[str, tuple[int, ...]] = {"time": (), "mocap_pos": (-1, 3), "mocap_quat": (-1, 4)}
"""Lengths of a sample's axes, -1 for any; (-1,) where nothing is said."""


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """States at n samples, in the order of time. All in SI units."""

    time: Array
    """(n,) [s]."""
    qpos: Array
    """(n, nq)."""
    qvel: Array
    """(n, nv)."""
    ctrl: Array
    """(n, nu)."""
    act: Array
    """(n, na)."""
    mocap_pos: Array
    """(n, nmocap, 3) [m]."""
    mocap_quat: Array
    """(n, nmocap, 4)."""
    timestep: float
    """Of the simulation [s]; samples may be further apart."""
    name: str = ""
    """Of the scene."""
    contact: str = ""
    """The contact model, in words."""
    watch: tuple[str, ...] = ()
    """Bodies whose slip matters."""
    xml: str = ""
    """The model as MJCF text; empty if `path` holds it."""
    path: str = ""
    """The model's file; empty if `xml` holds it."""
    _model: list[mujoco.MjModel] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        span = f"{self.time[0]:g} to {self.time[-1]:g} s" if len(self) else "empty"
        return f"Trajectory({self.name!r}, {self.contact!r}, {len(self)} samples, {span})"

    def model(self) -> mujoco.MjModel:
        """The model, compiled once. Raises InvalidInput where its file is gone or was changed."""
        if not self._model:
            self._model.append(self._compile())
        return self._model[0]

    def bind(self, model: mujoco.MjModel) -> None:
        """Takes this model from now on; InvalidInput where the states do not fit it."""
        self._check(model)
        self._model[:] = [model]

    def _compile(self) -> mujoco.MjModel:
        if not self.xml and not Path(self.path).is_file():
            raise InvalidInput("model", f"the trajectory's model is gone: {self.path!r}")
        try:
            if self.xml:
                model = mujoco.MjModel.from_xml_string(self.xml)
            else:
                model = mujoco.MjModel.from_xml_path(self.path)
        except ValueError as error:
            said = " ".join(str(error).split())
            raise InvalidInput("model", f"the trajectory's does not compile: {said}") from error
        self._check(model)
        model.opt.timestep = self.timestep
        return model

    def _check(self, model: mujoco.MjModel) -> None:
        if not isinstance(model, mujoco.MjModel):
            raise InvalidInput("model", f"is {model!r}: a mujoco.MjModel")
        states = (self.qpos, self.qvel, self.ctrl, self.act, self.mocap_pos)
        have = tuple(state.shape[1] for state in states)
        need = (model.nq, model.nv, model.nu, model.na, model.nmocap)
        if have != need:
            raise InvalidInput(
                "model",
                f"has (nq, nv, nu, na, nmocap) = {need}, the trajectory {have}: the model was "
                "changed",
            )

    def put(self, data: mujoco.MjData, sample: int) -> None:
        """Writes one sample into data; `mj_forward` derives the rest."""
        if not isinstance(data, mujoco.MjData):
            raise InvalidInput("data", f"is {data!r}: a mujoco.MjData")
        if not (is_whole(sample) and -len(self) <= sample < len(self)):
            raise InvalidInput("sample", f"is {sample!r}: one of {len(self)} samples")
        for name in _STATES[1:]:
            have, need = getattr(data, name).shape, getattr(self, name).shape[1:]
            if have != need:
                raise InvalidInput("data", f"has {name} of shape {have}, the trajectory of {need}")
        data.time = self.time[sample]
        for name in _STATES[1:]:
            getattr(data, name)[:] = getattr(self, name)[sample]

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the trajectory as .npz; returns the path."""
        path = as_path("path", path)
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                format=FORMAT,
                timestep=self.timestep,
                name=self.name,
                contact=self.contact,
                watch=np.array(self.watch, np.str_),
                xml=self.xml,
                path=self.path,
                **{name: getattr(self, name) for name in _STATES},
            )
        return path

    @classmethod
    def load(cls, path: str | PathLike[str], *, model: mujoco.MjModel | None = None) -> Trajectory:
        """The trajectory that `save` wrote; `model` takes the place of the one it names."""
        if not as_path("trajectory", path).is_file():
            raise InvalidInput("trajectory", f"no such file: {path}")
        content = read_npz(path, "trajectory")
        missing = [name for name in ("format", "timestep", *_STATES) if name not in content]
        if missing or content["format"].shape or content["format"] != FORMAT:
            what = f"without {', '.join(missing)}" if missing else f"of format {content['format']}"
            raise InvalidInput(str(path), f"is no trajectory of format {FORMAT}, but {what}")
        words: dict[str, Any] = {
            name: str(content.get(name, "")) for name in ("name", "contact", "xml", "path")
        }
        watch = tuple(str(name) for name in np.atleast_1d(content.get("watch", ())))
        states: dict[str, Any] = _checked(path, content)
        trajectory = cls(**states, timestep=float(content["timestep"]), watch=watch, **words)
        if model is not None:
            trajectory.bind(model)
        return trajectory


def _checked(path: str | PathLike[str], content: dict[str, NDArray[Any]]) -> dict[str, Array]:
    """The arrays of states, each with as many samples as there are times."""
    timestep = content["timestep"]
    if timestep.shape or timestep.dtype.kind not in "fiu" or not 0.0 < timestep < np.inf:
        raise InvalidInput(str(path), f"has a timestep of {timestep}: a positive time [s]")
    count = content["time"].shape
    if len(count) != 1 or not count[0]:
        raise InvalidInput("time", f"must have a sample or more, in {path}", count)
    for name in _STATES:
        array, axes = content[name], _AXES.get(name, (-1,))
        fits = array.ndim == 1 + len(axes) and all(
            length in (have, -1) for have, length in zip(array.shape[1:], axes, strict=True)
        )
        if not fits or array.shape[:1] != count or array.dtype.kind not in "fiu":
            reason = f"must hold numbers for each of {count} samples, in {path}"
            raise InvalidInput(name, reason, array.shape)
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            reason = f"is {array[tuple(bad[0])]} in {path}"
            raise InvalidInput(name, reason, array.shape, tuple(int(k) for k in bad[0]))
    if not (np.diff(content["time"]) >= 0.0).all():
        raise InvalidInput("time", f"must have samples in order, in {path}", count)
    return {name: np.ascontiguousarray(content[name], np.float64) for name in _STATES}


class States:
    """Samples of a run while it goes on; `count` of them are whole at any moment."""

    def __init__(self, model: mujoco.MjModel, most: int) -> None:
        shapes = {
            "time": (), "qpos": (model.nq,), "qvel": (model.nv,), "ctrl": (model.nu,),
            "act": (model.na,), "mocap_pos": (model.nmocap, 3), "mocap_quat": (model.nmocap, 4),
        }  # fmt: skip
        self._arrays = {name: np.zeros((most, *shape)) for name, shape in shapes.items()}
        self.count = 0

    def add(self, data: mujoco.MjData) -> None:
        """Keeps the state that data holds now."""
        for name, array in self._arrays.items():
            array[self.count] = getattr(data, name)
        self.count += 1

    def arrays(self, count: int) -> dict[str, Any]:
        """The first `count` samples by name."""
        return {name: array[:count].copy() for name, array in self._arrays.items()}
