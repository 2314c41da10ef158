"""`stiction replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from stiction.cli.arguments import Contact


def command(
    problem: Annotated[
        Path,
        tyro.conf.arg(metavar="PROBLEM.npz", help="written by ContactProblem.save or a failed run"),
    ],
    /,
    *,
    contact: Contact = "coulomb",
    solver: Annotated[
        str,
        tyro.conf.arg(
            metavar="NAME",
            help="of coulomb: reduced, structural, standard, search; of viscous: ppm, lemke",
        ),
    ] = "",
) -> int:
    """Solve a saved contact problem again; print the status, the rungs and the certificate."""
    from stiction.cli import DONE, FAILED
    from stiction.cli.progress import patience
    from stiction.contact import ContactProblem, Mode
    from stiction.contact.models.registry import contact_name, parse_contact
    from stiction.errors import InvalidInput

    law = parse_contact(contact, solver=solver)
    if not problem.is_file():
        raise InvalidInput("problem", f"no such file: {problem}")
    loaded = ContactProblem.load(problem)
    with patience("solving"):
        law.solve(loaded)  # not timed: the first solve of a process loads compiled code
        solution = law.solve(ContactProblem.load(problem))
    certificate = solution.certificate
    modes = ", ".join(
        f"{int((solution.modes == mode).sum())} {mode.name.lower()}" for mode in reversed(Mode)
    )
    print(f"{loaded}")
    print(f"  model       {contact_name(law)}{f', {solver}' if solver else ''}")
    print(f"  status      {solution.status}: {solution.status.advice}")
    print(f"  rungs       {', '.join(solution.rungs)}")
    print(f"  pivots      {solution.pivots}")
    print(f"  time        {1e6 * solution.seconds:.0f} us")
    print(f"  contacts    {modes}")
    print(f"{certificate}")
    return DONE if certificate.passed else FAILED
