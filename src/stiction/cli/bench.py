"""`stiction bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

NAME = "simulator_speed.py"
PLACES = (Path(__file__).resolve().parent, Path(__file__).resolve().parents[3] / "benchmarks")
"""Of the script: an installed package has it beside this file, a checkout where it is written."""


def command(
    *,
    growth: Annotated[
        bool, tyro.conf.arg(help="how time grows with bodies, instead of the scenes' table")
    ] = False,
) -> int:
    """Time of a step beside MuJoCo's own, default and tuned, on this machine."""
    import signal
    import subprocess
    import sys

    from stiction.cli import DONE, FAILED

    script_path = next((place / NAME for place in PLACES if (place / NAME).is_file()), None)
    if script_path is None:
        print(f"{NAME} is missing: it comes with the wheel, and with a checkout of the sources.")
        return FAILED
    command_line = [sys.executable, str(script_path), *(["--growth"] if growth else [])]
    # The script is deaf to the terminal's Ctrl-C, and ended by us: it would print a traceback.
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        script = subprocess.Popen(command_line)
    finally:
        signal.signal(signal.SIGINT, heard)
    with script:
        try:
            ended = script.wait()
        except BaseException:
            script.terminate()
            raise
    # By SIGPIPE where its reader, such as `head`, has had enough.
    return DONE if ended in (0, -getattr(signal, "SIGPIPE", 0)) else FAILED
