"""Runs on a Ray cluster, each a task.

Ray runs a task again whose worker or machine is lost; one that loses it each time is a row that
says so. Rows are told apart by the position of their run, so that none is there twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stiction.errors import StictionError
from stiction.sweeps.processes import TRIES
from stiction.sweeps.run import Row, Run, crashed, execute

TASKS_AHEAD = 1000
"""Tasks that are handed over at a time: asking for the next one looks at all of them."""


def on_ray(runs: Sequence[Run], address: str) -> Iterator[tuple[int, Row]]:
    """Position and row of each run, in the order in which they end; on the cluster at that
    address, or with "auto" on the one that this machine belongs to."""
    try:
        import ray
    except ImportError as error:
        raise StictionError("a cluster needs pip install 'stiction[ray]'") from error
    own = not ray.is_initialized()
    if own:
        try:
            ray.init(address=address, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise StictionError(f"there is no Ray cluster at {address!r}: {error}") from error
    # The retries are for lost workers; `execute` raises nothing.
    task = ray.remote(execute).options(num_cpus=1, max_retries=TRIES - 1)
    waiting = list(enumerate(runs))[::-1]
    handed: dict[object, tuple[int, Run]] = {}
    try:
        while waiting or handed:
            while waiting and len(handed) < TASKS_AHEAD:
                position, run = waiting.pop()
                handed[task.remote(run)] = position, run
            ended, _ = ray.wait(list(handed), num_returns=1)
            position, run = handed.pop(ended[0])
            try:
                row = ray.get(ended[0])
            except ray.exceptions.RayError as error:
                row = crashed(run, f"{type(error).__name__}: {error}".splitlines()[0])
            yield position, row
    finally:
        for left in handed:
            ray.cancel(left, force=True)
        if own:
            ray.shutdown()
