"""Contact models by name: `coulomb`, `coulomb:8`, `no-slip`, `viscous:0.1`, `frictionless`, ..."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from typing import cast

from stiction.contact import (
    Baraff,
    ContactModel,
    Coulomb,
    DrumwrightShell,
    Frictionless,
    NoSlip,
    Viscous,
)
from stiction.contact.models.coulomb import Solver
from stiction.errors import InvalidInput

PLAIN: dict[str, type[ContactModel]] = {
    "coulomb": Coulomb,
    "no-slip": NoSlip,
    "frictionless": Frictionless,
    "baraff": Baraff,
    "drumwright-shell": DrumwrightShell,
}
SIMULATED = ("coulomb", "coulomb:8", "no-slip", "viscous:0.1", "frictionless")
"""What a simulation usually takes, as examples of the notation."""


def parse_contact(text: str, *, solver: str = "") -> ContactModel:
    """The contact model of that name; a number after a colon is Coulomb's facets or the viscosity
    [N s/m]. `solver` is Coulomb's."""
    name, colon, number = text.strip().lower().replace("_", "-").partition(":")
    model: ContactModel
    if name == "viscous":
        if not number:
            raise InvalidInput("contact", "viscous needs its coefficient in N s/m: viscous:0.1")
        model = Viscous(_number(text, number))
    elif name not in PLAIN:
        raise InvalidInput("contact", unknown(name, (*PLAIN, "viscous")))
    elif colon and name != "coulomb":
        raise InvalidInput("contact", f"{name} takes no number: {text!r}")
    elif colon:
        facets = _number(text, number)
        if facets != int(facets):
            raise InvalidInput("contact", f"{number!r} is no whole number of facets")
        model = Coulomb(facets=int(facets))
    else:
        model = PLAIN[name]()
    if not solver:
        return model
    if not isinstance(model, Coulomb):
        raise InvalidInput("solver", f"only coulomb has solvers to choose from, not {name}")
    return replace(model, solver=cast(Solver, solver))  # checked by Coulomb itself


def contact_name(model: ContactModel) -> str:
    """The name by which `parse_contact` finds the model; its repr for a user's own."""
    if isinstance(model, Viscous):
        coefficient = model.coefficient
        return "viscous" if coefficient is None else f"viscous:{coefficient:g}"
    if isinstance(model, Coulomb):
        return "coulomb" if model.facets is None else f"coulomb:{model.facets}"
    for name, kind in PLAIN.items():
        if type(model) is kind:
            return name
    return repr(model)


def unknown(word: str, known: Iterable[str]) -> str:
    """`unknown: 'coulom'; did you mean coulomb?`, or the list where nothing is near."""
    names = list(known)
    near = get_close_matches(word, names, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"one of {', '.join(names)}"
    return f"unknown: {word!r}; {hint}"


def _number(text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError as error:
        raise InvalidInput("contact", f"{number!r} in {text!r} is no number") from error
