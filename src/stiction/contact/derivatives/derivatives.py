"""`ContactDerivatives`: how velocity and impulses change with the problem they solve.

With the modes of the solution kept (`modes.py`), a change of the problem disturbs two things: the
momentum at the velocity and the impulses that were found, and the speeds of rows at that velocity,

    push  = d(M v + h f) - dM v+ + dN' f_n + dT' f_t + dJ' f_j + dB' f_b
    speed = d(rows) v+ - d(bound or target)

Rows that follow the velocity add -curve speed to the push, along themselves; held rows ask for
-speed. `ModeSystem` answers with dv+ and the held rows' df; the transpose of the same steps takes
gradients back.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiction.contact.derivatives.modes import Answer, Behaviour, read
from stiction.contact.derivatives.system import ModeSystem
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.laws import LAWS, Law
from stiction.contact.problem.problem import ContactProblem
from stiction.errors import InvalidInput, is_number, unknown
from stiction.tolerances import RESIDUAL

DIFFERENTIABLE = {name: law for name, law in LAWS.items() if law is not Law.CONVEX}
"""Laws that derivatives are known for, by name."""

_OWN = ("mass", "velocity", "force", "normal", "tangent", "joint", "joint_target", "box")
_BOTH = ("free_velocity", "friction", "viscosity", "bound")
_BOX = ("box_limit", "box_friction")


class Disturbance(NamedTuple):
    """What changes of a problem do at the velocity and the impulses that solve it; k columns."""

    push: Array  # (nv, k) [N s]
    normal: Array  # (nc, k) speed along normals less bounds
    tangent: Array  # (nc, 2, k)
    joint: Array  # (nj, k) less targets
    box: Array  # (nb, k)
    friction: Array  # (nc, k)
    drag: Array  # (nc, k) h mu_v
    limit: Array  # (nb, k)
    ratio: Array  # (nb, k)


def check_smoothing(smoothing: float) -> float:
    """How much contacts are smoothed, or InvalidInput where that is no such number."""
    if not (is_number(smoothing) and 0.0 <= smoothing < 1.0):
        raise InvalidInput("smoothing", f"is {smoothing!r}: a number from 0 to less than 1")
    return float(smoothing)


class ContactDerivatives:
    """Of a solution with respect to its problem; from `ContactSolution.derivatives`.

    `jvp` takes a change of the problem forward, `vjp` takes a gradient back, `matrix` gives all of
    the velocity's derivatives with respect to one array. Where redundant contacts leave several
    impulses, the velocity's derivatives are unique all the same, and the impulses' are the least.
    """

    problem: ContactProblem
    behaviour: Behaviour

    def __init__(
        self,
        problem: ContactProblem,
        law: str,
        facets: int,
        answer: Answer,
        smoothing: float = 0.0,
    ) -> None:
        smoothing = check_smoothing(smoothing)
        if law not in DIFFERENTIABLE:
            reason = f"the law is {law!r}: derivatives are known for {', '.join(DIFFERENTIABLE)}"
            raise InvalidInput("solution", reason)
        self.problem, self.answer = problem, answer
        arrays, dt = problem.arrays, problem.dt
        boxes = (arrays.box_limit, arrays.box_contact, arrays.box_friction)
        self._speed = speed = problem.contact_velocity(answer.velocity)
        self.behaviour = way = read(
            law, facets, arrays.friction, dt * arrays.viscosity, arrays.bound, boxes, speed,
            answer, problem.scales, smoothing,
        )  # fmt: skip
        self._rows, inertia = _rows(problem)
        self._turned = np.einsum("iab,ibj->iaj", way.turn, self._rows.tangent)
        across = self._turned[way.curve > 0.0]
        inertia = inertia + (across.T * way.curve[way.curve > 0.0]) @ across
        self._inertia = inertia
        follow = self._rows.normal + np.einsum("ia,iaj->ij", way.slope, self._turned)
        parent = np.where(way.box_slope != 0.0, arrays.box_contact, 0)
        for k in np.flatnonzero(way.box_slope):
            follow[parent[k]] += way.box_slope[k] * self._rows.box[k]
        self._parent = parent
        chosen = (way.normal, way.tangent, way.box)
        held = along = _stack(self._rows, self._turned, *chosen)
        if way.slope.any() or way.box_slope.any():
            along = _stack(self._rows._replace(normal=follow), self._turned, *chosen)
        none = np.zeros(problem.nj), np.zeros(way.box.sum())
        soft = np.concatenate([way.soft_normal[way.normal], way.soft_tangent[way.tangent], *none])
        self._system = ModeSystem(inertia, held, along, soft)

    def __repr__(self) -> str:
        return f"ContactDerivatives({self.problem!r}, margin={self.margin:.3g})"

    @property
    def margin(self) -> float:
        """How far the nearest contact or box row is from another mode, over the speeds of the
        problem; the derivatives hold for changes that are small beside it. inf without contacts.

        A contact that just touches, which neither bears nor parts, is at a border: its margin is
        zero. So is a box row at its limit that does not move. Where others hold it in place, so
        that it could as well be left out, it does not count. Zero, too, where friction leaves the
        velocity undetermined: the answer is one of several, and so are its derivatives."""
        if not self._system.is_determined:
            return 0.0
        margin, nc = self.behaviour.margin.copy(), self.problem.nc
        idle = np.flatnonzero(margin < RESIDUAL)
        margin[idle[self._are_held(idle[idle < nc], idle[idle >= nc] - nc)]] = np.inf
        return float(margin.min(initial=np.inf))

    @cached_property
    def idle(self) -> NDArray[np.int64]:
        """Contacts that just touch."""
        return np.flatnonzero(self.behaviour.margin[: self.problem.nc] < RESIDUAL)

    def _are_held(self, contacts: NDArray[np.int64], boxes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these contacts and box rows cannot move for what others hold."""
        if not len(contacts) and not len(boxes):
            return np.zeros(0, np.bool_)
        way, parent = self.behaviour, self.problem.arrays.box_contact
        apart, loose = np.zeros(self.problem.nc, np.bool_), np.zeros(self.problem.nb, np.bool_)
        apart[contacts], loose[boxes] = True, True
        loose[parent >= 0] |= apart[parent[parent >= 0]]
        held = _stack(
            self._rows, self._turned, way.normal & ~apart, way.tangent & ~apart[:, None],
            way.box & ~loose,
        )  # fmt: skip
        idle = np.concatenate([self._rows.normal[contacts], self._rows.box[boxes]])
        return ModeSystem(self._inertia, held, held).spans(idle)

    @property
    def names(self) -> tuple[str, ...]:
        """Arrays of the problem that derivatives can be asked for."""
        if self.problem.delassus is not None:
            return ("delassus", *_BOTH)
        return (*_OWN, *_BOX, *_BOTH)

    def jvp(self, **changes: ArrayLike) -> Answer:
        """Change of velocity and impulses for the given changes of the problem, by name; each has
        the shape of what it changes. A change of `free_velocity` is one of the momentum."""
        given = {}
        for name, change in changes.items():
            shape = self._shape(name)
            value = np.asarray(change, np.float64)
            if value.shape != shape:
                raise InvalidInput(name, f"must have shape {shape}", value.shape)
            given[name] = value
        found = self.solve(self._disturb(given))
        velocity = found.velocity[:, 0]
        if self.problem.delassus is not None:
            velocity = self._whole_rows() @ velocity + self._shift(given)
        return Answer(velocity, *(part[..., 0] for part in found[1:]))

    def vjp(
        self,
        velocity: ArrayLike | None = None,
        normal: ArrayLike | None = None,
        tangent: ArrayLike | None = None,
        joint: ArrayLike | None = None,
        box: ArrayLike | None = None,
    ) -> dict[str, Array]:
        """Gradient with respect to every array of `names`, of a function whose gradient with
        respect to velocity and impulses is given (None: zero)."""
        gradient = Answer(
            *(
                np.zeros(own.shape) if given is None else np.asarray(given, np.float64)
                for own, given in zip(
                    self.answer, (velocity, normal, tangent, joint, box), strict=True
                )
            )
        )
        for name, own, part in zip(Answer._fields, self.answer, gradient, strict=True):
            if own.shape != part.shape:
                raise InvalidInput(name, f"must have shape {own.shape}", part.shape)
        back = self._pull(Answer(*(part[..., None] for part in gradient)))
        return {name: self._gradient(name, back, gradient.velocity[:, None])[..., 0]
                for name in self.names}  # fmt: skip

    def matrix(self, name: str) -> Array:
        """(nv, *shape) derivative of the velocity with respect to the array of that name."""
        self._shape(name)
        nv = self.problem.nv
        gradient = self._gradient(name, self._all, np.eye(nv))
        return np.moveaxis(gradient, -1, 0)

    @cached_property
    def _all(self) -> Disturbance:
        """The gradients of all velocities at once."""
        a = self.answer
        sizes = [(*part.shape, self.problem.nv) for part in a[1:]]
        return self._pull(Answer(np.eye(self.problem.nv), *map(np.zeros, sizes)))

    def _shape(self, name: str) -> tuple[int, ...]:
        if name not in self.names:
            raise InvalidInput("name", unknown(name, self.names))
        if name == "free_velocity":
            return (self.problem.nv,)
        value: Array = getattr(self.problem, name)
        return value.shape

    def _shift(self, given: dict[str, Array]) -> Array:
        """(n,) change of a Delassus problem's speeds at the impulses that were found."""
        p, a = self.problem, self.answer
        moved = np.zeros(p.nv) + given.get("free_velocity", 0.0)
        if "delassus" in given:
            f = np.column_stack([a.normal, a.tangent])[:, : p.dimension].ravel()
            moved = moved + 0.5 * (given["delassus"] + given["delassus"].T) @ f
        return moved

    def _disturb(self, given: dict[str, Array]) -> Disturbance:
        """What the changes do."""
        p, a, dt = self.problem, self.answer, self.problem.dt
        none = {
            "normal": np.zeros(p.nc), "tangent": np.zeros((p.nc, 2)),
            "joint": np.zeros(p.nj), "box": np.zeros(p.nb),
        }  # fmt: skip
        push = np.zeros(len(self._inertia))
        if p.delassus is not None:
            u = p.contact_velocity(self._shift(given))
            none["normal"], none["tangent"] = u.normal, u.tangent
        else:
            if "mass" in given:
                mass = 0.5 * (given["mass"] + given["mass"].T)
                push += mass @ (p.velocity - a.velocity)
            for name in ("velocity", "free_velocity"):
                if name in given:
                    push += p.mass @ given[name]
            if "force" in given:
                push += dt * given["force"]
            for name, impulse in zip(Answer._fields[1:], a[1:], strict=True):
                if name in given:
                    push += np.tensordot(impulse, given[name], impulse.ndim)
                    none[name] = given[name] @ a.velocity
        zero = np.zeros(p.nc), np.zeros(p.nb)
        none["normal"] = none["normal"] - given.get("bound", 0.0)
        none["joint"] = none["joint"] - given.get("joint_target", 0.0)
        parts = (
            push, none["normal"], none["tangent"], none["joint"], none["box"],
            given.get("friction", zero[0]), dt * given.get("viscosity", zero[0]),
            given.get("box_limit", zero[1]), given.get("box_friction", zero[1]),
        )  # fmt: skip
        return Disturbance(*(np.asarray(part)[..., None] for part in parts))

    def solve(self, d: Disturbance) -> Answer:
        """Changes of velocity and impulses, k columns each."""
        way, a = self.behaviour, self.answer
        speed = np.einsum("iab,ibk->iak", way.turn, d.tangent)
        own = np.einsum("iab,ib->ia", way.turn, self._speed.tangent)  # slip along turned tangents
        push_t = -way.curve[..., None] * speed
        push_t += (way.direction * way.load[:, None])[..., None] * d.friction[:, None]
        push_t -= np.where(way.drag[:, None, None], own[..., None] * d.drag[:, None], 0.0)
        normal = a.normal[self._parent] if len(a.normal) else np.zeros(len(a.box))
        tied = way.box_slope != 0.0
        push_b = way.box_sign[:, None] * (d.limit + (tied * normal)[:, None] * d.ratio)
        push = d.push + np.tensordot(self._turned, push_t, ([0, 1], [0, 1]))
        push = push + self._rows.box.T @ push_b
        wanted = -np.concatenate(
            [d.normal[way.normal], speed[way.tangent], d.joint, d.box[way.box]]
        )
        change, impulse = self._system.solve(push, wanted)
        return Answer(change, *self._spread(impulse, push_t, push_b, change))

    def _spread(
        self, impulse: Array, push_t: Array, push_b: Array, change: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Changes of all impulses, from those of held rows."""
        way, k = self.behaviour, change.shape[1]
        normal, along, joint, box = self._split(impulse)
        turned = push_t + way.slope[..., None] * normal[:, None]
        turned -= way.curve[..., None] * (self._turned @ change)
        turned = turned + along
        back = np.einsum("iab,iak->ibk", way.turn, turned)
        follow = normal[self._parent] if len(normal) else np.zeros((len(box), k))
        return normal, back, joint, box + push_b + way.box_slope[:, None] * follow

    def _split(self, held: Array) -> tuple[Array, Array, Array, Array]:
        """Numbers (m, k) of held rows, by kind; zero for others."""
        way, p, k = self.behaviour, self.problem, held.shape[1]
        normal, tangent = np.zeros((p.nc, k)), np.zeros((p.nc, 2, k))
        box = np.zeros((p.nb, k))
        ends = np.cumsum([way.normal.sum(), way.tangent.sum(), p.nj])
        first, second, joint, last = np.split(held, ends)
        normal[way.normal], tangent[way.tangent], box[way.box] = first, second, last
        return normal, tangent, joint, box

    def _pull(self, g: Answer) -> Disturbance:
        """The transpose of `solve`: gradients with respect to a disturbance."""
        way, a = self.behaviour, self.answer
        if self.problem.delassus is not None:
            g = g._replace(velocity=self._whole_rows().T @ g.velocity)
        along = np.einsum("iab,ibk->iak", way.turn, g.tangent)
        normal = g.normal + np.einsum("ia,iak->ik", way.slope, along)
        np.add.at(normal, self._parent[way.box_slope != 0.0],
                  (way.box_slope[:, None] * g.box)[way.box_slope != 0.0])  # fmt: skip
        velocity = g.velocity - np.tensordot(
            self._turned, way.curve[..., None] * along, ([0, 1], [0, 1])
        )
        impulse = np.concatenate([normal[way.normal], along[way.tangent], g.joint, g.box[way.box]])
        push, wanted = self._system.solve_transposed(velocity, impulse)
        push_t = along + self._turned @ push
        push_b = g.box + self._rows.box @ push
        speed_n, speed_t, speed_j, speed_b = self._split(-wanted)
        speed_t = speed_t - way.curve[..., None] * push_t
        own = np.einsum("iab,ib->ia", way.turn, self._speed.tangent)
        loads = self.answer.normal[self._parent] if len(a.normal) else np.zeros(len(a.box))
        return Disturbance(
            push,
            speed_n,
            np.einsum("iab,iak->ibk", way.turn, speed_t),
            speed_j,
            speed_b,
            np.einsum("ia,iak->ik", way.direction * way.load[:, None], push_t),
            -np.einsum("ia,iak->ik", own * way.drag[:, None], push_t),
            way.box_sign[:, None] * push_b,
            (way.box_sign * (way.box_slope != 0.0) * loads)[:, None] * push_b,
        )

    def _gradient(self, name: str, d: Disturbance, velocity: Array) -> Array:
        """(*shape, k) with respect to one array, from that of a disturbance; velocity (nv, k): what
        reaches a Delassus problem's velocity directly."""
        p, a = self.problem, self.answer
        if name in ("friction", "bound", "joint_target", "viscosity", "box_limit", "box_friction"):
            return {
                "friction": d.friction, "bound": -d.normal, "joint_target": -d.joint,
                "viscosity": p.dt * d.drag, "box_limit": d.limit, "box_friction": d.ratio,
            }[name]  # fmt: skip
        if p.delassus is not None:
            k = velocity.shape[1]
            moved = np.concatenate([d.normal[:, None], d.tangent], 1)[:, : p.dimension]
            moved = moved.reshape(p.nv, k) + velocity
            if name == "free_velocity":
                return moved
            f = np.column_stack([a.normal, a.tangent])[:, : p.dimension].ravel()
            outer = np.einsum("ik,j->ijk", moved, f)
            return 0.5 * (outer + outer.swapaxes(0, 1))
        if name in ("velocity", "free_velocity"):
            return p.mass @ d.push
        if name == "force":
            return p.dt * d.push
        if name == "mass":
            outer = np.einsum("ik,j->ijk", d.push, p.velocity - a.velocity)
            return 0.5 * (outer + outer.swapaxes(0, 1))
        impulse, speed = getattr(a, name), getattr(d, name)
        by_push = np.multiply.outer(impulse, d.push)
        by_speed = speed[..., None, :] * a.velocity[:, None]
        return by_push + by_speed

    def _whole_rows(self) -> Array:
        """(n, r) rows of a Delassus problem in its own order."""
        r, n = self._rows, self.problem.dimension
        rows = np.concatenate([r.normal[:, None], r.tangent], 1)[:, :n]
        return rows.reshape(-1, rows.shape[-1])


class _Rows(NamedTuple):
    """Rows over the coordinates of the system."""

    normal: Array
    tangent: Array
    joint: Array
    box: Array


def _rows(problem: ContactProblem) -> tuple[_Rows, Array]:
    """Rows and inertia: the problem's own, or of a Delassus problem the whitened ones."""
    if problem.delassus is None:
        a = problem.arrays
        return _Rows(a.normal, a.tangent, a.joint, a.box), a.mass
    w = problem.whitened
    rows = _Rows(w.rows_normal, w.rows_tangent, w.rows_joint, w.rows_box)
    return rows, np.eye(w.rows_normal.shape[1])


def _stack(
    rows: _Rows, turned: Array, normal: NDArray[np.bool_], tangent: NDArray[np.bool_],
    box: NDArray[np.bool_],
) -> Array:  # fmt: skip
    return np.concatenate([rows.normal[normal], turned[tangent], rows.joint, rows.box[box]])
