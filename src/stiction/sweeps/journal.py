"""What of a sweep is done, on disk: a line for each run as it ends.

A sweep that is started again in the same folder reads it and runs what is missing. Lines are known
by the key of their run: another sweep in the same folder, with more values or more seeds, finds
those that they have in common. A line that was cut off by a power failure is left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TextIO

from stiction.sweeps.run import DONE, Row


class Journal:
    """The file, open for more."""

    def __init__(self, path: Path, *, retry: bool = False) -> None:
        """retry: whether rows of runs that failed or crashed are forgotten."""
        self.rows: dict[str, Row] = {}
        """By the key of their run."""
        whole = True
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            whole = not text or text.endswith("\n")
            for line in text.splitlines():
                try:
                    entry = json.loads(line)
                    self.rows[entry["key"]] = entry["row"]
                except (ValueError, KeyError, TypeError):
                    continue
        if retry:
            self.rows = {key: row for key, row in self.rows.items() if row["status"] == DONE}
        self._file: TextIO = path.open("a", encoding="utf-8")
        if not whole:
            self._file.write("\n")

    def add(self, key: str, row: Row) -> None:
        """Writes the row of a run down."""
        self.rows[key] = row
        self._file.write(json.dumps({"key": key, "row": row}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
