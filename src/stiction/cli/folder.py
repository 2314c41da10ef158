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


def earlier_run(folder: Path) -> str:
    """What a run that was kept there before was of, in words; empty where there is none."""
    from stiction.contact.problem.files import read_npz
    from stiction.errors import StictionError

    path = folder / "trajectory.npz"
    if not path.is_file():
        return "an earlier report" if (folder / "report.html").exists() else ""
    try:
        content = read_npz(path, "trajectory")
    except StictionError:
        return "an earlier run"
    source = str(content.get("path", "")) or str(content.get("name", ""))
    return f"an earlier run of {source}" if source else "an earlier run"


def earlier_sweep(folder: Path) -> str:
    """What a sweep that was kept there before was of, in words; empty where there is none."""
    import json

    from stiction.sweeps.table import import_arrow

    path = folder / "results.parquet"
    if not path.is_file():
        return ""
    import_arrow()
    from pyarrow import ArrowException, parquet

    try:
        about = json.loads((parquet.read_schema(path).metadata or {}).get(b"stiction", b"{}"))
    except (ArrowException, OSError, ValueError):
        return "an earlier sweep"
    return f"an earlier sweep of {about['scene']}" if "scene" in about else "an earlier sweep"
