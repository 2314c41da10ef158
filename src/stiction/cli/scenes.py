"""`stiction scenes`."""

from __future__ import annotations


def command() -> int:
    """The scenes that ship with stiction, one line each."""
    from inspect import signature

    from rich.console import Console
    from rich.table import Table

    from stiction import scenes
    from stiction.cli import DONE

    table = Table(box=None, pad_edge=False)
    table.add_column("scene", no_wrap=True)
    table.add_column("seconds", justify="right")
    table.add_column("what it is")
    table.add_column("--set")
    for name in scenes.names():
        scene = scenes.get(name)
        options = " ".join(
            f"{option}={parameter.default}"
            for option, parameter in signature(scene.xml).parameters.items()
        )
        table.add_row(name, f"{scene.seconds:g}", scene.summary, options)
    Console(highlight=False).print(table)
    return DONE
