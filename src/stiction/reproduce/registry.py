"""Experiments by name, and what runs them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from time import perf_counter

from stiction.errors import InvalidInput
from stiction.reproduce.result import Progress, Result

NAMES = (
    "drumwright-grasp",
    "drumwright-quadruped",
    "lloyd-peg",
    "lloyd-single",
    "lloyd-stack",
    "yamane-squat",
    "yamane-tap-dance",
    "yamane-chains",
    "baraff-mechanisms",
    "baraff-timing",
)
"""All experiments, paper by paper."""


def resolve(names: str | Sequence[str]) -> tuple[str, ...]:
    """Checked names, each once; "all" stands for every one."""
    wanted = (names,) if isinstance(names, str) else tuple(names)
    found: list[str] = []
    for name in wanted:
        if name != "all" and name not in NAMES:
            near = get_close_matches(name, NAMES, n=2, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"all, {', '.join(NAMES)}"
            raise InvalidInput("experiment", f"unknown: {name!r}; {hint}")
        found.extend(n for n in (NAMES if name == "all" else (name,)) if n not in found)
    return tuple(found)


def run(name: str, quick: bool = False, progress: Progress | None = None) -> Result:
    """One experiment; `quick` takes fewer and shorter runs."""
    (name,) = resolve(name)
    module = import_module(f"stiction.reproduce.{name.replace('-', '_')}")
    began = perf_counter()
    result: Result = module.run(quick, progress or _silent)
    return replace(result, seconds=perf_counter() - began)


def reproduce(
    names: str | Sequence[str],
    out: str | Path,
    quick: bool = False,
    progress: Progress | None = None,
) -> Iterator[Result]:
    """Runs experiments and writes them into the directory `out`; yields each when it is written.

    `out/report.html` holds all of them and needs no network; `out/NAME.json` the raw numbers of
    each. Both are written after each experiment, so that what is done is not lost.
    """
    from stiction.reproduce.report import write_report

    wanted = resolve(names)
    directory = Path(out)
    directory.mkdir(parents=True, exist_ok=True)
    tell = progress or _silent
    results: list[Result] = []
    for index, name in enumerate(wanted):

        def part(share: float, text: str, index: int = index, name: str = name) -> None:
            tell((index + share) / len(wanted), f"{name}: {text}")

        result = run(name, quick, part)
        numbers = json.dumps(result.numbers(), indent=1, allow_nan=False)
        (directory / f"{name}.json").write_text(numbers + "\n", encoding="utf-8")
        results.append(result)
        write_report(results, directory / "report.html")
        yield result
    tell(1.0, "done")


def _silent(share: float, text: str) -> None:
    pass
