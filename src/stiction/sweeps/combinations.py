"""`sweep`: every combination of options and seeds, each a run."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from itertools import product
from os import PathLike
from pathlib import Path

from stiction import scenes
from stiction.errors import InvalidInput, as_path, is_count, is_number, unknown
from stiction.record.comparison import check_names
from stiction.scenes.options import option_value
from stiction.sweeps.cluster import on_ray
from stiction.sweeps.journal import Journal
from stiction.sweeps.processes import in_processes
from stiction.sweeps.run import FILE_OPTIONS, Row, Run, Value, digest, execute, is_file
from stiction.sweeps.table import Sweep, import_arrow

FILE_SECONDS = 5.0
"""Length of run of a file, which does not say [s]."""


def sweep(
    scene: str | PathLike[str],
    options: Mapping[str, Sequence[object]],
    *,
    seeds: int | Sequence[int] = 1,
    time: float | None = None,
    contact: str = "coulomb",
    keyframe: str | None = None,
    noise: float = 0.01,
    drop: float = 0.01,
    out: str | PathLike[str] | None = None,
    retry: bool = False,
    workers: int | None = None,
    ray: str | None = None,
    on_progress: Callable[[int, int, Row | None], None] | None = None,
) -> Sweep:
    """Runs the scene with every combination of the options' values and every seed.

    scene        a shipped name, or the path of an .xml or .urdf
    options      of the scene, each with its values; a file has `friction` (of all geoms) and
                 `timestep`. `contact` may be among them: contact models by name, and MuJoCo's
                 own ways as in `stiction compare`
    seeds        how many, or which. Seed 0 is the scene as it is; others add velocities to its
                 start, normal with standard deviation `noise` [m/s, rad/s]. A scene that has an
                 option `seed` is made by it instead
    time         length of each run [s]; by default the scene's own
    drop         how far a watched body may sink and still count as held [m]
    out          folder for `runs.jsonl`, `results.parquet` (needs the extra `sweep`) and
                 `report.html`. Runs that are in there from before are not run again
    retry        run those again that failed or crashed before
    workers      processes, by default one per processor; 0: in this one, one after another
    ray          address of a Ray cluster, or "auto" (needs the extra `ray`)
    on_progress  called with the number of runs that are done, that of all runs, and the row of the
                 last one; first with None

    A run that raises, or whose process dies twice, is a row that says so. Ctrl-C stops the sweep
    and keeps what was done.
    """
    _check_ways(retry, workers, ray, on_progress)
    varied, runs = _plan(scene, options, seeds, time, contact, keyframe, noise, drop)
    seconds = runs[0].seconds
    folder = None if out is None else as_path("out", out)
    journal = None
    rows: dict[int, Row] = {}
    if folder is not None:
        import_arrow()  # now, not after hours of work
        folder.mkdir(parents=True, exist_ok=True)
        journal = Journal(folder / "runs.jsonl", retry=retry)
        rows = {k: journal.rows[run.key] for k, run in enumerate(runs) if run.key in journal.rows}
    interrupted = False
    missing = [k for k in range(len(runs)) if k not in rows]
    try:
        if on_progress is not None:
            on_progress(len(rows), len(runs), None)
        with closing(_ended([runs[k] for k in missing], workers, ray)) as ended:
            for position, row in ended:
                rows[missing[position]] = row
                if journal is not None:
                    journal.add(runs[missing[position]].key, row)
                if on_progress is not None:
                    on_progress(len(rows), len(runs), row)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        if journal is not None:
            journal.close()
    ordered = [rows[k] for k in sorted(rows)]
    table = Sweep(runs[0].scene, varied, seconds, drop, ordered, len(runs), interrupted)
    if folder is not None and ordered:
        table.save(folder / "results.parquet")
        table.write_report(folder / "report.html")
    return table


def _check_ways(retry: object, workers: object, ray: object, on_progress: object) -> None:
    """Raises InvalidInput for a way to run that is none."""
    if not isinstance(retry, bool):
        raise InvalidInput("retry", f"is {retry!r}: True or False")
    if workers is not None and not (is_count(workers, 0) and not isinstance(workers, bool)):
        raise InvalidInput("workers", f"is {workers!r}: a whole number, 0 or more, or None")
    if ray is not None and not isinstance(ray, str):
        raise InvalidInput("ray", f"is {ray!r}: the address of a cluster, or 'auto'")
    if on_progress is not None and not callable(on_progress):
        raise InvalidInput("on_progress", f"is {on_progress!r}: a function, or None")


def _ended(
    runs: Sequence[Run], workers: int | None, ray: str | None
) -> Generator[tuple[int, Row], None, None]:
    """Position and row of each run as it ends."""
    if not runs:
        return
    if ray is not None:
        yield from on_ray(runs, ray)
    elif workers == 0:
        yield from enumerate(map(execute, runs))
    else:
        yield from in_processes(runs, int(workers or os.cpu_count() or 1))


def _plan(
    scene: str | PathLike[str],
    options: Mapping[str, Sequence[object]],
    seeds: int | Sequence[int],
    time: float | None,
    contact: str,
    keyframe: str | None,
    noise: float,
    drop: float,
) -> tuple[dict[str, list[Value]], list[Run]]:
    """What is varied, and all runs."""
    name = os.fspath(as_path("scene", scene))
    content = ""
    if is_file(name):
        name = str(Path(name).resolve())
        content = digest(scenes.load(name).model)
    seconds = (FILE_SECONDS if content else scenes.get(name).seconds) if time is None else time
    for word, value in (("time", seconds), ("noise", noise), ("drop", drop)):
        if not (is_number(value) and 0.0 <= value < float("inf")):
            raise InvalidInput(word, f"is {value!r}: a number that is not negative")
    if keyframe is not None and not isinstance(keyframe, str):
        raise InvalidInput("keyframe", f"is {keyframe!r}: the name of a keyframe, or None")
    if not isinstance(options, Mapping):
        raise InvalidInput("options", f"is {options!r}: values by the name of an option")
    varied = {key: _values(name, key, list(given)) for key, given in options.items()}
    numbers = _seeds(seeds)
    if not numbers or min(numbers) < 0:
        raise InvalidInput("seeds", f"is {seeds!r}: one or more, none of them negative")
    laws = varied.get("contact") or check_names([contact])
    plain = {key: values for key, values in varied.items() if key != "contact"}
    runs = [
        Run(
            scene=name,
            options=dict(zip(plain, values, strict=True)),
            contact=str(law),
            seed=seed,
            seconds=seconds,
            noise=noise,
            drop=drop,
            keyframe=keyframe,
            content=content,
        )
        for law in laws
        for values in product(*plain.values())
        for seed in numbers
    ]
    return varied, runs


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    """The seeds; empty where there are none."""
    if isinstance(seeds, Sequence) and not isinstance(seeds, (str, bytes)):
        return [int(seed) for seed in seeds] if all(is_count(seed, 0) for seed in seeds) else []
    return list(range(int(seeds))) if isinstance(seeds, int) and is_count(seeds, 0) else []


def _values(scene: str, name: str, given: list[object]) -> list[Value]:
    """The values of an option, as its type; each of them once."""
    if not given:
        raise InvalidInput(name, "has no values")
    if name == "contact":
        return list(check_names([str(value) for value in given]))
    if name == "seed":
        raise InvalidInput("seed", "is told by `seeds`, not among the options")
    if is_file(scene):
        known: dict[str, object] = dict.fromkeys(FILE_OPTIONS, 0.0)
    else:
        parameters = inspect.signature(scenes.get(scene).xml).parameters
        known = {key: parameter.default for key, parameter in parameters.items()}
    if name not in known:
        raise InvalidInput(name, f"no option of the scene; {unknown(name, known)}")
    return list(dict.fromkeys(option_value(known[name], name, value) for value in given))
