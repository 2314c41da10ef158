"""Many runs of one scene: every combination of options and seeds, on this machine or on a cluster.

    table = stiction.sweep("pinch", {"friction": [0.3, 0.5], "force": [5, 10]}, seeds=10, time=5.0)
    table.column("slip")

`sweep` is what is called, `Sweep` what it returns. Reports need plotly, Parquet files the extra
`sweep`, clusters the extra `ray`; each is imported when it is asked for.
"""

from stiction.sweeps.combinations import sweep
from stiction.sweeps.table import Sweep

__all__ = ["Sweep", "sweep"]


def __dir__() -> list[str]:
    return __all__
