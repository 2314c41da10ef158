"""`stiction compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from stiction.cli.arguments import Clip, Dt, Equality, Keyframe, Out, Scene, Settings, Time


def command(
    scene: Scene,
    /,
    *,
    contact: Annotated[
        str,
        tyro.conf.arg(
            metavar="MODEL,...",
            help="contact models as for `run`, and mujoco (as the model sets it), mujoco-A "
            "(elliptic, impratio 100, stiff), mujoco-C (A with noslip 20)",
        ),
    ] = "coulomb,no-slip,mujoco,mujoco-A,mujoco-C",
    time: Time = None,
    dt: Dt = None,
    equality: Equality = "soft",
    keyframe: Keyframe = None,
    settings: Settings = (),
    clip: Clip = True,
    out: Out = None,
) -> int:
    """Contact models and MuJoCo's own side by side: a table, and plots in a report."""
    from stiction.cli import DONE, FAILED
    from stiction.cli.folder import check_folder
    from stiction.cli.progress import patience, progress_bar
    from stiction.cli.scene import choose
    from stiction.cli.tables import Column, print_table
    from stiction.record.comparison import check_names, compare

    names = check_names(contact.split(","))
    chosen = choose(scene, settings=settings, dt=dt, seconds=time, keyframe=keyframe)
    folder = check_folder(out or Path("stiction-runs", f"{chosen.name}-compare"))
    with progress_bar() as tell:
        outcomes = compare(
            chosen.load,
            names,
            chosen.seconds,
            watch=chosen.watch,
            equality=equality,
            on_progress=tell,
        )
    from stiction.record.page import COLUMNS, row, write_comparison

    watched = ", ".join(outcomes[0].motion.bodies) if outcomes else ""
    print(f"{chosen.name}, {chosen.seconds:g} s; watched: {watched}\n")
    columns = [Column(COLUMNS[0], words=True), *map(Column, COLUMNS[1:-1])]
    if any(row(outcome)[-1] for outcome in outcomes):
        columns.append(Column(COLUMNS[-1]))
    print_table(columns, [row(outcome) for outcome in outcomes])
    for outcome in outcomes:
        if outcome.failure:
            print(f"{outcome.name} ended at {outcome.time[-1]:.4g} s: {outcome.failure}")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "compare.html"
    replaced = " in the place of an earlier one" if path.exists() else ""
    with patience("writing the report", compiles=False):
        write_comparison(outcomes, path, name=chosen.name, clip=clip)
    print(f"\nwrote {path}{replaced}")
    stopped = any(outcome.interrupted for outcome in outcomes)
    failed = any(outcome.failure for outcome in outcomes if outcome.worst is not None)
    return FAILED if stopped or failed else DONE
