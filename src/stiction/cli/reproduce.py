"""`stiction reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro


def command(
    names: Annotated[
        tuple[str, ...],
        tyro.conf.arg(
            metavar="NAME ...",
            help="experiments, or all; without a name they are listed",
            help_behavior_hint="(required)",
        ),
    ],
    /,
    *,
    quick: Annotated[
        bool, tyro.conf.arg(help="fewer and shorter runs: minutes in the place of half an hour")
    ] = False,
    out: Annotated[Path, tyro.conf.arg(metavar="DIR", help="where to write")] = Path("reproduced"),
) -> int:
    """Run the papers' experiments; write a report with their figures beside ours, and the numbers.

    Ctrl-C keeps the experiments that are done.
    """
    from stiction.cli import DONE, FAILED
    from stiction.cli.folder import check_folder
    from stiction.cli.progress import share_bar
    from stiction.errors import InvalidInput
    from stiction.reproduce import NAMES, reproduce, resolve

    if not names:
        raise InvalidInput("experiment", f"none is named: all, {', '.join(NAMES)}")
    wanted = resolve(names)
    check_folder(out)
    done = failed = 0
    interrupted = False
    with share_bar() as tell:
        try:
            for result in reproduce(wanted, out, quick, tell):
                done += 1
                failures = result.counts["failures"]
                failed += failures > 0
                held = [claim.holds for claim in result.claims]
                print(
                    f"{result.name}: {held.count('yes')} of {len(held)} claims hold, "
                    f"{result.counts['solves']} solves, {failures} failures, "
                    f"{result.seconds:.0f} s",
                    flush=True,
                )
        except KeyboardInterrupt:
            interrupted = True
    if done:
        print(f"wrote {out / 'report.html'} and the numbers as .json beside it")
    if interrupted:
        print(f"stopped by Ctrl-C; {done} of {len(wanted)} experiments are kept")
    return FAILED if interrupted or failed else DONE
