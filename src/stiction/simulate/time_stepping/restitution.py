"""Restitution as users give it, and the speed from which contacts have it."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.errors import InvalidInput, real_numbers

Array = NDArray[np.float64]

FALL = 2.0
"""Steps of free fall whose speed is not bounced off: what rests is pressed by one of them."""

LEAST_BOUNCE = 0.01
"""The least speed that is bounced off where nothing falls, over the size of what moves [1/s]: 1 mm
per second at 10 cm."""


def check_restitution(model: mujoco.MjModel, value: Any) -> Array:
    """(ngeom,) e of each geom; InvalidInput where it is no coefficient of restitution."""
    given = real_numbers("restitution", value).astype(np.float64)
    if given.shape not in ((), (model.ngeom,)):
        reason = f"must be one number, or {model.ngeom}, one for each geom"
        raise InvalidInput("restitution", reason, given.shape)
    bad = np.flatnonzero(~((given >= 0.0) & (given <= 1.0)))
    if len(bad):
        reason = f"is {given.flat[bad[0]]}: a ratio of speeds between 0 and 1"
        raise InvalidInput("restitution", reason, index=int(bad[0]) if given.ndim else None)
    return np.broadcast_to(given, model.ngeom).copy()


def bounce_speed(opt: mujoco.MjOption, size: float) -> float:
    """Closing speed above which contacts bounce [m/s]; size: of what moves [m]."""
    falls = 0.0
    if not opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY:
        falls = FALL * opt.timestep * float(np.linalg.norm(opt.gravity))
    return max(LEAST_BOUNCE * size, falls)
