"""`stiction bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "simulator_speed.py"
"""In a checkout; an installed package has no benchmarks."""


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

    if not SCRIPT.is_file():
        print(
            f"The benchmarks are scripts in the source repository (benchmarks/{SCRIPT.name} and "
            "the rest of `make bench`), not in the installed package: run this from a checkout."
        )
        return FAILED
    command_line = [sys.executable, str(SCRIPT), *(["--growth"] if growth else [])]
    # The script is deaf to the terminal's Ctrl-C, and ended by us: it would print a traceback.
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        script = subprocess.Popen(command_line)
    finally:
        signal.signal(signal.SIGINT, heard)
    with script:
        try:
            return FAILED if script.wait() else DONE
        except BaseException:
            script.terminate()
            raise
