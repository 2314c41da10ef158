"""What the panel has for robots: sliders of the actuators, positions of the joints."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import mujoco
import numpy as np
import viser

from stiction.view.live import Live

MOST_SLIDERS = 32
"""Actuators that have one."""

MOST_JOINTS = 60
"""Joints that are listed."""

_SINGLE = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)


class Robot:
    """Sliders of the first actuators, where no controller moves them; and a list of joints."""

    def __init__(
        self,
        gui: viser.GuiApi,
        live: Live,
        control: Callable[[Any, Callable[[Any], None], Callable[[], Any]], None],
    ) -> None:
        self._live = live
        self._sliders: list[Any] = []
        self._joints: Any = None
        model = live.ours.model
        if model.nu and live.ours.controller is None:
            with gui.add_folder("Actuators", expand_by_default=model.nu <= 8):
                for actuator in range(min(model.nu, MOST_SLIDERS)):
                    self._add_slider(gui, actuator, control)
        single = np.flatnonzero(np.isin(model.jnt_type, _SINGLE)).tolist()
        self._listed = single[:MOST_JOINTS]
        if self._listed:
            with gui.add_folder("Joints", expand_by_default=False):
                self._joints = gui.add_html("")

    def _add_slider(self, gui: viser.GuiApi, actuator: int, control: Any) -> None:
        live, model = self._live, self._live.ours.model
        value = float(live.ours.data.ctrl[actuator])
        low, high = range_of(model, actuator, value)
        slider = gui.add_slider(
            model.actuator(actuator).name or f"actuator {actuator}",
            min=low,
            max=high,
            step=(high - low) / 500.0,
            initial_value=min(max(value, low), high),
        )

        def put(value: Any) -> None:
            live.set_control(actuator, float(value))

        control(slider, put, lambda: float(live.ours.data.ctrl[actuator]))
        self._sliders.append(slider)

    def refresh(self) -> None:
        """Brings sliders and joints up to date: a reset sets controls too."""
        data, model = self._live.ours.data, self._live.ours.model
        for actuator, slider in enumerate(self._sliders):
            value = min(max(float(data.ctrl[actuator]), slider.min), slider.max)
            if abs(slider.value - value) > slider.step:
                slider.value = value
        if self._joints is not None:
            self._joints.content = joint_table(model, data, self._listed)


def range_of(model: mujoco.MjModel, actuator: int, value: float) -> tuple[float, float]:
    """Of a slider: the ctrlrange; a servo's joint's range; or one around zero and the value."""
    joint = int(model.actuator_trnid[actuator, 0])
    on_joint = model.actuator_trntype[actuator] == mujoco.mjtTrn.mjTRN_JOINT
    servo = on_joint and model.actuator_biasprm[actuator, 1] != 0.0
    ends = []
    if model.actuator_ctrllimited[actuator]:
        ends.append(model.actuator_ctrlrange[actuator])
    if servo and model.jnt_limited[joint]:
        ends.append(model.jnt_range[joint])
    for low, high in ends:
        if high > low:
            return float(low), float(high)
    reach = 4.0 * abs(value) or 1.0
    return -reach, reach


def joint_table(model: mujoco.MjModel, data: mujoco.MjData, joints: list[int]) -> str:
    """Names, positions, and what is left to the limits."""
    rows = []
    for joint in joints:
        value = float(data.qpos[model.jnt_qposadr[joint]])
        turns = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE
        shown = f"{np.degrees(value):.1f} deg" if turns else f"{1e3 * value:.1f} mm"
        low, high = model.jnt_range[joint]
        at_end = model.jnt_limited[joint] and not low < value < high
        name = model.joint(joint).name or f"joint {joint}"
        rows.append(
            f"<tr><td>{escape(name)}</td><td style='text-align:right'>{shown}</td>"
            f"<td>{'at its limit' if at_end else ''}</td></tr>"
        )
    style = "font-size:0.8em;width:100%;padding:0 1em"
    return f"<table style='{style}'>{''.join(rows)}</table>"
