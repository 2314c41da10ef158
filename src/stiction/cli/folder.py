"""Where a command writes: looked at before hours of work would have no place."""

from __future__ import annotations

import os
from pathlib import Path

from stiction.errors import InvalidInput


def check_folder(folder: Path) -> Path:
    """The directory, which exists or can be made; InvalidInput where it cannot be written to."""
    there = folder.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise InvalidInput("--out", f"cannot write to {folder}: {there} is no directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InvalidInput("--out", f"cannot write to {folder}: {there} does not allow it")
    return folder
