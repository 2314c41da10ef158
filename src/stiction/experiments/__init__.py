"""The problem families, scenes and experiments of the papers.

    experiments.NAMES                                   what can be reproduced
    experiments.run("lloyd-peg", quick=True)            one experiment, as a `Result`
    experiments.reproduce(["lloyd-peg"], "reproduced")  report and raw numbers, one after another

An experiment is a module with a function `run(quick, progress) -> Result`; its name with hyphens
is that of the module with underscores. It is imported when it is asked for.
"""

from stiction.experiments.registry import NAMES as NAMES
from stiction.experiments.registry import reproduce as reproduce
from stiction.experiments.registry import resolve as resolve
from stiction.experiments.registry import run as run
from stiction.experiments.result import Claim as Claim
from stiction.experiments.result import Result as Result
