"""Models that a visitor sends: an .xml (MJCF), or a .zip of one with its assets.

A model may name files, and MuJoCo would read any that the user can read. So all of them must lie in
the archive: names that lead out of it are refused before MuJoCo sees the model. Sizes are bounded,
of what is sent, of what is packed in it, and of the model that comes out.
"""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

import mujoco

from stiction.errors import InvalidInput

MOST_SENT = 20 * 1024 * 1024
"""Bytes of a file that is sent."""
MOST_UNPACKED = 100 * 1024 * 1024
"""Bytes of all that an archive holds."""
MOST_FILES = 500
MOST_DOFS, MOST_GEOMS = 300, 3000
"""Of a model."""

MODELS, ASSETS = (".xml",), (".stl", ".obj", ".msh", ".png", ".hf", ".bin", ".skn", ".txt", ".md")
"""Endings of files that are taken out of an archive; others are left in it."""

_FOLDERS = ("meshdir", "texturedir", "assetdir")


def unpack(name: str, content: bytes, folder: Path) -> Path:
    """Writes what was sent into the empty folder; returns the model's path.

    Of several models the one called `scene.xml` is taken, else the one that is not included by
    another, nearest to the top.
    """
    if len(content) > MOST_SENT:
        raise InvalidInput(name, f"has {len(content)} bytes; {MOST_SENT} at most")
    if name.lower().endswith(".zip"):
        _extract(name, content, folder)
    elif name.lower().endswith(MODELS):
        (folder / "model.xml").write_bytes(content)
    else:
        raise InvalidInput(name, "is neither an .xml (MJCF) nor a .zip of one with its assets")
    models = sorted(folder.rglob("*.xml"), key=lambda path: (len(path.parts), path.name))
    if not models:
        raise InvalidInput(name, "holds no .xml")
    included = {path for model in models for path in check_model(model, folder)}
    tops = [model for model in models if model.resolve() not in included] or models
    chosen = next((model for model in tops if model.name == "scene.xml"), tops[0])
    check_size(name, chosen)
    return chosen


def _extract(name: str, content: bytes, folder: Path) -> None:
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile as error:
        raise InvalidInput(name, "is no archive, or a damaged one") from error
    with archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        if len(entries) > MOST_FILES:
            raise InvalidInput(name, f"holds {len(entries)} files; {MOST_FILES} at most")
        left = MOST_UNPACKED
        for entry in entries:
            path = PurePosixPath(entry.filename)
            if not _stays_inside(entry.filename):
                raise InvalidInput(name, f"holds {entry.filename!r}, which leads out of it")
            if path.suffix.lower() not in (*MODELS, *ASSETS):
                continue
            with archive.open(entry) as packed:  # what it says of its size need not be true
                unpacked = packed.read(left + 1)
            left -= len(unpacked)
            if left < 0:
                raise InvalidInput(name, f"unpacks to more than {MOST_UNPACKED} bytes")
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(unpacked)


def check_model(path: Path, folder: Path) -> set[Path]:
    """Refuses a model that names a file outside of the folder; returns the models it includes."""
    text = path.read_bytes()
    if re.search(rb"<!\s*(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise InvalidInput(path.name, "has a DOCTYPE, which no MJCF needs")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InvalidInput(path.name, f"is no XML: {error}") from error
    if root.tag not in ("mujoco", "mujocoinclude"):
        raise InvalidInput(path.name, f"is no MJCF: it begins with <{root.tag}>")
    included = set()
    for element in root.iter():
        if element.tag in ("extension", "plugin"):
            raise InvalidInput(path.name, f"has <{element.tag}>: a model that is sent may not")
        for attribute, value in element.attrib.items():
            names_file = attribute.startswith("file") or attribute in _FOLDERS
            if names_file and not _stays_inside(value):
                raise InvalidInput(path.name, f"names {value!r}, which leads out of the archive")
            if element.tag in ("include", "model") and attribute == "file":
                included.add((path.parent / value).resolve())
    return included


def _stays_inside(name: str) -> bool:
    """Whether a name is relative, and never goes up."""
    if "\\" in name or ":" in name or "\0" in name:
        return False
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def check_size(name: str, path: Path) -> None:
    """Refuses a model that MuJoCo refuses, and one that is too large to be shown live."""
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        said = " ".join(str(error).split()).replace(str(path.parent), "")
        raise InvalidInput(name, f"does not compile: {said}") from error
    for what, have, most in (
        ("degrees of freedom", model.nv, MOST_DOFS),
        ("geoms", model.ngeom, MOST_GEOMS),
    ):
        if have > most:
            raise InvalidInput(name, f"has {have} {what}; {most} at most")
