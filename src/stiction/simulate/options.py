"""What an option may be, told apart by type before it is compared."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from stiction.errors import is_number as is_number


def is_whole(value: Any) -> bool:
    """Whether it is an integer by its type; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_flag(value: Any) -> bool:
    """Whether it is True or False."""
    return isinstance(value, (bool, np.bool_))
