"""Progress bars: of simulated time, with speed and worst certificate so far; of a share done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Column

    from stiction.record import Progress


@contextmanager
def progress_bar() -> Iterator[Callable[[str, Progress], None]]:
    """Yields what is to be called with a run's name and its `Progress`: one bar for each name.

    On standard error, and only where that is a terminal: a file gets no control characters.
    """
    import rich.progress as bars
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TextColumn("{task.completed:.2f} of {task.total:g} s"),
        bars.TextColumn("{task.fields[speed]}"),
        bars.TextColumn("{task.fields[worst]}"),
        bars.TimeRemainingColumn(compact=True),
    )
    known: dict[str, bars.TaskID] = {}
    with bars.Progress(*columns, console=console, disable=not console.is_terminal) as display:

        def tell(name: str, progress: Progress) -> None:
            if name not in known:
                known[name] = display.add_task(name, total=progress.total, speed="", worst="")
            speed = progress.simulated / max(progress.elapsed, 1e-9)
            worst = f"certificate {progress.worst:.0e}" if progress.worst else ""
            display.update(
                known[name],
                completed=progress.simulated,
                speed=f"{speed:.3g} x real time",
                worst=worst,
            )

        yield tell


@contextmanager
def share_bar() -> Iterator[Callable[[float, str], None]]:
    """Yields what is to be called with the share that is done, 0 to 1, and what comes next; on a
    terminal only, as above."""
    import rich.progress as bars
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("{task.description}", table_column=_one_line()),
    )
    with bars.Progress(*columns, console=console, disable=not console.is_terminal) as display:
        task = display.add_task("", total=1.0)
        yield lambda share, text: display.update(task, completed=share, description=text)


def _one_line() -> Column:
    from rich.table import Column

    return Column(no_wrap=True, overflow="ellipsis")


@contextmanager
def patience(what: str, *, compiles: bool = True) -> Iterator[None]:
    """Says what is going on while something takes its time; on a terminal only."""
    from rich.console import Console

    note = " (the first time compiles for half a minute to a minute)" if compiles else ""
    with Console(stderr=True).status(f"{what}{note}"):
        yield
