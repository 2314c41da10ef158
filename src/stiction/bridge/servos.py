"""Servos whose damping a clamp takes away, in a time step.

A servo on a joint pushes with g clamp(u), u = a + b v affine in the joint's speed v, b < 0, and its
damping is not felt while u is beyond the clamp, its own or that of the joint. If the joint is
light, a step at full force takes v far past where u comes back: the next one throws it back, and
so on for ever. So, where the answer of a step has a clamped servo on the other side of its clamp,
the servo is released, and the step is solved anew with the servo's law as if it had no clamp,

    M v+ = M v + h g (u + b (v+ - v))

which is implicit, like the damping of servos that are not clamped. If the force at v+ is then
beyond the clamp after all, since something holds the joint, the servo is clamped for this step.
Servos with activations, and what acts on tendons and sites, are as they are.
"""

from __future__ import annotations

from enum import IntEnum

import mujoco
import numpy as np

from stiction.bridge.layout import flags, integer, integers, number, numbers, offset, pointer
from stiction.contact.problem.blocks import Blocks
from stiction.kernels.compile import kernel, leaf

STIFF_SERVO = 1.0
"""Damping of a servo, times the step, over the inertia of what it moves, below which a step does
not take it far past its clamp."""

HELD = 1e-9
"""Share of a clamp by which a released servo may be beyond it."""

_TIMESTEP, _DISABLE = offset("mjModel", "opt", "timestep"), offset("mjModel", "opt", "disableflags")
_TRANSMISSION, _GAIN, _BIAS, _CONTROL, _CONTROLS, _OUTPUT, _OUTPUTS, _STATES, _TARGET = (
    offset("mjModel", f"actuator_{name}")
    for name in (
        "trntype", "gaintype", "biastype", "ctrladr", "ctrlnum", "outadr", "outnum", "actnum",
        "trnid",
    )
)  # fmt: skip
_GAINS, _BIASES, _GEAR, _FORCE_LIMITED, _FORCE_RANGE, _CTRL_LIMITED, _CTRL_RANGE = (
    offset("mjModel", f"actuator_{name}")
    for name in (
        "gainprm", "biasprm", "gear", "forcelimited", "forcerange", "ctrllimited", "ctrlrange",
    )
)  # fmt: skip
_JOINT_TYPE, _DOF, _JOINT_LIMITED, _JOINT_RANGE = (
    offset("mjModel", f"jnt_{name}") for name in ("type", "dofadr", "actfrclimited", "actfrcrange")
)
_CTRL, _QVEL, _LENGTH = (offset("mjData", name) for name in ("ctrl", "qvel", "actuator_length"))
_JOINT, _HINGE, _SLIDE = (
    int(mujoco.mjtTrn.mjTRN_JOINT),
    int(mujoco.mjtJoint.mjJNT_HINGE),
    int(mujoco.mjtJoint.mjJNT_SLIDE),
)
_FIXED, _AFFINE_GAIN = int(mujoco.mjtGain.mjGAIN_FIXED), int(mujoco.mjtGain.mjGAIN_AFFINE)
_NO_BIAS, _AFFINE_BIAS = int(mujoco.mjtBias.mjBIAS_NONE), int(mujoco.mjtBias.mjBIAS_AFFINE)
_UNCLAMPED = int(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL)
_GAIN_SIZE, _BIAS_SIZE = 8 * int(mujoco.mjNGAIN), 8 * int(mujoco.mjNBIAS)


class Release(IntEnum):
    """What is done about a servo in a step."""

    NONE = 0
    RELEASED = 1
    CLAMPED = 2
    """It was released, and something holds its joint."""


def has_servos(model: mujoco.MjModel) -> bool:
    """Whether any actuator may be such a servo."""
    on_joint = model.actuator_trntype == _JOINT
    joint = np.where(on_joint, model.actuator_trnid[:, 0], 0)
    limited = model.actuator_forcelimited != 0
    if model.njnt:
        limited = limited | (model.jnt_actfrclimited[joint] != 0)
    damped = (model.actuator_biasprm[:, 2] != 0.0) | (model.actuator_gainprm[:, 2] != 0.0)
    return bool((on_joint & limited & damped).any())


@leaf
def _entry(address, index):
    return integers(pointer(address) + 4 * index, 1)[0]


@leaf
def _is_affine(m, a):
    """Whether actuator a has one control, no activation, one joint with one degree of freedom, and
    a force that is affine in length and speed."""
    if _entry(m + _TRANSMISSION, a) != _JOINT or _entry(m + _STATES, a) != 0:
        return False
    if _entry(m + _CONTROLS, a) != 1 or _entry(m + _OUTPUTS, a) != 1:
        return False
    gain, bias = _entry(m + _GAIN, a), _entry(m + _BIAS, a)
    if gain not in (_FIXED, _AFFINE_GAIN) or bias not in (_NO_BIAS, _AFFINE_BIAS):
        return False
    return _entry(m + _JOINT_TYPE, _entry(m + _TARGET, 2 * a)) in (_HINGE, _SLIDE)


@kernel
def _law(m, d, a):
    """(degree of freedom or -1, gear, u, du/dv, clamp's ends) of actuator a."""
    none = np.int64(-1), 0.0, 0.0, 0.0, 0.0, 0.0
    if not _is_affine(m, a):
        return none
    joint, output = _entry(m + _TARGET, 2 * a), _entry(m + _OUTPUT, a)
    gear = number(pointer(m + _GEAR) + 48 * output)
    low, high = -np.inf, np.inf
    if flags(pointer(m + _FORCE_LIMITED) + a, 1)[0] != 0:
        ends = numbers(pointer(m + _FORCE_RANGE) + 16 * a, 2)
        low, high = ends[0], ends[1]
    if flags(pointer(m + _JOINT_LIMITED) + joint, 1)[0] != 0 and gear != 0.0:
        ends = numbers(pointer(m + _JOINT_RANGE) + 16 * joint, 2)
        low = max(low, min(ends[0] / gear, ends[1] / gear))
        high = min(high, max(ends[0] / gear, ends[1] / gear))
    if low == -np.inf and high == np.inf:
        return none
    control = _entry(m + _CONTROL, a)
    ctrl = number(pointer(d + _CTRL) + 8 * control)
    limited = flags(pointer(m + _CTRL_LIMITED) + control, 1)[0] != 0
    if limited and integer(m + _DISABLE) & _UNCLAMPED == 0:
        ends = numbers(pointer(m + _CTRL_RANGE) + 16 * control, 2)
        ctrl = min(max(ctrl, ends[0]), ends[1])
    dof = np.int64(_entry(m + _DOF, joint))
    speed = gear * number(pointer(d + _QVEL) + 8 * dof)
    length = number(pointer(d + _LENGTH) + 8 * output)
    gains = numbers(pointer(m + _GAINS) + _GAIN_SIZE * a, 3)
    biases = numbers(pointer(m + _BIASES) + _BIAS_SIZE * a, 3)
    force, slope = gains[0] * ctrl, 0.0
    if _entry(m + _GAIN, a) == _AFFINE_GAIN:
        force += (gains[1] * length + gains[2] * speed) * ctrl
        slope += gains[2] * ctrl
    if _entry(m + _BIAS, a) == _AFFINE_BIAS:
        force += biases[0] + biases[1] * length + biases[2] * speed
        slope += biases[2]
    return dof, gear, force, gear * slope, low, high


@leaf
def _beyond(force, low, high):
    """How far a force is beyond a clamp, with its sign."""
    return max(force - high, 0.0) + min(force - low, 0.0)


@kernel
def release_servos(m, d, b: Blocks, v, released):
    """Whether the step that ends with v (nv,) is to be solved anew: what is done about servos, in
    `released` (nactuator,), has changed."""
    changed = False
    dt = number(m + _TIMESTEP)
    for a in range(released.shape[0]):
        if released[a] == Release.CLAMPED:
            continue
        dof, gear, force, slope, low, high = _law(m, d, a)
        if dof < 0 or gear * slope >= 0.0:
            continue
        over = _beyond(force, low, high)
        if over == 0.0:
            continue
        after = force + slope * (v[dof] - number(pointer(d + _QVEL) + 8 * dof))
        edge = high if over > 0.0 else low
        if released[a] == Release.RELEASED:
            if (after - edge) * over > 0.0 and abs(after - edge) > HELD * abs(edge):
                released[a] = Release.CLAMPED
                changed = True
        elif (after - edge) * over < 0.0 and -dt * gear * slope > STIFF_SERVO * b.mass[
            b.row[dof] + dof
        ]:
            released[a] = Release.RELEASED
            changed = True
    return changed


@kernel
def release_unclamped(m, d, released):
    """Releases the servos that are within their clamps, which changes nothing there: at states
    nearby, beyond them, they go on as they are."""
    for a in range(released.shape[0]):
        if released[a] == Release.NONE:
            dof, gear, force, slope, low, high = _law(m, d, a)
            if dof >= 0 and gear * slope < 0.0 and _beyond(force, low, high) == 0.0:
                released[a] = Release.RELEASED


@kernel
def add_released(m, d, b: Blocks, released):
    """Adds the laws of released servos to the momentum and the mass of a step."""
    dt = number(m + _TIMESTEP)
    for a in range(released.shape[0]):
        if released[a] == Release.RELEASED:
            dof, gear, force, slope, low, high = _law(m, d, a)
            over = _beyond(force, low, high)
            if dof >= 0 and over != 0.0:  # else its damping is in the mass already
                b.push[dof] += dt * gear * over
                b.mass[b.row[dof] + dof] -= dt * gear * slope
