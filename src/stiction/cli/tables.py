"""Tables on the terminal: a number is never cut. Where a table is too wide, words wrap first; then
columns that can be missed are left out, and it is said which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NARROWEST = 12
"""Characters that a column of words keeps."""

GAP = 2
"""Spaces between columns."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    words: bool = False
    """Whether its cells may wrap; numbers do not."""
    rank: int = 0
    """0: always there; of the others the largest is left out first."""


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Prints the rows, as wide as the terminal at most (80 characters where there is none)."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    shown, left_out = _fit(columns, rows, console.width)
    table = Table(box=None, pad_edge=False)
    for column in shown:
        k = columns.index(column)
        widest = _width(column, [row[k] for row in rows])
        if column.words:
            table.add_column(column.name, min_width=min(widest, NARROWEST), overflow="fold")
        else:
            table.add_column(column.name, justify="right", no_wrap=True, min_width=widest)
    for row in rows:
        table.add_row(*(escape(row[columns.index(column)]) for column in shown))
    console.print(table)
    if left_out:
        print(f"left out for want of room: {', '.join(column.name for column in left_out)}")


def _fit(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int
) -> tuple[list[Column], list[Column]]:
    """The columns that find room, and those that do not."""
    widths = {c: _width(c, [row[k] for row in rows]) for k, c in enumerate(columns)}
    need = {c: min(w, NARROWEST) if c.words else w for c, w in widths.items()}
    shown, left_out = list(columns), []
    for column in sorted(columns, key=lambda c: -c.rank):
        if sum(need[c] for c in shown) + GAP * (len(shown) - 1) <= room or column.rank == 0:
            break
        shown.remove(column)
        left_out.append(column)
    return shown, [column for column in columns if column in left_out]


def _width(column: Column, cells: Sequence[str]) -> int:
    return max(len(column.name), *(len(cell) for cell in cells), 1)
