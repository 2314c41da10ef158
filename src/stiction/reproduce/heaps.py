"""Large contact problems as sparse arrays: granular matter in two dimensions, and towers of planks.

- `Discs`: discs of several sizes in a box, which collapse under their weight, step by step; three
  coordinates each, the velocity of the centre [m/s] and the angular velocity [rad/s].
- `kapla`: a tower of planks, layers across each other, hit by a push; six coordinates each, as in
  `families.py`.

Contacts come with their gaps: `bound = -gap / dt`, so that what is near counts, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.spatial import cKDTree

if TYPE_CHECKING:
    from stiction.contact import ContactModel, ContactProblem, ContactSolution

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

GRAVITY = 9.81  # m/s^2
DENSITY = 1000.0  # kg/m^2 of discs; kg/m^3 of planks would do as well: loads scale with it
RADIUS = 0.01  # m, largest radius of the discs
SPREAD = 0.1  # by which the smallest one is smaller
MARGIN = 0.3 * RADIUS  # m, gap up to which discs are contacts
STIR = 0.1  # m/s, speeds at the start
PLANK = np.array([0.117, 0.0234, 0.0078])  # m, length, width, thickness of a Kapla plank


class Discs:
    """Discs in a box, `columns` times `rows` of them, begun in a loose hexagonal packing."""

    def __init__(
        self, columns: int, rows: int, seed: int = 0, friction: float = 0.4, dt: float = 2e-3
    ) -> None:
        rng = np.random.default_rng(seed)
        count = columns * rows
        self.radius = RADIUS * (1.0 - SPREAD * rng.random(count))
        i, j = np.divmod(np.arange(count), columns)
        self.place = np.column_stack([2 * j + 1 + i % 2, 1.0 + np.sqrt(3.0) * i]) * RADIUS
        self.width = (2 * columns + 1) * RADIUS
        self.velocity: Array = np.zeros((count, 3))
        self.velocity[:, :2] = STIR * rng.normal(size=(count, 2))
        self.velocity = self.velocity.ravel()
        self.friction, self.dt = friction, dt

    def contacts(self) -> tuple[Integers, Integers, Array, Array]:
        """Of each contact the disc, the other one or -1 for a wall, the gap [m] and the normal (2,)
        towards the disc."""
        place, radius = self.place, self.radius
        pairs = cKDTree(place).query_pairs(2.0 * RADIUS + MARGIN, output_type="ndarray")
        first, second = pairs[np.lexsort(pairs.T[::-1])].astype(np.int64).T
        apart = place[first] - place[second]
        distance = np.hypot(*apart.T)
        gap = distance - radius[first] - radius[second]
        near = gap < MARGIN
        found = [(first[near], second[near], gap[near], (apart / distance[:, None])[near])]
        x, y = place.T
        walls = ((y, (0.0, 1.0)), (x, (1.0, 0.0)), (self.width - x, (-1.0, 0.0)))
        for height, normal in walls:
            disc = np.flatnonzero(height - radius < MARGIN)
            none = np.full(len(disc), -1)
            found.append((disc, none, (height - radius)[disc], np.tile(normal, (len(disc), 1))))
        a, b, gaps, normals = (np.concatenate(part) for part in zip(*found, strict=True))
        return a, b, gaps, normals

    def arrays(self) -> dict[str, Any]:
        """The arguments of a `ContactProblem`, its matrices sparse."""
        a, b, gap, normal = self.contacts()
        across = np.column_stack([-normal[:, 1], normal[:, 0]])
        mass = DENSITY * np.pi * self.radius**2
        inertia = np.column_stack([mass, mass, 0.5 * mass * self.radius**2]).ravel()
        force = np.zeros((len(mass), 3))
        force[:, 1] = -GRAVITY * mass
        nc, nv = len(a), len(inertia)
        # A point at -radius normal from the centre moves along `across` by -radius per turn.
        arms = ((a, 1.0, -self.radius[a]), (b, -1.0, -np.where(b < 0, 0.0, self.radius[b])))
        return {
            "mass": csr_array(diags_array(inertia)),
            "velocity": self.velocity,
            "force": force.ravel(),
            "dt": self.dt,
            "normal": _rows([(c, s * normal, 0.0 * arm) for c, s, arm in arms], nc, nv),
            "tangent": _planar([(c, s * across, arm) for c, s, arm in arms], nc, nv),
            "friction": self.friction,
            "bound": -gap / self.dt,
        }

    def problem(self) -> ContactProblem:
        """The step ahead."""
        from stiction.contact import ContactProblem

        return ContactProblem(**self.arrays())

    def step(self, model: ContactModel) -> ContactSolution:
        """Takes a step under the contact model; its solution."""
        solution = model.solve(self.problem())
        self.advance(solution.velocity)
        return solution

    def advance(self, velocity: Array) -> None:
        """Goes on at the velocity (3 discs,) for a step."""
        self.velocity = velocity
        self.place = self.place + self.dt * velocity.reshape(-1, 3)[:, :2]


def _rows(sides: list[tuple[Integers, Array, Array]], nc: int, nv: int) -> Any:
    """(nc, nv) rows with the entries along x and y, and about the centre, of each side."""
    row, column, value = [], [], []
    for body, along, turn in sides:
        moves = np.flatnonzero(body >= 0)
        entries = np.column_stack([along, turn])[moves]
        row.append(np.repeat(moves, 3))
        column.append((3 * body[moves, None] + np.arange(3)).ravel())
        value.append(entries.ravel())
    parts = (np.concatenate(part) for part in (value, row, column))
    values, rows, columns = parts
    return csr_array(coo_array((values, (rows, columns)), shape=(nc, nv)))


def _planar(sides: list[tuple[Integers, Array, Array]], nc: int, nv: int) -> Any:
    """(2 nc, nv) tangents of planar contacts: the second of each is zero."""
    rows = _rows(sides, nc, nv).tocoo()
    return csr_array(coo_array((rows.data, (2 * rows.row, rows.col)), shape=(2 * nc, nv)))


def kapla(layers: int, planks: int = 2, seed: int = 0, stir: float = 0.05) -> dict[str, Any]:
    """The arguments of a `ContactProblem`, its matrices sparse: a tower of `layers` layers, each of
    `planks` parallel planks across those below, four contacts where two cross. The top layer is
    pushed sideways by half its weight; planks move by some `stir` [m/s, rad/s], by the seed."""
    length, width, thickness = PLANK
    weight = DENSITY * PLANK.prod()
    offset = np.linspace(-0.5, 0.5, planks) * (length - width)
    count = layers * planks
    centre = np.zeros((count, 3))
    inertia = np.zeros((count, 6))
    for layer in range(layers):
        own = slice(layer * planks, (layer + 1) * planks)
        long, wide = layer % 2, 1 - layer % 2
        centre[own, wide], centre[own, 2] = offset, (layer + 0.5) * thickness
        size = np.empty(3)
        size[long], size[wide], size[2] = length, width, thickness
        inertia[own, :3] = weight
        inertia[own, 3:] = weight / 12.0 * (size @ size - size**2)
    upper, lower, point = [], [], []
    corner = 0.5 * width * np.array([(-1, -1), (-1, 1), (1, -1), (1, 1)])
    foot = 0.5 * np.array([(-length, -width), (-length, width), (length, -width), (length, width)])
    for body in range(planks):
        for x, y in foot:
            upper.append(body)
            lower.append(-1)
            point.append((x, y + offset[body], 0.0))
    for body in range(planks, count):
        layer = body // planks
        for other in range((layer - 1) * planks, layer * planks):
            across = centre[body, :2] + centre[other, :2]  # each is off the axis one way only
            for x, y in corner + across:
                upper.append(body)
                lower.append(other)
                point.append((x, y, layer * thickness))
    a, b, at = np.array(upper), np.array(lower), np.array(point)
    force = np.zeros((count, 6))
    force[:, 2] = -GRAVITY * weight
    force[-planks:, 0] = 0.5 * GRAVITY * weight
    rng = np.random.default_rng(seed)
    return {
        "mass": csr_array(diags_array(inertia.ravel())),
        "velocity": stir * rng.normal(size=6 * count),
        "force": force.ravel(),
        "dt": 2e-3,
        "normal": _point_rows(a, b, at, centre, np.eye(3)[2:]),
        "tangent": _point_rows(a, b, at, centre, np.eye(3)[:2]),
        "friction": 0.4,
    }


def _point_rows(a: Integers, b: Integers, at: Array, centre: Array, axes: Array) -> Any:
    """(axes nc, 6 bodies) velocity of body a over body b, or the ground (-1), at points `at`, along
    the axes, contact by contact."""
    nc, n = len(a), len(axes)
    row, column, value = [], [], []
    for body, sign in ((a, 1.0), (b, -1.0)):
        moves = np.flatnonzero(body >= 0)
        arm = at[moves] - centre[body[moves]]
        for k, axis in enumerate(axes):
            entries = sign * np.column_stack([np.tile(axis, (len(moves), 1)), np.cross(arm, axis)])
            row.append(np.repeat(n * moves + k, 6))
            column.append((6 * body[moves, None] + np.arange(6)).ravel())
            value.append(entries.ravel())
    values, rows, columns = (np.concatenate(part) for part in (value, row, column))
    shape = (n * nc, 6 * len(centre))
    return csr_array(coo_array((values, (rows, columns)), shape=shape))
