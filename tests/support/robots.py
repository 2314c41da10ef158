"""Robots that pip brings: the models of dm_control and of gymnasium."""

from importlib.util import find_spec
from pathlib import Path

import mujoco
import pytest


def folder(package):
    """Where the package keeps its models; it is not imported, which would take seconds."""
    found = find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"{package} is not installed; its models come with the `dev` extra")
    inside = {"dm_control": "suite", "gymnasium": "envs/mujoco/assets"}[package]
    return Path(found.origin).parent / inside


def robot(package, name):
    return mujoco.MjModel.from_xml_path(str(folder(package) / f"{name}.xml"))
