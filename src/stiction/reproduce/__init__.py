"""The problem families, scenes and experiments of the papers.

    reproduce.NAMES                                   what can be reproduced
    reproduce.run("lloyd-peg", quick=True)            one experiment, as a `Result`
    reproduce.reproduce(["lloyd-peg"], "reproduced")  report and raw numbers, one after another

An experiment is a module with a function `run(quick, progress) -> Result`; its name with hyphens
is that of the module with underscores. It is imported when it is asked for.
"""

from stiction.reproduce.registry import NAMES, reproduce, resolve, run
from stiction.reproduce.result import Claim, Result

__all__ = [
    "NAMES",
    "Claim",
    "Result",
    "reproduce",
    "resolve",
    "run",
]


def __dir__() -> list[str]:
    return __all__
