"""`python -m stiction.experiments NAME... [--quick] [--out DIR]`: the papers' experiments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from time import perf_counter

from stiction.errors import StictionError
from stiction.experiments.registry import NAMES, reproduce, resolve

BAR = 30  # characters


class Bar:
    """A progress bar on the error stream: one line that is written over on a terminal."""

    def __init__(self) -> None:
        self._began = perf_counter()
        self._last = ""

    def __call__(self, share: float, text: str) -> None:
        """Shows how much is done, and what comes next."""
        full = round(BAR * min(max(share, 0.0), 1.0))
        bar = "#" * full + "." * (BAR - full)
        spent = perf_counter() - self._began
        line = f"[{bar}] {100 * share:3.0f} % {spent:4.0f} s  {text}"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{line[:110]:<110}" + ("\n" if share >= 1.0 else ""))
        elif text != self._last:
            sys.stderr.write(line + "\n")
        self._last = text
        sys.stderr.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs experiments and writes their report; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="stiction reproduce",
        description="Reproduce the papers' tables and figures: one HTML report that needs no "
        "network, and the raw numbers as JSON.",
        epilog="experiments: " + ", ".join(NAMES),
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="an experiment, or all")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs: minutes")
    parser.add_argument("--out", default="reproduced", metavar="DIR", help="default: %(default)s")
    given = parser.parse_args(argv)
    try:
        wanted = resolve(given.names)
        path = reproduce(wanted, given.out, given.quick, Bar())
    except StictionError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
