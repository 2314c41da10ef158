import ast
from pathlib import Path

import pytest

import stiction

PACKAGE = Path(stiction.__file__).parent
LAYERS = ["status", "errors", "tolerances", "kernels", "lcp", "contact", "articulated"]
LAYERS += [
    "bridge",
    "terrain",
    "simulate",
    "gradients",
    "record",
    "scenes",
    "sweeps",
    "gym",
    "reproduce",
    "view",
    "cli",
    "__main__",
]
ROOMS = ["problem", "derivatives", "certificate", "solvers", "models", "fclib", "__init__"]
"""Of `contact`, in the same sense."""

FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


def imported_modules(path):
    """Full names of what `path` imports; `from a import b` counts as `a.b`."""
    package = ("stiction", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            stem = [*base, *filter(None, [node.module])]
            yield from (".".join([*stem, alias.name]) for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_file_imports_only_from_what_stands_before_it(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    reachable = ["__version__", *LAYERS[: LAYERS.index(own) + 1]]
    for name in imported_modules(path):
        root, _, rest = name.partition(".")
        assert root != "stiction" or rest.split(".")[0] in reachable, f"{own} imports {name}"


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path.is_relative_to(PACKAGE / "contact")],
    ids=lambda path: path.relative_to(PACKAGE).as_posix(),
)
def test_a_room_of_contact_imports_only_from_those_before_it(path):
    own = path.relative_to(PACKAGE / "contact").parts[0].removesuffix(".py")
    reachable = ROOMS[: ROOMS.index(own) + 1]
    for name in imported_modules(path):
        if name.startswith("stiction.contact."):
            assert name.split(".")[2] in reachable, f"{own} imports {name}"


def test_a_name_that_guards_something_has_one_value():
    """Thresholds and limits of all that computes or draws up reports; enumerations, which are
    assigned several at a time, and sizes of what scenes and pages show are their files' own."""
    values = {}
    for path in FILES:
        if path.relative_to(PACKAGE).parts[0] in ("scenes", "gym", "reproduce", "view"):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign):
                continue
            several = isinstance(node.targets[0], ast.Tuple)
            names = node.targets[0].elts if several else node.targets
            numbers = getattr(node.value, "elts", []) if several else [node.value]
            kinds = float if several else (float, int)
            for name, number in zip(names, numbers, strict=False):
                if isinstance(number, ast.Constant) and isinstance(number.value, kinds):
                    values.setdefault(name.id, {})[number.value] = path.name
    assert len(values) > 100
    assert {name: found for name, found in values.items() if len(found) > 1} == {}
