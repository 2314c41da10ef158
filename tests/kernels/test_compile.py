import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import stiction
from stiction.kernels import compile as compiling
from stiction.kernels import kernel
from stiction.status import Code, Status

CALLEE = "from stiction.kernels import kernel\n@kernel\ndef callee(x):\n    return x + {}\n"
CALLER = """
from stiction.kernels import kernel
from stiction.kernels.probe_callee import callee
@kernel
def caller(x):
    return callee(x)
"""
CALL = """
from stiction.kernels.probe_caller import caller
print(caller(1), sum(caller.stats.cache_hits.values()), caller.stats.cache_path)
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package with a kernel that calls a kernel of another file."""
    copy = tmp_path / "stiction"
    shutil.copytree(
        Path(stiction.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__")
    )
    (copy / "kernels" / "probe_callee.py").write_text(CALLEE.format(1))
    (copy / "kernels" / "probe_caller.py").write_text(CALLER)
    return copy


def run(code, tmp_path, **environment):
    inherited = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment = {"STICTION_CACHE_DIR": str(tmp_path / "cache"), **environment}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**inherited, "PYTHONPATH": str(tmp_path), **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=120,
    ).stdout.split()


def test_an_edit_in_a_callees_file_is_not_answered_by_a_stale_kernel(package, tmp_path):
    assert run(CALL, tmp_path)[:2] == ["2", "0"]
    answer, hits, path = run(CALL, tmp_path)
    assert (answer, hits) == ("2", "1"), "a second process should find the compiled kernel"
    assert Path(path).is_relative_to(tmp_path / "cache")
    (package / "kernels" / "probe_callee.py").write_text(CALLEE.format(2))
    assert run(CALL, tmp_path)[:2] == ["3", "0"]


def test_processes_that_save_different_signatures_at_once_leave_a_sound_cache(monkeypatch):
    def twice(x):
        return 2 * x

    winner, loser, reader = kernel(twice), kernel(twice), kernel(twice)
    winner(1.5)
    # The loser read the index before the winner wrote it, and wrote its own before the winner's.
    monkeypatch.setattr(loser._cache._cache_file, "_load_index", dict)
    monkeypatch.setattr(loser._cache._cache_file, "_save_index", lambda overloads: None)
    loser(1)
    assert reader(1.5) == 3.0
    assert sum(reader.stats.cache_hits.values()) == 1


@pytest.mark.parametrize("setting", ["", "mine"])
def test_importing_leaves_the_users_numba_cache_as_it_was(tmp_path, package, setting):
    before = str(tmp_path / setting) if setting else ""
    code = "import numba; import stiction.kernels.probe_caller; print([numba.config.CACHE_DIR])"
    assert run(code, tmp_path, NUMBA_CACHE_DIR=before) == [repr([before])]
    if setting:
        assert (tmp_path / setting / "stiction").is_dir()


def test_without_a_writable_directory_kernels_still_compile(package, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("a file where a directory should be")
    nowhere = dict.fromkeys(
        ["STICTION_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"],
        str(blocked),
    )
    deny = f"import tempfile; tempfile.tempdir = {str(blocked)!r}\n"
    assert run(deny + CALL, tmp_path, **nowhere) == ["2", "0", "None"]


def test_the_hash_covers_what_kernels_reach_and_nothing_else(package):
    before = compiling.source_hash(package)
    for unreached in ("cli/run.py", "simulate/simulator.py"):
        (package / unreached).write_text("print('hello')\n")
    assert compiling.source_hash(package) == before
    for reached in ("tolerances.py", "lcp/lemke.py", "kernels/probe_callee.py"):
        (package / reached).write_text("RESIDUAL = 1.0\n")
        after = compiling.source_hash(package)
        assert after != before
        before = after


@pytest.mark.parametrize(
    "line",
    ["from stiction.cli.probe import X", "from stiction.cli import (\n    other,\n    probe,\n)"],
)
def test_a_constant_that_a_kernel_imports_is_in_the_hash(package, line):
    (package / "cli" / "probe.py").write_text("X = 1\n")
    (package / "kernels" / "probe_caller.py").write_text(f"{line}\n{CALLER}")
    before = compiling.source_hash(package)
    (package / "cli" / "probe.py").write_text("X = 2\n")
    assert compiling.source_hash(package) != before


def test_pruning_keeps_the_last_used_and_everything_that_is_not_a_cache(tmp_path):
    old = [f"{i:016x}" for i in range(6)]
    for age, name in enumerate([*old, "notes"]):
        (tmp_path / name).mkdir()
        last_used = time.time() - 1e5 * (age + 1)
        os.utime(tmp_path / name, (last_used, last_used))
    compiling._prune(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*old[: compiling.KEPT], "notes"}


def test_a_kernel_returns_a_code_that_names_a_status():
    @kernel
    def smallest(q):
        code = Code.SOLVED
        if q.min() < 0:
            code = Code.RAY
        return code

    assert Status.from_code(smallest(np.ones(2))) is Status.SOLVED
    assert Status.from_code(smallest(-np.ones(2))) is Status.RAY
    assert {status.code for status in Status} == set(Code)
