"""`stiction sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from stiction.cli.arguments import Contact, Keyframe, Scene, Time

if TYPE_CHECKING:
    from stiction.sweeps import Sweep
    from stiction.sweeps.run import Row


def command(
    scene: Scene,
    /,
    *,
    settings: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]],
        tyro.conf.arg(
            name="set",
            metavar="OPTION=VALUES",
            help="values of an option, 5,10,20 or FIRST:LAST:COUNT; more than one may follow. A "
            "file has friction and timestep; contact may be one, MuJoCo's ways as in `compare`",
            help_behavior_hint="(default: the scene's own)",
        ),
    ] = (),
    seeds: Annotated[
        int, tyro.conf.arg(help="runs of each combination; all but the first start disturbed")
    ] = 1,
    time: Time = None,
    contact: Contact = "coulomb",
    keyframe: Keyframe = None,
    noise: Annotated[
        float,
        tyro.conf.arg(help="standard deviation of the velocities that a seed adds [m/s, rad/s]"),
    ] = 0.01,
    drop: Annotated[
        float, tyro.conf.arg(help="how far a body may sink and still count as held [m]")
    ] = 0.01,
    retry: Annotated[bool, tyro.conf.arg(help="run again what failed or crashed before")] = False,
    workers: Annotated[
        int | None,
        tyro.conf.arg(help="processes", help_behavior_hint="(default: one per processor)"),
    ] = None,
    ray: Annotated[
        str | None,
        tyro.conf.arg(metavar="ADDRESS", help="of a Ray cluster, or auto, in place of processes"),
    ] = None,
    out: Annotated[
        Path | None,
        tyro.conf.arg(
            metavar="DIR",
            help="where to write, and to go on from",
            help_behavior_hint="(default: stiction-runs/SCENE-sweep)",
        ),
    ] = None,
) -> int:
    """Run every combination of options; write a table (Parquet) and a report with heat maps.

    Ctrl-C stops it; the same command goes on where it stopped. A run that fails or crashes is a
    row of the table.
    """
    from stiction.cli import DONE, FAILED
    from stiction.cli.folder import check_folder, earlier_sweep
    from stiction.cli.progress import share_bar
    from stiction.cli.scene import name_of
    from stiction.sweeps import sweep
    from stiction.sweeps.text import parse_values

    values = dict(parse_values(setting) for setting in settings)
    folder = check_folder(out or Path("stiction-runs", f"{name_of(scene)}-sweep"))
    earlier = earlier_sweep(folder)
    counts = {"failed": 0, "crashed": 0}
    with share_bar() as tell:

        def on_progress(done: int, total: int, row: Row | None) -> None:
            if row is not None and row["status"] in counts:
                counts[row["status"]] += 1
            bad = "".join(f", {count} {name}" for name, count in counts.items() if count)
            tell(done / total, f"{done} of {total} runs{bad}")

        table = sweep(
            scene, values, seeds=seeds, time=time, contact=contact, keyframe=keyframe, noise=noise,
            drop=drop, out=folder, retry=retry, workers=workers, ray=ray, on_progress=on_progress,
        )  # fmt: skip
    _tell(table)
    for name in ("results.parquet", "report.html", "runs.jsonl"):
        if (folder / name).exists():
            print(f"  wrote {folder / name}")
    if earlier and table.rows:
        print(f"  in the place of {earlier}, whose runs stay in runs.jsonl")
    if table.interrupted:
        print("stopped by Ctrl-C; the same command goes on with it")
    return FAILED if table.interrupted or not table.count("done") else DONE


def _tell(table: Sweep) -> None:
    """Prints the figures of a sweep that matter most."""
    import numpy as np

    from stiction.record.words import speed

    ended = ", ".join(
        f"{table.count(status)} {status}" for status in ("done", "failed", "crashed")
        if table.count(status)
    )  # fmt: skip
    print(f"{Path(table.scene).name}, {len(table)} of {table.asked} runs: {ended or 'none'}")
    held = [row["held"] for row in table.rows if row["held"] is not None]
    if held:
        print(f"  {'held':<19}{sum(held)} of {len(held)}")
    for name, column, words in (
        ("fastest slip", "slip", speed),
        ("worst certificate", "certificate", "{:.1e}".format),
        ("a step, slowest", "us_per_step", "{:.1f} us".format),
    ):
        values = [row[column] for row in table.rows if row[column] is not None]
        if values:
            print(f"  {name:<19}{words(float(np.max(values)))}")
    for row in [row for row in table.rows if row["error"]][:3]:
        print(f"  {row['status']}: {row['error']}")
