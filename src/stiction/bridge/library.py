"""MuJoCo's C functions, callable from kernels.

What MuJoCo would refuse is checked beforehand (`validation.py`); an error inside it ends the
process, unless the kernel that calls is guarded (`guard.py`).
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding
import mujoco
import numpy as np
from numba import types

from stiction.errors import StictionError
from stiction.kernels.compile import kernel
from stiction.kernels.packing import pointer


@cache
def load() -> ctypes.CDLL:
    """The library that the binding uses, its symbols known to compiled code."""
    folder = Path(mujoco.__file__).parent
    for pattern in ("libmujoco*.so*", "libmujoco*.dylib", "mujoco.dll"):
        for path in sorted(folder.glob(pattern)):
            llvmlite.binding.load_library_permanently(str(path))
            return ctypes.CDLL(str(path))
    raise StictionError(f"no MuJoCo library was found beside {folder.name}/__init__.py")


load()

_two = types.void(types.intp, types.intp)
_three = types.void(types.intp, types.intp, types.intc)

fwd_position: Any = types.ExternalFunction("mj_fwdPosition", _two)
fwd_kinematics: Any = types.ExternalFunction("mj_fwdKinematics", _two)
kinematics: Any = types.ExternalFunction("mj_kinematics", _two)
com_pos: Any = types.ExternalFunction("mj_comPos", _two)
reference_constraint: Any = types.ExternalFunction("mj_referenceConstraint", _two)
com_vel: Any = types.ExternalFunction("mj_comVel", _two)
make_mass: Any = types.ExternalFunction("mj_makeM", _two)
factor_mass: Any = types.ExternalFunction("mj_factorM", _two)
collide: Any = types.ExternalFunction("mj_collision", _two)
make_constraint: Any = types.ExternalFunction("mj_makeConstraint", _two)
transmission: Any = types.ExternalFunction("mj_transmission", _two)
fwd_velocity: Any = types.ExternalFunction("mj_fwdVelocity", _two)
fwd_actuation: Any = types.ExternalFunction("mj_fwdActuation", _two)
fwd_acceleration: Any = types.ExternalFunction("mj_fwdAcceleration", _two)
passive: Any = types.ExternalFunction("mj_passive", _two)
smooth_derivatives: Any = types.ExternalFunction("mjd_smooth_vel", _three)
sensor_pos: Any = types.ExternalFunction("mj_sensorPos", _two)
sensor_vel: Any = types.ExternalFunction("mj_sensorVel", _two)
sensor_acc: Any = types.ExternalFunction("mj_sensorAcc", _two)
energy_pos: Any = types.ExternalFunction("mj_energyPos", _two)
energy_vel: Any = types.ExternalFunction("mj_energyVel", _two)
euler: Any = types.ExternalFunction("mj_Euler", _two)
integrate_pos: Any = types.ExternalFunction(
    "mj_integratePos", types.void(types.intp, types.intp, types.intp, types.double)
)
solve_mass: Any = types.ExternalFunction(
    "mj_solveM", types.void(types.intp, types.intp, types.intp, types.intp, types.intc)
)
rne: Any = types.ExternalFunction(
    "mj_rne", types.void(types.intp, types.intp, types.intc, types.intp)
)
full_mass: Any = types.ExternalFunction("mj_fullM", types.void(types.intp, types.intp, types.intp))
add_contact: Any = types.ExternalFunction(
    "mj_addContact", types.intc(types.intp, types.intp, types.intp)
)
geom_distance: Any = types.ExternalFunction(
    "mj_geomDistance",
    types.double(types.intp, types.intp, types.intc, types.intc, types.double, types.intp),
)

get_state: Any = types.ExternalFunction(
    "mj_getState", types.void(types.intp, types.intp, types.intp, types.intc)
)
set_state: Any = types.ExternalFunction(
    "mj_setState", types.void(types.intp, types.intp, types.intp, types.intc)
)

_CALLBACKS = tuple(
    ctypes.addressof(ctypes.c_void_p.in_dll(load(), name.removeprefix("get_")))
    for name in dir(mujoco)
    if name.startswith("get_mjcb_") and name != "get_mjcb_time"  # the binding's own clock
)
_callbacks = np.array(_CALLBACKS, np.int64)
CALLBACKS = int(_callbacks.ctypes.data)
"""Address of the addresses of MuJoCo's callbacks."""
CONTROLLER = ctypes.addressof(ctypes.c_void_p.in_dll(load(), "mjcb_control"))
"""Address of the address of mjcb_control."""


@kernel
def has_callbacks(addresses):
    """Whether any of MuJoCo's callbacks is set; addresses: `CALLBACKS`."""
    count = 0
    for k in range(len(_CALLBACKS)):
        count += pointer(pointer(addresses + 8 * k)) != 0
    return count > 0
