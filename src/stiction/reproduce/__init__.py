"""The problem families, scenes and experiments of the papers.

    reproduce.NAMES                                   what can be reproduced
    reproduce.run("lloyd-peg", quick=True)            one experiment, as a `Result`
    reproduce.reproduce(["lloyd-peg"], "reproduced")  report and raw numbers, one after another

An experiment is a module with a function `run(quick, progress) -> Result`; its name with hyphens
is that of the module with underscores. It is imported when it is asked for.
"""

from stiction.reproduce.registry import NAMES as NAMES
from stiction.reproduce.registry import reproduce as reproduce
from stiction.reproduce.registry import resolve as resolve
from stiction.reproduce.registry import run as run
from stiction.reproduce.result import Claim as Claim
from stiction.reproduce.result import Result as Result
