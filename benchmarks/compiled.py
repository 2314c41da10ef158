"""All that steps may need, compiled before any of them is timed."""

from __future__ import annotations

import mujoco

import stiction
from stiction.kernels.stage import prepare_late


def compile_all():
    """Compiles what a simulator needs, and what only some of its steps do: else the first step that
    needs such a stage has its compilation in its time. A simulator brings in the stages."""
    stiction.Simulator(mujoco.MjModel.from_xml_string("<mujoco/>"))
    prepare_late()
