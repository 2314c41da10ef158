"""Kernels that are called through their address, and those among them that compile late."""

import gc
import subprocess
import sys
import time
from typing import Any, NamedTuple

import numpy as np

from stiction.contact.problem.blocks import Datum
from stiction.kernels.cache import KernelCache
from stiction.kernels.compile import kernel
from stiction.kernels.packing import pack, packed, unpacker
from stiction.kernels.stage import stage


@packed
class Some(NamedTuple):
    """Arrays of three kinds."""

    table: Any
    mark: Any
    index: Any


def test_a_late_stage_compiles_when_it_is_first_called_and_not_before():
    # Defined here: whoever compiles all stages that are known compiles those of this file too.
    @stage("float64(int64, float64)", eager=False)
    def scaled(count, size):
        return count * size

    @stage("void(int64)", eager=False)
    def noted(address):
        """Nothing to give back."""

    scale, note = scaled.external, noted.external

    @kernel
    def scale_if(wanted, size):
        if wanted > 0:
            note(wanted)
            return scale(wanted, size) + scale(wanted, 1.0)
        return 0.0

    assert scale_if(0, 2.5) == 0.0
    assert scaled._address == 0
    assert scale_if(2, 2.5) == 7.0
    assert scaled._address == scaled.address != 0
    assert scale_if(3, 1.0) == 6.0


def test_a_late_stage_is_loaded_ahead_once_it_is_on_disk(tmp_path):
    def tripled(x):
        return 3 * x

    def made():
        found = stage("int64(int64)", eager=False)(tripled)
        found._function._cache = KernelCache(tripled, tmp_path / "own")
        return found

    first, second = made(), made()
    first.load()
    assert first._address == 0
    assert first.address != 0
    second.load()
    assert second._address != 0
    assert second(4) == 12


def test_compiling_leaves_the_garbage_collector_as_it_was():
    @kernel
    def doubled(x):
        return 2.0 * x

    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            assert doubled(2 if enabled else 2.0) == 4.0
            assert gc.isenabled() == enabled
        finally:
            gc.enable()


INTERRUPTED = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
from stiction.kernels.compile import kernel
from stiction.kernels.stage import Stage, stage

@stage("int64(int64)", eager=False)
def same(x):
    return x

again, compiled = same.external, Stage.prepare
def interrupted(self):
    Stage.prepare = compiled
    signal.raise_signal(signal.SIGINT)
    compiled(self)

@kernel
def ask(x):
    return again(x)

ask.entry.compile("int64(int64)")
Stage.prepare = interrupted
try:
    ask(7)
    time.sleep(60.0)
except KeyboardInterrupt:
    print("stopped", ask(7))
"""


def test_ctrl_c_while_a_late_stage_compiles_is_heard_when_it_is_done():
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "stopped 7\n", done.stderr
    assert time.perf_counter() - begun < 60.0  # which it would have slept


def test_an_entry_of_a_plain_array_is_read_and_written_by_any_integer():
    example = Some(np.zeros((2, 3)), np.zeros(3, np.bool_), np.zeros(2, np.int64))
    unpack = unpacker(example)

    @kernel
    def work(address):
        (some,) = unpack(address)
        k, small = 1, np.int32(2)
        some.table[k, small] = 5.0
        some.table[0, Datum.BOUND] = 3
        some.mark[k] = some.table[1, 2] == 5.0
        row = some.table[k]
        row[0] = some.table.shape[1]
        some.index[0] = 7.0
        some.index[1] += some.index[0]

    addresses = pack(example)
    work(addresses.ctypes.data)
    assert example.table[1].tolist() == [3.0, 0.0, 5.0]
    assert example.table[0, int(Datum.BOUND)] == 3.0
    assert example.mark.tolist() == [False, True, False]
    assert example.index.tolist() == [7, 7]
