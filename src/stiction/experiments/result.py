"""What an experiment returns: tables, plots, counts, and what it was run with."""

from __future__ import annotations

import math
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

Cell = str | int | float | None
Progress = Callable[[float, str], None]
"""Told how much of an experiment is done, 0 to 1, and what comes next."""

COMPILING = 1.0
"""A single step or solve that takes longer [s] had something compiled in it: not counted."""

PACKAGES = ("stiction", "mujoco", "numpy", "scipy", "numba", "daqp", "quadprog", "clarabel")
"""Whose versions a result names, where they are installed."""


@dataclass(frozen=True)
class Table:
    """Figures of ours beside the paper's."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Line:
    """One curve of a plot."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False
    """As for the paper's own figures."""
    points: bool = False
    """Markers alone."""


@dataclass(frozen=True)
class Plot:
    """Curves over one axis."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    log: bool = False
    """Both axes logarithmic."""


@dataclass(frozen=True)
class Picture:
    """A state of a shipped scene, to be rendered where graphics are at hand."""

    title: str
    scene: str
    qpos: tuple[float, ...]
    options: dict[str, Any] = field(default_factory=dict)
    camera: dict[str, float] = field(default_factory=dict)
    """`distance` [m], `azimuth`, `elevation` [degrees], `x`, `y`, `z` [m] of a free camera;
    what is left out is the scene's own."""


@dataclass(frozen=True)
class Result:
    """One experiment, run."""

    name: str
    title: str
    paper: str
    """Which table or figure of which paper."""
    quick: bool
    tables: tuple[Table, ...]
    plots: tuple[Plot, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    """Where we differ, and which claims of the paper hold in our hands."""
    counts: dict[str, int] = field(default_factory=dict)
    """`solves` and `failures` of our own solvers, and what else was counted."""
    seeds: tuple[int, ...] = ()
    machine: dict[str, str] = field(default_factory=lambda: machine())
    seconds: float = 0.0

    def numbers(self) -> dict[str, Any]:
        """All of it as plain values for JSON: a number that is not finite becomes None."""
        return {key: _plain(value) for key, value in asdict(self).items()}


def machine() -> dict[str, str]:
    """Processor, system and versions of what was used."""
    found = {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.release()}",
        "python": sys.version.split()[0],
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            if package == "stiction":
                from stiction import __version__

                found[package] = __version__
    return found


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of a straight line through log(values) over log(sizes)."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
