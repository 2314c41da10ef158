"""`stiction completion`."""

from __future__ import annotations

from typing import Annotated, Literal

import tyro


def command(
    shell: Annotated[Literal["bash", "zsh", "tcsh"], tyro.conf.arg(metavar="bash|zsh|tcsh")], /
) -> int:
    """Print a script that completes commands and options in that shell."""
    from stiction.cli import main

    return main(["--tyro-print-completion", shell])
