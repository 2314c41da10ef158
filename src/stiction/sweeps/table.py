"""What a sweep returns: rows, columns, a Parquet file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction import __version__
from stiction.errors import InvalidInput, StictionError, unknown
from stiction.sweeps.run import OUTCOMES, Row, Value


@dataclass(frozen=True, eq=False)
class Sweep:
    """The runs of a sweep that ended, in the order of the combinations; a row for each.

    Columns are the options, `contact`, `seed`, and

    status       "done", "failed" (an error was raised) or "crashed" (its process ended)
    error        what was raised, or how the process ended; empty for what is done
    simulated    [s]
    slip         fastest slip at a loaded contact, mean over the second half of the run [m/s]; None
                 if nothing touches then
    moved        furthest that a watched body was from its start [m]
    sink         how far below its start a watched body ends [m]
    held         whether that is no more than `drop`
    certificate  largest violation of any law of contact; None under MuJoCo's own contact
    overlap      deepest [m]
    us_per_step  median time of a step [us]
    elapsed      time of the whole run on the clock [s]

    with None where a run has no answer.
    """

    scene: str
    varied: dict[str, list[Value]]
    """Options, the contact model among them, by what they were set to."""
    seconds: float
    """Length of a run [s]."""
    drop: float
    """How far a body may sink and still be held [m]."""
    rows: list[Row]
    asked: int
    """How many runs the sweep has."""
    interrupted: bool = False
    """Whether Ctrl-C ended it before that many were done."""

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Sweep({self.scene!r}, {len(self)} of {self.asked} runs, columns {self.names})"

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return [*dict.fromkeys([*self.varied, "contact", "seed"]), *OUTCOMES]

    def count(self, status: str) -> int:
        """How many runs ended that way."""
        return sum(row["status"] == status for row in self.rows)

    def column(self, name: str) -> NDArray[Any]:
        """(n,) the column: numbers where all of it are, not a number where there is no answer."""
        if name not in self.names:
            raise InvalidInput("name", unknown(name, self.names))
        values = [row[name] for row in self.rows]
        if any(isinstance(value, (bool, str)) for value in values):
            return np.array(values, object if None in values else None)
        if any(isinstance(value, float) or value is None for value in values):
            return np.array(values, np.float64)
        return np.array(values)

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`; needs the extra `sweep`."""
        arrow = import_arrow()
        kinds = {str: arrow.string(), float: arrow.float64(), bool: arrow.bool_()}
        kinds[int] = arrow.int64()
        columns = {}
        for name in self.names:
            values = [row[name] for row in self.rows]
            kind = OUTCOMES.get(name) or type(self.varied.get(name, [values[0]])[0])
            columns[name] = arrow.array(values, kinds[kind])
        about = {"scene": self.scene, "seconds": self.seconds, "drop": self.drop}
        told = json.dumps({**about, "stiction": __version__})
        return arrow.table(columns).replace_schema_metadata({"stiction": told})

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the rows as a Parquet file; returns the path. Needs the extra `sweep`."""
        table = self.to_arrow()
        import pyarrow.parquet as parquet

        path = Path(path)
        unfinished = path.with_name(f"{path.name}.unfinished")
        parquet.write_table(table, unfinished)
        unfinished.replace(path)  # whoever reads it meanwhile sees the one or the other
        return path

    def write_report(self, path: str | PathLike[str]) -> Path:
        """Writes the page with heat maps; returns the path."""
        from stiction.sweeps.report import write_report

        return write_report(self, path)


def import_arrow() -> Any:
    """The module, or an error that tells how to get it."""
    try:
        import pyarrow
    except ImportError as error:
        raise StictionError("Parquet files need pip install 'stiction[sweep]'") from error
    return pyarrow
