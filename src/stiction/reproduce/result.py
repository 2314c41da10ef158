"""What an experiment returns: tables, plots, counts, and what it was run with."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from time import thread_time
from typing import Any, Literal

import numpy as np

from stiction.record.machine import machine as machine_of_a_run

Cell = str | int | float | None
Progress = Callable[[float, str], None]
"""Told how much of an experiment is done, 0 to 1, and what comes next."""

clock = thread_time
"""Processor time of the thread [s]. On a machine that others use, the time of day is theirs too."""

COMPILING = 1.0
"""A single step or solve that takes longer [s] had something compiled in it: not counted."""

PEERS = ("daqp", "quadprog", "clarabel")
"""Solvers to compare with, whose versions a result names where they are installed."""


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
    kin: str = ""
    """Lines of one kin have one colour; without, a line is its own."""


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
class Claim:
    """What a paper says came out, and what came out here."""

    text: str
    theirs: str
    ours: str
    holds: Literal["yes", "in part", "no"]


def verdict(holds: bool) -> Literal["yes", "no"]:
    """Of a claim that holds or does not."""
    return "yes" if holds else "no"


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
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()
    """What explains the figures."""
    counts: dict[str, int] = field(default_factory=dict)
    """`solves` and `failures` of our own solvers, and what else was counted."""
    seeds: tuple[int, ...] = ()
    machine: dict[str, str] = field(default_factory=lambda: machine())
    seconds: float = 0.0

    def numbers(self) -> dict[str, Any]:
        """All of it as plain values for JSON: a number that is not finite becomes None."""
        return {key: _plain(value) for key, value in asdict(self).items()}


def read(path: str | PathLike[str]) -> Result:
    """The result whose numbers `stiction reproduce` wrote there."""
    found = json.loads(Path(path).read_text(encoding="utf-8"), object_hook=_frozen)
    for plot in found["plots"]:
        plot["lines"] = tuple(Line(**line) for line in plot["lines"])
    kinds = {"tables": Table, "plots": Plot, "pictures": Picture, "claims": Claim}
    for name, kind in kinds.items():
        found[name] = tuple(kind(**one) for one in found[name])
    return Result(**found)


def _frozen(one: dict[str, Any]) -> dict[str, Any]:
    """A dictionary whose lists, and lists in them, are tuples."""

    def freeze(value: Any) -> Any:
        return tuple(freeze(item) for item in value) if isinstance(value, list) else value

    return {key: freeze(value) for key, value in one.items()}


def machine() -> dict[str, str]:
    """Processor, system and versions of what was used."""
    found = machine_of_a_run()
    for package in PEERS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of a straight line through log(values) over log(sizes)."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def fit(name: str, sizes: Sequence[float], values: Sequence[float]) -> Line:
    """The power law through the points, as a line from the least to the largest size."""
    slope, level = np.polyfit(np.log(sizes), np.log(values), 1)
    ends = (float(min(sizes)), float(max(sizes)))
    on_line = tuple(float(np.exp(level + slope * np.log(size))) for size in ends)
    return Line(f"{name}, n^{slope:.1f}", ends, on_line, kin=name)


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
