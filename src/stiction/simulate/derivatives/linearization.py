"""The law of contact of a step, and its correction of overlap, to first order.

A step has two problems in a row: velocities, by the law of contact, and the overlap's correction w,
without friction, whose bounds are what the gaps leave after v+:

    N w >= -gap / h - N v+

Both are differentiated at the modes that they were solved with. Where a pressed contact touches
within what counts as no gap, the side of the overlap is taken: positions are put back onto the
surface, and the velocity does not change with the gap. Errors of rigid equalities are put back too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stiction.bridge.rows import Place
from stiction.contact.derivatives.derivatives import ContactDerivatives, Disturbance
from stiction.contact.derivatives.modes import Answer, over
from stiction.contact.derivatives.system import ModeSystem
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.block_problem import (
    box_rows,
    dense_mass,
    first_rows,
    rows_by_block,
    to_problem,
)
from stiction.contact.problem.blocks import Blocks, Datum, Head, Kind
from stiction.simulate.derivatives.differences import Columns
from stiction.simulate.derivatives.reading import ALIKE
from stiction.tolerances import RESIDUAL

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Solved:
    """A step's problem with its answer; n blocks."""

    blocks: Blocks
    key: Indices  # (n, Key)
    place: Array  # (n, Place)
    impulse: Array  # (n, ROWS)
    velocity: Array  # (nv,) v+
    correction: Array  # (nv,) w
    pushed: Array  # (n, 3) impulses of the correction
    gripped: Indices  # (n,) 1 where it grips, since the paths of the step bend
    drag: Array  # (n,) of the tangents that it grips
    bends: Array  # (n, 3, nv) what these part by, as speeds along the rows, by v+
    island: Indices  # (n,)
    released: Indices  # (nactuator,) servos that go by their law at states nearby, clamped or not
    law: str
    facets: int
    dt: float
    alike: Array  # (n,) difference of gaps of one pair that does not count [m]
    touch: float
    near: float
    slack: float
    shallow: float

    @property
    def count(self) -> int:
        """Blocks."""
        return len(self.key)

    @property
    def gap(self) -> Array:
        """(n,) distances before the step [m, rad]."""
        return self.place[:, Place.GAP]

    @property
    def opened(self) -> NDArray[np.bool_]:
        """(n,) what presses across a gap that the paths of the step have left."""
        return (self.place[:, Place.BENT] == 1.0) & (self.impulse[:, 0] > 0.0)

    @property
    def kind(self) -> Indices:
        """(n,) `Kind` of each."""
        return self.blocks.head[: self.count, Head.KIND]


class StepLinearization:
    """Changes of v+ and w for changes of the step's problem."""

    def __init__(self, step: Solved, smoothing: float = 0.0) -> None:
        self.step = step
        b, n = step.blocks, step.count
        problem = to_problem(b, n, step.dt)
        self._contacts = np.flatnonzero(step.kind == Kind.CONTACT)
        self._joints = np.flatnonzero(step.kind == Kind.HOLD)
        self._soft = np.flatnonzero(step.kind == Kind.SOFT)
        pairs = box_rows(b.head[:n])
        self._box = np.array(pairs, np.int64).reshape(-1, 2)
        f = step.impulse
        self._belts = problem.nv - len(step.velocity)  # the degree of freedom of moving surfaces
        answer = Answer(
            np.append(step.velocity, np.ones(self._belts)),
            f[self._contacts, 0],
            f[self._contacts, 1:3],
            np.append(f[self._joints, 0], np.zeros(self._belts)),
            f[self._box[:, 0], self._box[:, 1]],
        )
        self.law = ContactDerivatives(problem, step.law, step.facets, answer, smoothing)
        self._rows = first_rows(b, n)
        self._across = rows_by_block(b, n)
        self._source = self._bounded_by()
        self._correct()

    def _bounded_by(self) -> Indices:
        """(n,) the block whose gap a contact's bound is, or -1 where it is none: contacts of one
        pair that are all but equally far have the nearest one's (`bridge.rows.merge_gaps`)."""
        step, bound = self.step, self.step.blocks.data[: self.step.count, Datum.BOUND]
        out = np.where(bound < 0.0, np.arange(step.count), -1)
        own = -step.gap / step.dt
        for i in np.flatnonzero((out >= 0) & (own < bound * (1.0 + ALIKE))):
            same = (step.key[:, :2] == step.key[i, :2]).all(axis=1)
            out[i] = int(np.argmin(np.where(same, np.abs(own - bound[i]), np.inf)))
        out[step.kind != Kind.CONTACT] = -1
        return out

    def _correct(self) -> None:
        """The system of the correction: which rows it holds, their share of the gap, and how far
        contacts are from being held or not. Without overlap, it holds what would be held with a
        little of it."""
        step = self.step
        self._share = np.ones(step.count)
        self._deepest = np.full(step.count, -1)
        self._apart = np.full(len(self._contacts), np.inf)
        held, pressed = np.zeros(step.count, np.bool_), np.zeros(step.count, np.bool_)
        bears = step.impulse[self._contacts, 0] > 0.0
        pressed[self._contacts] = self.law.behaviour.normal & bears
        if np.isfinite(step.slack):
            speed = self._rows @ (step.velocity + step.correction)
            for island in np.unique(step.island[step.island >= 0]):
                self._correct_island(np.flatnonzero(step.island == island), pressed, speed, held)
        self._held = np.flatnonzero(held)
        self._system = None
        if len(self._held):
            rows, across = self._rows[self._held], self._gripped(self._across)
            drag = self._gripped(np.repeat(step.drag[:, None], 3, axis=1))
            mass = dense_mass(step.blocks, step.count) + (across.T * drag) @ across
            self._system = ModeSystem(mass, rows, rows)

    def _correct_island(
        self, members: Indices, pressed: NDArray[np.bool_], speed: Array, held: NDArray[np.bool_]
    ) -> None:
        """Marks in held (n,) what the correction holds of an island. pressed (n,): contacts that
        are; speed (n,): along first rows, at v+ and the correction."""
        step, gripped, opened = self.step, self.step.gripped == 1, self.step.opened
        contacts = members[step.kind[members] == Kind.CONTACT]
        joints = members[step.kind[members] == Kind.HOLD]
        unled = joints[step.place[joints, Place.LED] == 0.0]
        depth = np.concatenate([-step.gap[contacts], np.abs(step.gap[unled]), [0.0]])
        deep = float(depth.max())
        ahead = contacts[opened[contacts]]
        off = max(deep, step.gap[ahead].max(initial=0.0)) > step.slack
        held[joints] = True
        if not (off or gripped[members].any()):
            touches = (pressed[contacts] & (step.gap[contacts] <= step.touch)).any()
            held[contacts] = pressed[contacts] & touches
            return
        if deep > step.shallow:
            overlapping = np.concatenate([contacts[step.gap[contacts] <= 0.0], unled])
            self._share[overlapping] = step.shallow / deep
            self._deepest[overlapping] = np.concatenate([contacts, unled])[np.argmax(depth[:-1])]
        apart = (step.gap > step.near) & (step.place[:, Place.BENT] == 0.0)
        self._share[gripped & apart] = 0.0
        wanted = -self._share[contacts] * step.gap[contacts] / step.dt
        fastest = np.abs(speed[contacts]).max(initial=0.0)
        tight = np.abs(speed[contacts] - wanted) <= RESIDUAL * fastest
        held[contacts] = (step.pushed[contacts, 0] > 0.0) | (pressed[contacts] & tight)
        held[contacts] |= opened[contacts] | gripped[contacts]
        # What lands with the step, and is held by nothing else, does so after it as well.
        lands = pressed & (step.gap > step.touch) & (step.pushed[:, 0] == 0.0) & held
        stays = lands | opened | gripped
        at = np.searchsorted(self._contacts, contacts)
        scales = self.law.problem.scales
        presses = step.pushed[contacts, 0] * scales.inverse_normal[at]
        parts = over(np.abs(presses - (speed[contacts] - wanted)), scales.contact[at])
        self._apart[at] = np.where(stays[contacts], np.inf, parts)

    def _gripped(self, values: Array) -> Array:
        """Of values (n, 3, ...) of rows, those of tangents that the correction grips."""
        across = values[self.step.gripped == 1, 1:3]
        return across.reshape(-1, *values.shape[2:])

    @property
    def margin(self) -> float:
        """The least of the law's, of the correction's and of the gaps', over the speeds of the
        step."""
        parts = (self._correction_margin(), self._gap_margin(), self._order_margin())
        return min(self.law.margin, *parts)

    def _correction_margin(self) -> float:
        """How far the nearest contact is from being held by the correction, or from not being so;
        those that others hold in place as well do not count."""
        idle = np.flatnonzero(self._apart < RESIDUAL)
        if not len(idle):
            return float(self._apart.min(initial=np.inf))
        apart = self._apart.copy()
        others = self._rows[np.setdiff1d(self._held, self._contacts[idle])]
        apart[idle[self._span(others, idle)]] = np.inf
        return float(apart.min(initial=np.inf))

    def _gap_margin(self) -> float:
        """How far contacts are from the border of overlap. On one side overlap is corrected, and
        the velocity does not follow the gap; on the other it does, if it closes in the step. What
        bears nothing has no such border, unless friction alone keeps it in place: the correction
        knows no friction."""
        step, law = self.step, self.law
        touching = step.gap[self._contacts] <= step.touch
        bears = law.behaviour.normal & (step.impulse[self._contacts, 0] > 0.0)
        bears[law.idle] = False
        idle = law.idle[touching[law.idle]]
        if np.isfinite(step.slack) and len(idle):
            others = touching & bears
            bears[idle] = ~self._span(self._rows[self._contacts[others]], idle)
        depth = np.abs(step.gap[self._contacts[bears]])
        depth[depth <= step.touch] = 0.0
        depth = over(depth / step.dt, law.problem.scales.contact[bears])
        return float(depth.min(initial=np.inf))

    def _order_margin(self) -> float:
        """How far contacts of one pair are from another order. Those that land together all have
        the nearest one's gap (`_bounded_by`): another may be that, or one more land with it."""
        step, rows = self.step, self._rows
        source = self._source[self._contacts[self.law.behaviour.normal]]
        nearest = np.inf
        for i in np.unique(source[source >= 0]):
            pair = np.flatnonzero((step.key[:, :2] == step.key[i, :2]).all(axis=1))
            # Those with the same row move alike, and so stay in order.
            turn = np.abs(rows[pair] - rows[i]).max(axis=1) > ALIKE * np.abs(rows[i]).max()
            apart = np.abs(step.gap[pair[turn]] - step.gap[i])
            apart = np.concatenate([apart, np.abs(apart - step.alike[i])]) / step.dt
            scale = self.law.problem.scales.contact[np.searchsorted(self._contacts, i)]
            if scale > 0.0:
                nearest = min(nearest, float(apart.min(initial=np.inf) / scale))
        return nearest

    def _span(self, rows: Array, contacts: Indices) -> NDArray[np.bool_]:
        """Which of these contacts' rows depend on the given ones."""
        kept = ModeSystem(dense_mass(self.step.blocks, self.step.count), rows, rows)
        return kept.spans(self._rows[self._contacts[contacts]])

    def solve(self, c: Columns) -> tuple[Array, Array]:
        """(dv+ (nv, k), dw (nv, k)) for k lines of changes."""
        step = self.step
        data = c.data.transpose(1, 2, 0)
        speed = c.speed.transpose(1, 2, 0)
        gap = c.gap.T
        push = c.push.T.copy()
        soft = self._soft
        if len(soft):
            off = (self._rows[soft] @ step.velocity) - step.blocks.data[soft, Datum.BOUND]
            drag = step.blocks.data[soft, Datum.DRAG]
            force = -data[soft, Datum.DRAG] * off[:, None]
            force -= drag[:, None] * (speed[soft, 0] - data[soft, Datum.BOUND])
            push += self._rows[soft].T @ force
        bound = np.where((self._source >= 0)[:, None], -gap[self._source] / step.dt, 0.0)
        i, r = self._box[:, 0], self._box[:, 1]
        slip = speed[:, :4].copy()
        slip[:, 1:] += data[:, Datum.SURFACE : Datum.SURFACE_SPIN + 1]
        none = np.zeros((self._belts, push.shape[1]))
        found = self.law.solve(
            Disturbance(
                np.concatenate([push, none]),
                (speed[:, 0] - bound)[self._contacts],
                slip[self._contacts, 1:3],
                np.concatenate([(speed[:, 0] - data[:, Datum.BOUND])[self._joints], none]),
                np.where((r == 3)[:, None], slip[i, 3], speed[i, r]),
                data[self._contacts, Datum.SLIDE],
                data[self._contacts, Datum.DRAG],
                np.where((r == 0)[:, None], data[i, Datum.LIMIT], 0.0),
                np.where((r == 3)[:, None], data[i, Datum.SPIN], data[i, Datum.ROLL]),
            )
        )
        velocity = found.velocity[: len(step.velocity)]
        return velocity, self._solve_correction(c, gap, speed[:, 0], velocity)

    def _solve_correction(self, c: Columns, gap: Array, speed: Array, velocity: Array) -> Array:
        step, held = self.step, self._held
        if self._system is None:
            return np.zeros_like(velocity)
        asked = self._share[held, None] * gap[held]
        for row, i in enumerate(held):
            deepest = self._deepest[i]
            if deepest >= 0:
                asked[row] -= self._share[i] * step.gap[i] / step.gap[deepest] * gap[deepest]
        speed_w = c.speed_w.transpose(1, 2, 0)
        asked = -asked / step.dt - speed[held] - self._rows[held] @ velocity - speed_w[held, 0]
        asked -= step.bends[held, 0] @ velocity
        slip = self._gripped(speed_w) + self._gripped(step.bends) @ velocity
        drag = self._gripped(np.repeat(step.drag[:, None], 3, axis=1))
        push = c.push_w.T - self._gripped(self._across).T @ (drag[:, None] * slip)
        return self._system.solve(push, asked)[0]
