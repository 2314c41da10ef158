"""What a failed step leaves behind: an exception, the problem in a file, and a way to replay it.

    python examples/failure.py [directory]

The contact model here is wrong on purpose: it claims Coulomb's law and leaves friction out. The
certificate, computed from the problem alone, does not let it pass.
"""

import sys
from pathlib import Path
from tempfile import mkdtemp

import stiction
from stiction import cli, scenes


class Hopeful(stiction.ContactModel):
    """Claims Coulomb's law, solves without friction."""

    law = "coulomb"

    def solve_island(self, problem, start):
        """Impulses of one island of a problem."""
        return stiction.Frictionless().solve_island(problem, start)


def main(directory=None):
    directory = Path(directory or mkdtemp())
    model, data, _ = scenes.load("incline")
    simulator = stiction.Simulator(model, Hopeful(), failures=directory)
    try:
        simulator.step(data)
    except stiction.SolveFailed as failure:
        print(f"SolveFailed: {failure.status}; time is still {data.time} s")
        print(Hopeful().solve(failure.problem).certificate)
    file = next(directory.glob("*.npz"))
    print(f"\nstiction replay {file.name}\n")
    cli.main(["replay", str(file)])


if __name__ == "__main__":
    main(*sys.argv[1:])
