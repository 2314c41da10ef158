"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from stiction.contact.models.registry import forms

Scene = Annotated[
    str,
    tyro.conf.arg(metavar="SCENE", help="a shipped name (`stiction scenes`), an .xml or a .urdf"),
]
Contact = Annotated[
    str,
    tyro.conf.arg(
        metavar="MODEL",
        help=", ".join(f"{form} ({words})" if words else form for form, words in forms().items()),
    ),
]
Time = Annotated[
    float | None,
    tyro.conf.arg(
        metavar="SECONDS", help="length of the run", help_behavior_hint="(default: the scene's own)"
    ),
]
Dt = Annotated[
    float | None,
    tyro.conf.arg(
        metavar="SECONDS", help="time step", help_behavior_hint="(default: the model's own)"
    ),
]
Equality = Annotated[
    Literal["soft", "rigid"],
    tyro.conf.arg(help="equality constraints: as soft as the model says, or exact"),
]
Keyframe = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="NAME",
        help="keyframe to start from, by name or number",
        help_behavior_hint="(default: the scene's own start)",
    ),
]
Settings = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    tyro.conf.arg(
        name="set",
        metavar="OPTION=VALUE",
        help="options of a shipped scene; more than one may follow",
        help_behavior_hint="(default: the scene's own)",
    ),
]
Out = Annotated[
    Path | None,
    tyro.conf.arg(
        metavar="DIR",
        help="where to write",
        help_behavior_hint="(default: stiction-runs/ and the names of scene and contact model)",
    ),
]
Clip = Annotated[bool, tyro.conf.arg(help="draw the scene in the report: a picture, a short clip")]
