"""Gymnasium environments that step by stiction.

    env = stiction.gym.wrap(gymnasium.make("Ant-v5"))       # any MujocoEnv
    env = gymnasium.make("stiction/Ant-v5")                 # by name, once this is imported
    env = gymnasium.make("stiction.gym:stiction/Ant-v5")    # or by importing it on the way

Importing this module registers the ids that `ids` lists. Needs the extra `gym`.
"""

try:
    import gymnasium as _gymnasium  # noqa: F401 (to say what is missing before anything else does)
except ImportError as error:
    raise ImportError("stiction.gym needs pip install 'stiction[gym]'") from error

from stiction.gym.dm_control import patch_dm_control
from stiction.gym.registration import ids, register_all
from stiction.gym.wrapping import wrap

register_all()

__all__ = ["ids", "patch_dm_control", "wrap"]


def __dir__() -> list[str]:
    return __all__
