"""What each row of a solved problem does, to first order.

At a solution every row either holds its speed, and its impulse is whatever that takes, or it has
an impulse that follows from the velocity and from the normal impulse of its contact:

    held         row . dv = change of its bound or target
    following    df = slope df_n - curve (row . dv)

    pressed normal, joint     held
    sticking tangents         held
    sliding, circular cone    with t the direction of the slip s: along t, df = -mu df_n; across it
                              the direction turns, curve = mu f_n / |s|
    sliding, polygon          at a corner c, df = mu df_n along c; on an edge, which holds its own
                              direction, mu cos(pi / facets) df_n along the edge's normal
    viscous tangents          curve = h mu_v
    box rows                  held, or at a limit: slope = -+ ratio to the normal impulse
    separating                nothing

Tangents are turned into these directions first (`turn`), so that slopes and curves are numbers of
single rows. At a border of two modes the rows are read as follows: a contact without impulse
separates, and one that is pressed and does not move (by more than an answer may be off) sticks.

Smoothed, contacts change from one mode to the other gradually. With x the normal impulse and y the
parting speed, in the units of the problem's scales, an interior point that is stopped early has
x y = smoothing instead of 0; each contact is moved there, x and y by the same amount,

    x' - y' = x - y,  x' y' = smoothing,      row . dv = -(y' / x') df

so that all normals are held, softly, and a contact ahead pushes a little. For a single contact that
is the central path itself, for several that touch each other what is near it. Friction is that of a
slip of at least sqrt(smoothing), mu x' s / sqrt(s's + smoothing) on the circular cone. Box rows,
joints, friction without end and that of polygons are not smoothed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array, RowVelocity
from stiction.contact.problem.scales import Scales
from stiction.tolerances import RESIDUAL

Flags = NDArray[np.bool_]


class Behaviour(NamedTuple):
    """Of the rows of a problem; nc contacts, nb box rows. Tangents are those of the problem, turned
    by `turn`. Joint rows are all held."""

    normal: Flags  # (nc,) held
    turn: Array  # (nc, 2, 2) rows: directions in the plane of the tangents
    tangent: Flags  # (nc, 2) held
    slope: Array  # (nc, 2) impulse per normal impulse
    curve: Array  # (nc, 2) impulse against speed [N s^2/m]
    direction: (
        Array  # (nc, 2) friction impulse per mu f_n along the turned tangents, where it slides
    )
    drag: Flags  # (nc,) viscous
    load: Array  # (nc,) normal impulse that friction grows with [N s]
    soft_normal: Array  # (nc,) speed that a held row gives way by, per impulse; 0 unless smoothed
    soft_tangent: Array  # (nc, 2)
    box: Flags  # (nb,) held
    box_slope: Array  # (nb,) impulse per normal impulse of its contact
    box_sign: Array  # (nb,) impulse over its limit, where it moves
    margin: Array  # (nc + nb,) how far contacts and box rows are from another mode, scaled


class Answer(NamedTuple):
    """A solution as numbers: shapes as in `ContactSolution`."""

    velocity: Array
    normal: Array
    tangent: Array
    joint: Array
    box: Array


def read(
    law: str,
    facets: int,
    friction: Array,
    drag: Array,
    bound: Array,
    box: tuple[Array, NDArray[np.int64], Array],
    speed: RowVelocity,
    answer: Answer,
    scales: Scales,
    smoothing: float,
) -> Behaviour:
    """The behaviour of all rows at an answer.

    drag (nc,): h mu_v; box: limit, contact and ratio of each row; speed: along all rows.
    """
    nc = len(friction)
    soft, soft_tangent = np.zeros(nc), np.zeros((nc, 2))
    blur = np.sqrt(smoothing) * scales.contact
    press = over(answer.normal * scales.inverse_normal, scales.contact)
    part = over(speed.normal - bound, scales.contact)
    pressed = (answer.normal > 0.0) & (press >= part)
    margin = np.abs(press - part)
    load = answer.normal
    if smoothing > 0.0:
        root = np.sqrt(0.25 * (press - part) ** 2 + smoothing)
        high, low = root + 0.5 * (press - part), root - 0.5 * (press - part)
        # The smaller of the two by the product: their difference would lose digits.
        high, low = (
            np.where(press > part, high, smoothing / low),
            np.where(press > part, smoothing / high, low),
        )
        soft = low / high * scales.inverse_normal
        load = over(high * scales.contact, scales.inverse_normal)
        pressed = scales.inverse_normal > 0.0
    turn = np.tile(np.eye(2), (nc, 1, 1))
    held = np.zeros((nc, 2), np.bool_)
    slope, curve, direction = np.zeros((nc, 2)), np.zeros((nc, 2)), np.zeros((nc, 2))
    viscous = np.zeros(nc, np.bool_)
    if law == "viscous":
        viscous = bound >= 0.0
        curve[viscous] = drag[viscous, None]
    elif law == "no-slip":
        held[(friction > 0.0) & (bound >= 0.0)] = True
    elif law == "coulomb":
        rough = pressed & (friction > 0.0)
        room = _cone_room(facets, friction, answer)
        room = over(room * scales.inverse_tangent, scales.contact)
        slip = np.hypot(*speed.tangent.T)
        slips = over(slip, scales.contact)
        slides = rough & (slips > np.maximum(RESIDUAL, room))  # see the head of `held_rows.py`
        sticks = rough & ~slides
        if smoothing > 0.0 and facets:
            sticks, slides = sticks & (answer.normal > 0.0), slides & (answer.normal > 0.0)
        elif smoothing > 0.0:  # what separates has a little friction, too
            bears, finite = answer.normal > 0.0, friction < np.inf
            sticks &= bears & ((slips <= RESIDUAL) | ~finite)
            slides = rough & ~sticks & finite
            blurred = sticks & finite
            soft_tangent[blurred] = over(blur[blurred], (friction * load)[blurred])[:, None]
        held[sticks] = True
        margin = np.where(rough, np.minimum(margin, np.abs(slips - room)), margin)
        for i in np.flatnonzero(slides):
            if facets:
                turn[i], direction[i], held[i, 1] = _polygon(answer.tangent[i], facets)
            else:
                size = max(np.hypot(slip[i], blur[i]), np.finfo(float).tiny)
                t = speed.tangent[i] / max(slip[i], np.finfo(float).tiny)
                turn[i] = [t, [-t[1], t[0]]] if slip[i] > 0.0 else np.eye(2)
                direction[i, 0] = -slip[i] / size
                curve[i] = friction[i] * load[i] / size
                curve[i, 0] *= (blur[i] / size) ** 2
            slope[i] = friction[i] * direction[i]
    return Behaviour(
        pressed,
        turn,
        held,
        slope,
        curve,
        direction,
        viscous,
        load,
        soft,
        soft_tangent,
        *_read_boxes(law, box, speed.box, answer, pressed, scales, margin),
    )


def _read_boxes(
    law: str,
    box: tuple[Array, NDArray[np.int64], Array],
    speed: Array,
    answer: Answer,
    pressed: Flags,
    scales: Scales,
    margin: Array,
) -> tuple[Flags, Array, Array, Array]:
    limit, contact, ratio = box
    tied = (contact >= 0) & (ratio > 0.0) & (law == "coulomb")
    parent = np.where(tied, contact, 0)
    normal = answer.normal[parent] if len(answer.normal) else np.zeros(len(limit))
    most = limit + np.where(tied, ratio * np.maximum(normal, 0.0), 0.0)
    room = np.full(len(limit), np.inf)
    finite = most < np.inf
    spare = (most - np.abs(answer.box)) * scales.inverse_box
    room[finite] = np.maximum(over(spare[finite], scales.box[finite]), 0.0)
    moves = over(np.abs(speed), scales.box)
    held = (most > 0.0) & ~((moves > RESIDUAL) & (moves > room))
    sign = np.where(held | (most == 0.0), 0.0, -np.sign(speed))
    along = pressed[parent] if len(pressed) else np.zeros(len(limit), np.bool_)
    slope = np.where(tied & along, sign * ratio, 0.0)
    near = np.where(most > 0.0, np.abs(moves - room), np.inf)
    return held, slope, sign, np.concatenate([margin, near])


def over(size: Array, scale: Array) -> Array:
    """size / scale, nothing over nothing being nothing."""
    return np.divide(size, scale, out=np.zeros_like(size), where=scale > 0.0)


def _cone_room(facets: int, friction: Array, answer: Answer) -> Array:
    """(nc,) impulse by which friction stays below its limit [N s]."""
    x, y = answer.tangent.T
    size = np.hypot(x, y)
    if facets:
        sector = 2.0 * np.pi / facets
        size = size * np.cos(np.arctan2(y, x) % sector - 0.5 * sector) / np.cos(0.5 * sector)
    limit = np.full(len(size), np.inf)
    finite = friction < np.inf
    limit[finite] = friction[finite] * answer.normal[finite]
    return np.maximum(limit - size, 0.0)


def _polygon(tangent: Array, facets: int) -> tuple[Array, Array, bool]:
    """(turn, direction, whether an edge holds its own direction) of a contact that slides with that
    tangential impulse."""
    sector = 2.0 * np.pi / facets
    angle = float(np.arctan2(tangent[1], tangent[0]))
    corner = round(angle / sector) * sector
    on_edge = abs(angle - corner) > 1e-6 * sector
    if on_edge:
        corner = (np.floor(angle / sector) + 0.5) * sector
    c, s = np.cos(corner), np.sin(corner)
    out = np.cos(0.5 * sector) if on_edge else 1.0
    return np.array([[c, s], [-s, c]]), np.array([out, 0.0]), on_edge
