"""Inverse kinematics of legs, and where the quadruped has its own.

Angles turn about the axes x (forward) and y (left); at zero a leg hangs straight down.
"""

from math import acos, atan2, cos, sin, sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEGS = {
    "front_left": (1, 1),
    "front_right": (1, -1),
    "hind_left": (-1, 1),
    "hind_right": (-1, -1),
}
"""Which end and which side, as signs of x and y."""

HIP_X, HIP_Y, OFFSET, LINK, FOOT = 0.2, 0.07, 0.07, 0.2, 0.022
"""Place of a hip in the trunk, from there sideways to the leg's plane; link; foot's radius [m]."""

STANCE = 0.28
"""Height of the hips above the centre of a foot when standing [m]."""


def joints_for(foot: Array, side: int) -> tuple[float, float, float]:
    """Angles of a leg [rad] that put the centre of its foot at `foot` (3,) [m].

    `foot` is in the trunk's axes, from the hip; `side` is +1 for a left leg. A point out of
    reach gives the stretched leg toward it.
    """
    x, y, z = (float(value) for value in foot)
    offset = side * OFFSET
    down = sqrt(max(y * y + z * z - offset * offset, 1e-6))  # in the leg's plane
    abduction = atan2(z, y) - atan2(-down, offset)
    hip, knee = two_links(x, down, LINK, -1)
    return atan2(sin(abduction), cos(abduction)), hip, knee


def two_links(x: float, down: float, link: float, bend: int) -> tuple[float, float]:
    """Angles about y [rad] of hip and knee for two equal links to reach (x, -down) [m].

    `bend` is the sign of the knee's angle: +1 for a knee in front, -1 for one behind.
    """
    stretch = (x * x + down * down) / (2 * link * link) - 1.0
    knee = bend * acos(min(max(stretch, -1.0), 0.9999))
    return atan2(-x, down) - atan2(sin(knee), 1.0 + cos(knee)), knee
