"""Contact models by name: `coulomb`, `coulomb:8`, `no-slip`, `viscous:0.1`, `frictionless`, ...

What the command line, the page and the documentation offer is read here. A model is added by one
line in `BUILT_IN`; from outside by `register`, or by an entry point of a package, which the
`stiction` command finds by itself:

    [project.entry-points."stiction.contact_models"]
    sticky = "my_package.sticky:Sticky"

Models are imported when first asked for: the names alone need no compiled code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeVar, cast

from stiction.errors import InvalidInput, unknown

if TYPE_CHECKING:
    from stiction.contact.models.model import ContactModel

    M = TypeVar("M", bound=type[ContactModel])

GROUP = "stiction.contact_models"
"""Of entry points."""


@dataclass(frozen=True)
class Entry:
    """A contact model that can be named."""

    name: str
    place: str | type[ContactModel]
    """The class, or where it is: "module:Class"."""
    forms: Mapping[str, str]
    """How the model is written, each with a few words on it; what a user is offered."""

    def load(self) -> type[ContactModel]:
        """The class."""
        if not isinstance(self.place, str):
            return self.place
        module, _, name = self.place.partition(":")
        return cast("type[ContactModel]", getattr(import_module(module), name))


_HERE = "stiction.contact.models"

BUILT_IN = (
    Entry(
        "coulomb",
        f"{_HERE}.coulomb:Coulomb",
        {"coulomb": "exact cone", "coulomb:8": "facets"},
    ),
    Entry("no-slip", f"{_HERE}.no_slip:NoSlip", {"no-slip": "touching contacts hold"}),
    Entry("viscous", f"{_HERE}.viscous:Viscous", {"viscous:0.1": "N s/m"}),
    Entry("frictionless", f"{_HERE}.frictionless:Frictionless", {"frictionless": "normals only"}),
    Entry("baraff", f"{_HERE}.baraff:Baraff", {"baraff": "static and dynamic friction"}),
    Entry(
        "drumwright-shell",
        f"{_HERE}.drumwright_shell:DrumwrightShell",
        {"drumwright-shell": "least kinetic energy"},
    ),
)

_registered: dict[str, Entry] = {}


def register(model: M, forms: Mapping[str, str] | None = None) -> M:
    """Makes a contact model known by its `name`; also as a decorator.

    forms: how it is written, each with a few words on it; by default its name alone.
    """
    if not (isinstance(model, type) and isinstance(getattr(model, "name", None), str)):
        raise InvalidInput("model", f"is {model!r}: a class of contact models")
    name = model.name
    if not name or name != _plain(name):
        reason = f"{name!r} of {model.__name__} is no name: lower case, hyphens, no colon"
        raise InvalidInput("name", reason)
    if name in entries():
        raise InvalidInput("name", f"{name!r} is taken by {entries()[name].load().__name__}")
    _registered[name] = Entry(name, model, dict(forms or {name: ""}))
    return model


def entries() -> dict[str, Entry]:
    """All contact models that can be named, by name."""
    return {entry.name: entry for entry in BUILT_IN} | _installed() | _registered


@cache
def _installed() -> dict[str, Entry]:
    """Those of other packages."""
    found = entry_points(group=GROUP)
    return {point.name: Entry(point.name, point.value, {point.name: ""}) for point in found}


def forms() -> dict[str, str]:
    """How contact models are written, each with a few words on it."""
    return {form: words for entry in entries().values() for form, words in entry.forms.items()}


def parse_contact(text: str, *, solver: str = "") -> ContactModel:
    """The contact model of that name; a number after a colon is Coulomb's facets or the viscosity
    [N s/m]. `solver` is one of those that the model has."""
    if not (isinstance(text, str) and isinstance(solver, str)):
        name, given = ("solver", solver) if isinstance(text, str) else ("contact", text)
        raise InvalidInput(name, f"is {given!r}: a name")
    word, colon, number = text.strip().partition(":")
    name = _plain(word)
    known = entries()
    if name not in known:
        raise InvalidInput("contact", unknown(name, known))
    model = known[name].load().from_number(_number(text, number) if colon else None)
    return model.with_solver(solver) if solver else model


def contact_name(model: ContactModel) -> str:
    """The name by which `parse_contact` finds the model; its repr for one that has none."""
    if not hasattr(model, "notation"):
        raise InvalidInput("model", f"is {model!r}: a contact model such as Coulomb()")
    return model.notation


def _plain(name: str) -> str:
    return name.partition(":")[0].lower().replace("_", "-")


def _number(text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError as error:
        raise InvalidInput("contact", f"{number!r} in {text!r} is no number") from error
