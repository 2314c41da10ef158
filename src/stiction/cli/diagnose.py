"""`stiction diagnose`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import tyro

from stiction.cli.arguments import Dt, Keyframe, Scene, Settings, Time

if TYPE_CHECKING:
    from stiction.record.diagnosis import Pair

PRINTED = 12
"""Pairs and findings that are printed unless all are asked for."""


def command(
    scene: Scene,
    /,
    *,
    time: Time = None,
    dt: Dt = None,
    keyframe: Keyframe = None,
    settings: Settings = (),
    all_: Annotated[
        bool,
        tyro.conf.arg(name="all", help=f"print all pairs and findings, not the first {PRINTED}"),
    ] = False,
) -> int:
    """Why does it slip? Every pair in contact, what it bears, and what lets it go."""
    from rich.console import Console
    from rich.padding import Padding

    from stiction.cli import DONE, FAILED
    from stiction.cli.progress import progress_bar
    from stiction.cli.scene import choose
    from stiction.record import diagnose

    chosen = choose(scene, settings=settings, dt=dt, seconds=time, keyframe=keyframe)
    with progress_bar() as tell:
        found = diagnose(chosen.load, chosen.seconds, watch=chosen.watch, on_progress=tell)
    console = Console(highlight=False)
    most = None if all_ else PRINTED
    print(f"{chosen.name}, {found.recording.time[-1] - found.recording.time[0]:.4g} s\n")
    if found.pairs:
        _print_pairs(found.pairs[:most])
        _tell_rest(len(found.pairs), most, "pairs")
        print()
    for finding in found.findings[:most]:
        mark = "*" if finding.cause else "-"
        console.print(f"{mark} [bold]{finding.kind}[/bold]: {_plain(finding.where)}")
        console.print(Padding(_plain(finding.text), (0, 0, 0, 4), expand=False))
        if finding.advice:
            console.print(Padding(f"-> {_plain(finding.advice)}", (0, 0, 0, 4), expand=False))
    _tell_rest(len(found.findings), most, "findings")
    return FAILED if found.recording.failure or found.recording.interrupted else DONE


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _tell_rest(count: int, most: int | None, what: str) -> None:
    if most is not None and count > most:
        print(f"... and {count - most} more {what}: --all")


def _print_pairs(pairs: list[Pair]) -> None:
    import numpy as np

    from stiction.cli.tables import Column, print_table
    from stiction.record.diagnosis.findings import BEYOND
    from stiction.record.words import speed

    columns = [Column("bodies", words=True), Column("points", rank=3), Column("condim", rank=2)]
    columns += [Column("mu"), Column("f_n N"), Column("f_t N"), Column("in use")]
    columns += [Column("margin N", rank=1)]
    sliding = any(pair.sliding for pair in pairs)
    if sliding:
        columns += [Column("slides"), Column("fastest"), Column("mu needed")]
    rows = []
    for pair in pairs:
        rough = pair.condim > 1 and pair.friction > 0.0
        row = [
            " - ".join(pair.bodies),
            f"{np.median(pair.number):g}",
            str(pair.condim),
            f"{pair.friction:.3g}",
            _force(np.median(pair.normal)),
            _force(np.median(pair.tangential)),
            f"{100 * pair.use:.0f} %" if rough else "-",
            _force(np.min(pair.margin)) if rough else "-",
        ]
        if sliding:
            row += [
                f"{100 * pair.sliding / pair.samples:.0f} %",
                speed(max(pair.slip)) if pair.sliding else "-",
                "-" if not pair.needed < BEYOND * pair.friction else f"{pair.needed:.2g}",
            ]
        rows.append(row)
    print_table(columns, rows)
    if not sliding:
        print("nothing slides")


def _force(value: Any) -> str:
    """[N]; rounding is nothing."""
    return f"{value:.3g}" if value > 1e-6 else "0"
