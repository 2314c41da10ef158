"""Families of contact problems from the literature, as plain arrays, by seed.

- `peg`: peg in a hole (Lloyd 5.4, Figs. 4 to 6), 8 to 256 contacts on one body.
- `single_body`: ten situations of one body (Figs. 7 and 8), 1 to 16 contacts.
- `stack`: blocks on blocks (Figs. 9 and 10), 4 to 32 contacts and more.
- `grasp`: boxes held between two pushers (Drumwright VII-A), 36 contacts for two boxes.

A body has six coordinates, the velocity of its centre of mass [m/s] and its angular
velocity [rad/s], both in world axes. At each contact `normal @ v` is the speed at which
the two sides part [m/s] and `tangent @ v` their sliding velocity [m/s] in two orthonormal
directions. Bodies weigh 1 kg and are some 0.1 m large, loads are such that impulses are
of the order of 1 N s; `scaled` makes other units of them.

Randomness comes from the `numpy.random.Generator` handed in and from nowhere else: the
same seed gives the same bits. Only loads and friction are random, never the geometry:
its symmetry is what makes these problems degenerate, hence hard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stiction.errors import InvalidInput

if TYPE_CHECKING:
    from stiction.contact import ContactProblem

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

DT = 0.01  # s, Drumwright's step
GRAVITY = 9.81  # m/s^2
MASS = 1.0  # kg, every body
HALF = 0.05  # m, half the side of a block; radius of peg and ball
PUSH = 100.0  # N, random loads: impulses of about 1 N s in one step
WORLD = -1  # stands for the fixed side of a contact

STACKS = (
    (1, 4), (2, 8), (2, 12), (3, 12), (3, 16), (3, 20), (4, 16), (4, 28), (5, 20), (5, 32),
)  # fmt: skip
"""Ten stacks as (blocks, contacts), for `stack`."""


@dataclass(frozen=True)
class ContactArrays:
    """The arrays of one contact problem, as `stiction.ContactProblem` takes them."""

    name: str
    mass: Array
    """(nv, nv) inertia [kg, kg m^2]."""
    velocity: Array
    """(nv,) velocity before the step [m/s, rad/s]."""
    force: Array
    """(nv,) applied force and torque [N, N m]."""
    dt: float
    """Length of the step [s]."""
    normal: Array
    """(nc, nv) parting speed per velocity."""
    tangent: Array
    """(nc, 2, nv) sliding velocity per velocity."""
    friction: Array
    """(nc,) coefficient of friction."""
    bound: Array
    """(nc,) least parting speed after the step [m/s]."""

    def problem(self, **changes: Any) -> ContactProblem:
        """The same as a validated `stiction.ContactProblem`; `changes` are arguments of its
        constructor that replace arrays of this, or add to them."""
        from stiction.contact import ContactProblem

        arrays = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name != "name"
        }
        return ContactProblem(**{**arrays, **changes})


def scaled(arrays: ContactArrays, momentum: float = 1.0, mass: float = 1.0) -> ContactArrays:
    """The same problem in other units: its impulses times `momentum`.

    `mass` multiplies the inertia and leaves the momentum as it is, so velocities (and
    bounds) are multiplied by `momentum / mass`.
    """
    speed = momentum / mass
    return replace(
        arrays,
        mass=arrays.mass * mass,
        velocity=arrays.velocity * speed,
        force=arrays.force * momentum,
        bound=arrays.bound * speed,
    )


# --- Lloyd's families ---------------------------------------------------------------


def peg(contacts: int, rng: np.random.Generator) -> ContactArrays:
    """Peg through a hole: half the contacts on the top rim, half on the bottom rim.

    A random wrench acts at the peg's centre. Any even number of contacts, from 2.
    """
    if contacts < 2 or contacts % 2:
        raise InvalidInput("contacts", f"is {contacts}, must be even and at least 2")
    depth = 2 * HALF
    points, normals = _rims(contacts // 2, depth)
    across = MASS * (3 * HALF**2 + (2 * depth) ** 2) / 12  # solid cylinder
    inertia = np.array([across, across, MASS * HALF**2 / 2])
    return _one_body(f"peg {contacts}", points, normals, inertia, _wrench(rng), rng)


def single_body(kind: str, rng: np.random.Generator) -> ContactArrays:
    """One body in one of the situations named in `SINGLE_BODIES`, 1 to 16 contacts.

    The load is a random wrench plus a steady push against the supports: on a plane every
    other random wrench alone would lift the body off.
    """
    if kind not in _SITUATIONS:
        raise InvalidInput("kind", f"unknown: {kind!r}; one of {', '.join(SINGLE_BODIES)}")
    points, normals = _SITUATIONS[kind]()
    wrench = _wrench(rng)
    wrench[:3] -= PUSH * normals.mean(axis=0)
    return _one_body(kind, points, normals, _inertia(kind), wrench, rng)


def stack(blocks: int, contacts: int | None, rng: np.random.Generator) -> ContactArrays:
    """Stack of equal blocks on a floor, with gravity and a random wrench on the top block.

    The lowest block meets the floor in its 4 corners. A block that is aligned with the one
    below meets it in 4 points, one turned by 45 degrees in the 8 corners of the octagon
    that the faces share. `contacts` says how many blocks are turned (from below upwards):
    4 per block and 4 more for each turned one; None means none of them.
    """
    contacts = 4 * blocks if contacts is None else contacts
    turned, rest = divmod(contacts - 4 * blocks, 4)
    if blocks < 1 or rest or not 0 <= turned < blocks:
        raise InvalidInput(
            "contacts",
            f"is {contacts}; {blocks} blocks have 4 each, and 4 more for each that is turned "
            "on the one below",
        )
    centres = np.zeros((blocks, 3))
    centres[:, 2] = HALF + 2 * HALF * np.arange(blocks)
    faces = [_interface(level, turned) for level in range(blocks)]
    upper = np.repeat(np.arange(blocks), [len(face) for face in faces])
    normals = np.tile([0.0, 0.0, 1.0], (contacts, 1))

    force = np.zeros((blocks, 6))
    force[:, 2] = -MASS * GRAVITY
    # Of the order of the stack's weight, so that the load can reach the blocks below.
    force[-1] += _wrench(rng, 2 * MASS * GRAVITY)
    return _assemble(
        name=f"stack {blocks}/{contacts}",
        mass=np.tile(_spatial(_box_inertia()), (blocks, 1)),
        force=force,
        centres=centres,
        points=np.concatenate(faces),
        normals=normals,
        upper=upper,
        lower=upper - 1,  # the lowest block's neighbour is then WORLD
        friction=rng.uniform(0.2, 0.3, contacts),
        dt=DT,
    )


# --- Drumwright's grasp -------------------------------------------------------------


def grasp(
    boxes: int,
    rng: np.random.Generator | None = None,
    *,
    mu: float = 1.0,
    dt: float = DT,
    duplicates: int = 3,
) -> ContactArrays:
    """Boxes in a row, held above the ground between two pushers by friction alone.

    Each pusher slides along the row (one coordinate) and pushes with 100 N per box; the
    boxes are free bodies under gravity, so nv = 6 boxes + 2, the first and the last
    coordinate being the pushers'. Neighbours meet in the 4 corners of a face, and each
    corner is given `duplicates` times: 36 contacts for two boxes.

    The duplicates repeat the face's own normal. Drumwright's simulator (his footnote 3)
    took all three face directions that meet in a corner; the other two would keep the
    boxes from sliding without any friction, which is not the grasp that is meant. The
    number of contacts and their redundancy are the same.

    With `rng`, a random wrench of the order of its weight acts on each box as well.
    """
    if boxes < 1 or duplicates < 1:
        raise InvalidInput("boxes", f"and duplicates are {boxes}, {duplicates}, must be at least 1")
    bodies = boxes + 2
    centres = np.zeros((bodies, 3))
    centres[:, 0] = 2 * HALF * np.arange(bodies)
    face, inward = _face(axis=0, side=-1)
    points = np.concatenate([np.repeat(face + c, duplicates, axis=0) for c in centres[1:]])
    upper = np.repeat(np.arange(1, bodies), 4 * duplicates)

    force = np.zeros((bodies, 6))
    force[1:-1, 2] = -MASS * GRAVITY
    force[0, 0], force[-1, 0] = PUSH * boxes, -PUSH * boxes
    if rng is not None:
        for box in force[1:-1]:
            box += _wrench(rng, MASS * GRAVITY)
    free = _assemble(
        name=f"grasp {boxes}",
        mass=np.tile(_spatial(_box_inertia()), (bodies, 1)),
        force=force,
        centres=centres,
        points=points,
        normals=np.tile(inward[0], (len(points), 1)),
        upper=upper,
        lower=upper - 1,
        friction=np.full(len(points), mu),
        dt=dt,
    )
    return _keep(free, np.r_[0, 6 : 6 * bodies - 5])


def _keep(arrays: ContactArrays, coordinates: Integers) -> ContactArrays:
    """The problem with only these coordinates free, as by joints: a pusher keeps its x."""
    return replace(
        arrays,
        mass=arrays.mass[np.ix_(coordinates, coordinates)],
        velocity=arrays.velocity[coordinates],
        force=arrays.force[coordinates],
        normal=np.ascontiguousarray(arrays.normal[:, coordinates]),
        tangent=np.ascontiguousarray(arrays.tangent[:, :, coordinates]),
    )


# --- Geometry: points (nc, 3) [m] from the body's centre, normals (nc, 3) into the body ---

Geometry = tuple[Array, Array]


def _face(axis: int, side: int) -> Geometry:
    """The 4 corners of a block's face that rests against a wall."""
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    points = np.insert(HALF * corners, axis, side * HALF, axis=1)
    normals = np.zeros((4, 3))
    normals[:, axis] = -side
    return points, normals


def _join(*parts: Geometry) -> Geometry:
    return np.concatenate([p for p, _ in parts]), np.concatenate([n for _, n in parts])


def _rolled(part: Geometry, angle: float) -> Geometry:
    """The geometry turned about the x axis."""
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]])  # applied from the right
    return part[0] @ turn, part[1] @ turn


def _on_floor(points: Array) -> Geometry:
    return points, np.tile([0.0, 0.0, 1.0], (len(points), 1))


def _circle(count: int) -> Array:
    """(count, 3) unit vectors, evenly around z."""
    angle = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angle), np.sin(angle), np.zeros(count)], axis=1)


def _rims(count: int, depth: float) -> Geometry:
    """A peg's contacts: `count` on each of the rims at +-depth."""
    out = np.tile(_circle(count), (2, 1))
    height = np.repeat([depth, -depth], count)
    return HALF * out + height[:, None] * [0.0, 0.0, 1.0], -out


def _ball_in_rim() -> Geometry:
    hole = 0.6  # radius of the hole over that of the ball
    out = hole * _circle(10) - [0.0, 0.0, np.sqrt(1 - hole**2)]
    return HALF * out, -out


def _tetrahedron() -> Geometry:
    return _on_floor(HALF * (_circle(3) - [0.0, 0.0, np.sqrt(2) / 4]))


def _point() -> Geometry:
    """A block that stands on a corner."""
    return _on_floor(np.array([[0.0, 0.0, -np.sqrt(3) * HALF]]))


def _edge() -> Geometry:
    """A block that stands on an edge."""
    return _on_floor(HALF * np.array([[-1.0, 0.0, -np.sqrt(2)], [1.0, 0.0, -np.sqrt(2)]]))


def _ledge() -> Geometry:
    """A block with most of its floor missing, its upper back edge against a wall."""
    floor, up = _face(axis=2, side=-1)
    floor = np.where([True, False, False], np.minimum(floor, -0.2 * HALF), floor)
    wall, out = _face(axis=0, side=-1)
    high = wall[:, 2] > 0
    return _join((floor, up), (wall[high], out[high]))


def _groove() -> Geometry:
    """A block in a V of 90 degrees."""
    return _rolled(_join(_face(axis=1, side=-1), _face(axis=2, side=-1)), np.pi / 4)


_SITUATIONS: dict[str, Callable[[], Geometry]] = {
    "block on point": _point,
    "block on edge": _edge,
    "tetrahedron on plane": _tetrahedron,
    "face on surface": lambda: _face(axis=2, side=-1),
    "box on ledge": _ledge,
    "block in groove": _groove,
    "block between walls": lambda: _join(_face(axis=0, side=-1), _face(axis=0, side=1)),
    "ball in rim": _ball_in_rim,
    "block in corner": lambda: _join(*(_face(axis=axis, side=-1) for axis in range(3))),
    "peg in hole": lambda: _rims(8, 2 * HALF),
}

SINGLE_BODIES = tuple(_SITUATIONS)
"""Ten situations of one body, for `single_body`."""


def _interface(level: int, turned: int) -> Array:
    """(4 or 8, 3) points where the block at `level` rests on what is below it.

    Blocks 1 to `turned` each stand 45 degrees on from the one below.
    """
    height = 2 * HALF * level
    corners = HALF * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    if 0 < level <= turned:
        cut = HALF * (np.sqrt(2) - 1)  # where the faces' edges cross
        x, y = np.array([HALF, cut, -cut, -HALF]), np.array([cut, HALF, HALF, cut])
        points = np.concatenate([np.stack([x, y], axis=1), np.stack([x, -y], axis=1)])
    elif min(level, turned) % 2:  # this block and the one below stand diagonally
        points = corners @ (np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2))
    else:
        points = corners
    return np.column_stack([points, np.full(len(points), height)])


# --- Assembly -----------------------------------------------------------------------


def _box_inertia() -> Array:
    return np.full(3, MASS * (2 * HALF) ** 2 / 6)


def _inertia(kind: str) -> Array:
    """(3,) principal moments [kg m^2]; a situation's body is a block unless named otherwise."""
    if kind == "ball in rim":
        return np.full(3, 0.4 * MASS * HALF**2)
    if kind == "tetrahedron on plane":
        edge = np.sqrt(3) * HALF
        return np.full(3, MASS * edge**2 / 20)
    if kind == "peg in hole":
        across = MASS * (3 * HALF**2 + (4 * HALF) ** 2) / 12
        return np.array([across, across, MASS * HALF**2 / 2])
    return _box_inertia()


def _spatial(inertia: Array) -> Array:
    """(6,) diagonal of a body's inertia."""
    return np.concatenate([np.full(3, MASS), inertia])


def _wrench(rng: np.random.Generator, size: float = PUSH) -> Array:
    """(6,) random force [N] and torque [N m]; the torque as of that force at a block's rim."""
    return size * rng.standard_normal(6) * np.repeat([1.0, HALF], 3)


def _one_body(
    name: str,
    points: Array,
    normals: Array,
    inertia: Array,
    wrench: Array,
    rng: np.random.Generator,
) -> ContactArrays:
    count = len(points)
    return _assemble(
        name=name,
        mass=_spatial(inertia)[None],
        force=wrench[None],
        centres=np.zeros((1, 3)),
        points=points,
        normals=normals,
        upper=np.zeros(count, dtype=np.intp),
        lower=np.full(count, WORLD),
        friction=rng.uniform(0.2, 0.3, count),
        dt=DT,
    )


def _assemble(
    *,
    name: str,
    mass: Array,
    force: Array,
    centres: Array,
    points: Array,
    normals: Array,
    upper: Integers,
    lower: Integers,
    friction: Array,
    dt: float,
) -> ContactArrays:
    """Arrays of bodies at rest: mass (m, 6) diagonal, force (m, 6), centres (m, 3).

    Contact i is at points[i] and pushes body upper[i] along normals[i], body lower[i] the
    other way.
    """
    axes = np.concatenate([normals[:, None], _across(normals)], axis=1)
    rows = _rows(axes, points, centres, upper) - _rows(axes, points, centres, lower)
    return ContactArrays(
        name=name,
        mass=np.diag(mass.ravel()),
        velocity=np.zeros(mass.size),
        force=force.ravel(),
        dt=dt,
        normal=np.ascontiguousarray(rows[:, 0]),
        tangent=np.ascontiguousarray(rows[:, 1:]),
        friction=friction,
        bound=np.zeros(len(points)),
    )


def _across(normals: Array) -> Array:
    """(nc, 2, 3) orthonormal directions across each normal."""
    # The axis to start from must not be near the normal, or rounding spoils the cross product.
    start = np.where(np.abs(normals[:, :1]) < 0.7, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    first = np.cross(normals, start)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    return np.stack([first, np.cross(normals, first)], axis=1)


def _rows(axes: Array, points: Array, centres: Array, bodies: Integers) -> Array:
    """(nc, 3, 6 m) rows that give the velocity along `axes` of the point fixed to its body.

    A contact whose body is WORLD has zero rows.
    """
    rows = np.zeros((len(points), 3, len(centres), 6))
    here = np.flatnonzero(bodies != WORLD)
    body = bodies[here]
    arms = (points[here] - centres[body])[:, None]
    rows[here, :, body] = np.concatenate([axes[here], np.cross(arms, axes[here])], axis=2)
    return rows.reshape(len(points), 3, -1)
