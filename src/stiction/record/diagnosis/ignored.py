"""What a model says about soft contact that exact contact has no use for."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

from stiction.bridge.names import name_of

_SOLREF = (0.02, 1.0)
_SOLIMP = (0.9, 0.95, 0.001, 0.5, 2.0)
_OVERRIDE = mujoco.mjtEnableBit.mjENBL_OVERRIDE


def ignored_parameters(model: mujoco.MjModel, geoms: set[int]) -> list[tuple[str, str]]:
    """(where, what it is) of every setting without effect, of the options and the geoms given."""
    return [*_options(model), *_of_geoms(model, sorted(geoms))]


def _options(model: mujoco.MjModel) -> Iterator[tuple[str, str]]:
    opt = model.opt
    if opt.impratio != 1.0:
        yield "option", f"impratio {opt.impratio:g}: friction is exact, there is nothing to stiffen"
    if opt.noslip_iterations:
        yield "option", f"noslip_iterations {opt.noslip_iterations}: nothing is left to remove"
    if opt.enableflags & _OVERRIDE:
        yield "option", "o_solref, o_solimp, o_margin: contact is rigid, its margin set by speed"


def _of_geoms(model: mujoco.MjModel, geoms: list[int]) -> Iterator[tuple[str, str]]:
    soft: dict[str, list[str]] = {}
    for geom in geoms:
        solref, solimp = model.geom_solref[geom], model.geom_solimp[geom]
        named = {
            f"solref {_list(solref)}": not np.allclose(solref, _SOLREF),
            f"solimp {_list(solimp)}": not np.allclose(solimp, _SOLIMP),
            f"margin {model.geom_margin[geom]:g}": model.geom_margin[geom] != 0.0,
            f"gap {model.geom_gap[geom]:g}": model.geom_gap[geom] != 0.0,
        }
        for text, is_set in named.items():
            if is_set:
                soft.setdefault(text, []).append(name_of(model, "geom", geom))
    for text, names in soft.items():
        listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        touching = text.startswith(("margin", "gap"))
        why = "bodies touch at distance 0" if touching else "contact is rigid, not a spring"
        yield listed, f"{text}: {why}"


def _list(values: np.ndarray) -> str:
    return '"' + " ".join(f"{value:g}" for value in values) + '"'
