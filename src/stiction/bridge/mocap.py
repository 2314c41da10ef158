"""What mocap bodies lead: bodies that rigid equalities connect or weld to them.

A mocap body has a pose and no velocity. Where it has moved since the last step, the equality is off
by that motion, and what it leads comes after within the step:

    J v+ = -error / h

so that it has the velocity of the mocap body, pushes and drags what it touches at that speed, and
flies on with it when it is let go. That is for motion. A mocap body that is set elsewhere, or moved
once in many steps, would be followed at any speed: so the speed of a row rises by SUDDEN in a step
at most, and where the body was set farther off than ELSEWHERE there is none. What is left of the
error is taken back at position level, which gives no speed.
"""

from __future__ import annotations

import mujoco

from stiction.bridge.layout import integers, offset, pointer
from stiction.kernels.compile import leaf

_EQ_TYPE, _EQ_OBJECT, _EQ_1, _EQ_2, _SITE_BODY, _WELD, _MOCAP = (
    offset("mjModel", name)
    for name in (
        "eq_type", "eq_objtype", "eq_obj1id", "eq_obj2id", "site_bodyid", "body_weldid",
        "body_mocapid",
    )
)  # fmt: skip
CONNECT, WELD = int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)
SITE = int(mujoco.mjtObj.mjOBJ_SITE)

SUDDEN = 0.5
"""Rise in speed within a step that is motion, along a row of the equality [m/s; of turning, rad/s
and half as much]. Grippers that start at once do so slower."""

ELSEWHERE = 10.0
"""Error beyond which a mocap body was set elsewhere, over what a step takes back whole: half of the
size of what moves."""


@leaf
def entry(address, index):
    """Integer of that index in the array whose address is there."""
    return integers(pointer(address) + 4 * index, 1)[0]


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
def led_speed(error, before, dt, touch, shallow):
    """Speed that a row with that error is asked for; before: its present one. See the head."""
    if abs(error) <= touch or abs(error) > ELSEWHERE * shallow:
        return 0.0
    asked = -error / dt
    most = SUDDEN
    if before * asked > 0.0:
        most += abs(before)
    return max(-most, min(asked, most))
