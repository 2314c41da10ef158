import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import stiction
from stiction.kernels import cache_directory, kernel, sources
from stiction.kernels import compile as compiling
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
printed = caller(1)
stats = getattr(caller, "entry", caller).stats
print(printed, sum(stats.cache_hits.values()), stats.cache_path)
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


def run(code, tmp_path, *arguments, **environment):
    """What the code prints, in words, and the lines that it writes to stderr."""
    inherited = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment = {"STICTION_CACHE_DIR": str(tmp_path / "cache"), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**inherited, "PYTHONPATH": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr.splitlines()


def test_an_edit_in_a_callees_file_is_not_answered_by_a_stale_kernel(package, tmp_path):
    assert run(CALL, tmp_path)[0][:2] == ["2", "0"]
    (answer, hits, path), warned = run(CALL, tmp_path)
    assert (answer, hits) == ("2", "1"), "a second process should find the compiled kernel"
    assert Path(path).is_relative_to(tmp_path / "cache")
    assert not warned
    (package / "kernels" / "probe_callee.py").write_text(CALLEE.format(2))
    assert run(CALL, tmp_path)[0][:2] == ["3", "0"]


def test_an_edit_elsewhere_leaves_a_compiled_kernel_in_use(package, tmp_path):
    run(CALL, tmp_path)
    other = package / "kernels" / "probe_other.py"
    other.write_text(CALLEE.format(7))
    before, edited = (set((tmp_path / "cache").iterdir()), run(CALL, tmp_path))
    assert edited[0][:2] == ["2", "1"]
    assert set((tmp_path / "cache").iterdir()) > before, "the edit should start a new cache"


ENTRY_AND_CALLEE = """
import itertools, sys
import numpy as np
from numba.core.bytecode import FunctionIdentity
first = int(sys.argv[1])
FunctionIdentity._unique_ids = itertools.count(first)
from stiction.kernels.probe_array import inner, outer
for name in sys.argv[2:]:
    print({"inner": inner, "outer": outer}[name](np.arange(3.0))[1])
"""


def test_code_of_several_processes_lives_together_in_one(package, tmp_path):
    # Numba counts functions from the first that a process compiles: here the one that is called
    # alone gets the number that it had where another called it.
    (package / "kernels" / "probe_array.py").write_text(
        "from stiction.kernels import kernel\nimport numpy as np\n"
        "@kernel\ndef inner(a):\n    return np.sin(a) + np.exp(a)\n"
        "@kernel\ndef outer(a):\n    return inner(a) + inner(2 * a)\n"
    )
    run(ENTRY_AND_CALLEE, tmp_path, "1000000", "outer")
    for shift in range(1, 5):
        run(ENTRY_AND_CALLEE, tmp_path, str(1000000 + shift), "inner")
        (outer, inner), _ = run(ENTRY_AND_CALLEE, tmp_path, "1", "outer", "inner")
        assert float(inner) == np.sin(1.0) + np.exp(1.0)
        assert float(outer) == float(inner) + np.sin(2.0) + np.exp(2.0)
        for saved in (tmp_path / "cache").glob("*/*inner*"):
            saved.unlink()


def test_every_signature_is_found_whoever_saved_it():
    def twice(x):
        return 2 * x

    first, second, reader = kernel(twice), kernel(twice), kernel(twice)
    first(1.5), second(1)
    assert (reader(1.5), reader(1)) == (3.0, 2)
    assert sum(reader.entry.stats.cache_hits.values()) == 2


@pytest.mark.parametrize("setting", ["", "mine"])
def test_compiling_leaves_the_users_numba_cache_as_it_was(tmp_path, package, setting):
    before = str(tmp_path / setting) if setting else ""
    code = CALL.replace("print(printed", "import numba; print([numba.config.CACHE_DIR]) #")
    assert run(code, tmp_path, NUMBA_CACHE_DIR=before) == ([repr([before])], [])
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
    printed, warned = run(deny + CALL, tmp_path, **nowhere)
    assert printed == ["2", "0", "None"]
    assert len(warned) == 1
    assert "set STICTION_CACHE_DIR" in warned[0]


# Permission bits do not bind root, under whom tests often run: what the system would say is said
# in its place.
READ_ONLY = """
import pathlib, tempfile
def refuse(*arguments, **named):
    raise OSError(30, "Read-only file system")
tempfile.TemporaryFile = pathlib.Path.write_bytes = refuse
"""
FULL = """
import pathlib, tempfile
def refuse(*arguments, **named):
    raise OSError(28, "No space left on device")
pathlib.Path.write_bytes = refuse
"""
FULL_FROM_THE_START = FULL + "tempfile.TemporaryFile = tempfile.gettempdir = refuse\n"


def test_a_populated_cache_that_is_read_only_is_used(package, tmp_path):
    run(CALL, tmp_path)
    (answer, hits, path), warned = run(READ_ONLY + CALL, tmp_path)
    assert (answer, hits) == ("2", "1")
    assert Path(path).is_relative_to(tmp_path / "cache")
    assert not warned


def test_what_a_read_only_cache_lacks_is_compiled(package, tmp_path):
    run(CALL, tmp_path)
    printed, warned = run(READ_ONLY + CALL.replace("caller(1)", "caller(1.5)"), tmp_path)
    assert printed[:2] == ["2.5", "0"]
    assert len(warned) == 1
    assert "cannot be saved" in warned[0]
    assert "Read-only file system" in warned[0]


@pytest.mark.parametrize("disk", [FULL, FULL_FROM_THE_START], ids=["later", "at once"])
def test_a_full_disk_costs_one_line(package, tmp_path, disk):
    printed, warned = run(disk + CALL, tmp_path)
    assert printed[:2] == ["2", "0"]
    assert len(warned) == 1
    assert not list((tmp_path / "cache").rglob("*.nbc*"))


def truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def empty(path):
    path.write_bytes(b"")


def flip_a_bit(path):
    stored = bytearray(path.read_bytes())
    stored[len(stored) // 2] ^= 1
    path.write_bytes(stored)


def put_a_directory_there(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [truncate, empty, flip_a_bit, put_a_directory_there])
def test_a_damaged_cache_is_compiled_anew_with_one_line(package, tmp_path, damage):
    run(CALL, tmp_path)
    for path in (tmp_path / "cache").rglob("*.nbc"):
        damage(path)
    printed, warned = run(CALL, tmp_path)
    assert printed[:2] == ["2", "0"]
    assert len(warned) == 1
    assert "are not used" in warned[0]
    if damage is not put_a_directory_there:
        assert run(CALL, tmp_path)[0][:2] == ["2", "1"], "what was damaged is written again"


def test_with_a_numba_that_is_not_known_its_own_cache_is_used(package, tmp_path):
    file = package / "kernels" / "compile.py"
    known = f"KNOWN_NUMBA = {compiling.KNOWN_NUMBA}"
    assert known in file.read_text()
    file.write_text(file.read_text().replace(known, "KNOWN_NUMBA = ((0, 1), (0, 2))"))
    for hits in ("0", "1"):
        (answer, found, path), warned = run(CALL, tmp_path)
        assert (answer, found, warned) == ("2", hits, [])
        assert Path(path).is_relative_to(tmp_path / "cache")


def test_the_hash_covers_what_kernels_reach_and_nothing_else(package):
    before = sources.hash_of_all(package)
    for unreached in ("cli/run.py", "simulate/simulator.py"):
        (package / unreached).write_text("print('hello')\n")
    assert sources.hash_of_all(package) == before
    for reached in ("tolerances.py", "lcp/lemke.py", "kernels/probe_callee.py"):
        (package / reached).write_text("RESIDUAL = 1.0\n")
        after = sources.hash_of_all(package)
        assert after != before
        before = after


@pytest.mark.parametrize(
    "line",
    ["from stiction.cli.probe import X", "from stiction.cli import (\n    other,\n    probe,\n)"],
)
def test_a_constant_that_a_kernel_imports_is_in_the_hash(package, line):
    (package / "cli" / "probe.py").write_text("X = 1\n")
    (package / "kernels" / "probe_caller.py").write_text(f"{line}\n{CALLER}")
    before = sources.hash_of_all(package)
    (package / "cli" / "probe.py").write_text("X = 2\n")
    assert sources.hash_of_all(package) != before


def test_pruning_keeps_the_last_used_and_everything_that_is_not_a_cache(tmp_path):
    old = [f"{i:016x}" for i in range(6)]
    for age, name in enumerate([*old, "notes"]):
        (tmp_path / name).mkdir()
        last_used = time.time() - 1e5 * (age + 1)
        os.utime(tmp_path / name, (last_used, last_used))
    cache_directory._prune(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*old[: cache_directory.KEPT], "notes"}


def test_a_kernel_is_compiled_once_for_all_constants_that_it_is_called_with():
    @kernel
    def doubled(x):
        return 2 * x

    @kernel
    def total(x):
        return doubled(1) + doubled(2) + doubled(x)

    if hasattr(total, "entry"):
        total.entry._cache.disable()  # what was compiled before would be taken from there
    assert total(3) == 12
    if hasattr(doubled, "_callee"):
        assert len(doubled._callee.signatures) == 1


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
