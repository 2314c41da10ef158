"""What mocap bodies lead: bodies that rigid equalities connect or weld to them.

A mocap body has a pose and no velocity. Where it has moved since the last step, the equality is off
by that motion, and what it leads comes after within the step:

    J v+ = -error / h

so that it has the velocity of the mocap body, pushes and drags what it touches at that speed, and
flies on with it when it is let go. That is for motion. A mocap body that is set elsewhere, or moved
once in many steps, would be followed at any speed: so the speed of a row rises by `sudden_rise` in
a step at most, and where the body was set farther off than ELSEWHERE there is none. What is left of
the error is taken back at position level, which gives no speed.

Rows that turn a body are measured by what they move at its rim, the size of what moves away from
its centre (`rim_motion`): a row of MuJoCo's is half of the angle, times the weld's torquescale.
"""

from __future__ import annotations

import mujoco
import numpy as np

from stiction.bridge.layout import entry, numbers, offset, pointer
from stiction.kernels.compile import leaf

_EQ_TYPE, _EQ_OBJECT, _EQ_1, _EQ_2, _EQ_DATA, _SITE_BODY, _WELD, _MOCAP = (
    offset("mjModel", name)
    for name in (
        "eq_type", "eq_objtype", "eq_obj1id", "eq_obj2id", "eq_data", "site_bodyid",
        "body_weldid", "body_mocapid",
    )
)  # fmt: skip
CONNECT, WELD = int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)
SITE = int(mujoco.mjtObj.mjOBJ_SITE)
_GRAVITY = offset("mjModel", "opt", "gravity")
NEQDATA, TORQUE_SCALE = int(mujoco.mjNEQDATA), 10

SUDDEN = 0.5
"""Rise in speed within a step that is motion, over sqrt(gravity * size of what moves): 0.5 m/s at
10 cm. Grippers that start at once do so slower."""

LEAST_GRAVITY = 9.81
"""Gravity that SUDDEN goes by where there is less, or none [m/s^2]."""

ELSEWHERE = 10.0
"""Error beyond which a mocap body was set elsewhere, over what a step takes back whole: half of the
size of what moves."""


@leaf
def joins_bodies(m, equality):
    """Whether an equality connects or welds bodies."""
    kind = entry(m + _EQ_TYPE, equality)
    return kind in (CONNECT, WELD)


@leaf
def end_of(m, equality, second):
    """What a body that an equality joins is fixed to: the first one's, or the second's."""
    body = entry(m + (_EQ_2 if second else _EQ_1), equality)
    if entry(m + _EQ_OBJECT, equality) == SITE:
        body = entry(m + _SITE_BODY, body)
    return entry(m + _WELD, body)


@leaf
def is_led(m, equality):
    """Whether a mocap body leads what an equality joins to it."""
    if not joins_bodies(m, equality):
        return False
    first, second = end_of(m, equality, False), end_of(m, equality, True)
    return entry(m + _MOCAP, first) >= 0 or entry(m + _MOCAP, second) >= 0


@leaf
def moving_size(shallow):
    """Size of what moves [m]; shallow: overlap that a step takes back whole."""
    return 2.0 * ELSEWHERE * shallow


@leaf
def sudden_rise(m, size):
    """Rise in speed within a step that is motion [m/s]."""
    pull = numbers(m + _GRAVITY, 3)
    gravity = np.sqrt(pull[0] * pull[0] + pull[1] * pull[1] + pull[2] * pull[2])
    return SUDDEN * np.sqrt(max(gravity, LEAST_GRAVITY) * size)


@leaf
def rim_motion(m, equality, row, size):
    """Motion of the rim per unit of a row, counted within its equality."""
    scale = numbers(pointer(m + _EQ_DATA) + 8 * (NEQDATA * equality + TORQUE_SCALE), 1)[0]
    return 2.0 * size / abs(scale) if row >= 3 and scale != 0.0 else 1.0


@leaf
def led_speed(error, before, dt, touch, shallow, rim, rise):
    """Speed that a row with that error is asked for; before: its present one, rim: `rim_motion`,
    rise: `sudden_rise`. See the head."""
    if rim * abs(error) <= touch or rim * abs(error) > ELSEWHERE * shallow:
        return 0.0
    asked = -error / dt
    most = rise / rim
    if before * asked > 0.0:
        most += abs(before)
    return max(-most, min(asked, most))
