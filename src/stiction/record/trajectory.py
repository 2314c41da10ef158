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
from zipfile import BadZipFile

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.errors import InvalidInput

Array = NDArray[np.float64]

FORMAT = 1
"""Version of the files that `save` writes; `load` refuses others."""

_STATES = ("time", "qpos", "qvel", "ctrl", "act", "mocap_pos", "mocap_quat")
"""Entries of MjData that a sample holds."""


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
        if self.xml:
            model = mujoco.MjModel.from_xml_string(self.xml)
        elif not Path(self.path).is_file():
            raise InvalidInput("model", f"the trajectory's model is gone: {self.path!r}")
        else:
            model = mujoco.MjModel.from_xml_path(self.path)
        self._check(model)
        model.opt.timestep = self.timestep
        return model

    def _check(self, model: mujoco.MjModel) -> None:
        have = (self.qpos.shape[1], self.qvel.shape[1], self.ctrl.shape[1])
        need = (model.nq, model.nv, model.nu)
        if have != need:
            raise InvalidInput(
                "model", f"has (nq, nv, nu) = {need}, the trajectory {have}: the model was changed"
            )

    def put(self, data: mujoco.MjData, sample: int) -> None:
        """Writes one sample into data; `mj_forward` derives the rest."""
        data.time = self.time[sample]
        for name in _STATES[1:]:
            getattr(data, name)[:] = getattr(self, name)[sample]

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the trajectory as .npz; returns the path."""
        path = Path(path)
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
        if not Path(path).is_file():
            raise InvalidInput("trajectory", f"no such file: {path}")
        try:
            with np.load(path, allow_pickle=False) as file:
                content = {name: file[name] for name in file.files}
        except (ValueError, EOFError, OSError, BadZipFile) as error:
            raise InvalidInput(str(path), f"is no trajectory: {error}") from error
        missing = [name for name in ("format", "timestep", *_STATES) if name not in content]
        if missing or content["format"] != FORMAT:
            what = f"without {', '.join(missing)}" if missing else f"of format {content['format']}"
            raise InvalidInput(str(path), f"is no trajectory of format {FORMAT}, but {what}")
        words: dict[str, Any] = {
            name: str(content.get(name, "")) for name in ("name", "contact", "xml", "path")
        }
        watch = tuple(str(name) for name in content.get("watch", ()))
        states = {name: content[name] for name in _STATES}
        trajectory = cls(**states, timestep=float(content["timestep"]), watch=watch, **words)
        if model is not None:
            trajectory.bind(model)
        return trajectory


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
