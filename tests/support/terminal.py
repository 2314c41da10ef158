"""Processes that hear Ctrl-C, as those started from a terminal do."""

import signal
import subprocess
import sys


def start(*arguments):
    """`python -m stiction` with these arguments, its output piped."""
    return subprocess.Popen(
        [sys.executable, "-m", "stiction", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_listen,
    )


def _listen():
    """A shell starts what runs in the background deaf to SIGINT, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
