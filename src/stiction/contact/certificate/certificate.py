"""`certify`: does an answer obey the laws? Computed from the problem's arrays and nothing else.

Each entry is the largest violation over all rows, once in SI units and once scaled. With the
velocity scale s of a row and its inverse inertia W (`scales.py`; W_n along the normal, W_t for
friction), impulses are measured in s / W and velocities in s:

    x = f_n W_n / s,   y = (N v+ - b) / s,   z = f_t W_t / s,   t = T v+ / s

    entry            SI                                           scaled
    dynamics         |M (v+ - v) - h f - N'f_n - T'f_t            over M_jj sigma_j
                      - J'f_j - B'f_b|  [N s]
    penetration      max(0, b - N v+)  [m/s]                      max(0, -y)
    adhesion         max(0, -f_n)  [N s]                          max(0, -x)
    complementarity  |f_n (N v+ - b)|  [J]                        max(0, min(x, y))
    cone             max(0, |f_t| - mu f_n)  [N s]                times W_t / (s max(1, mu))
    friction         dissipation, slip or drag: by the law        by the law
    joint            |J v+ - c|  [m/s]                            over s
    box limit        max(0, |f_b| - limit)  [N s]                 times W / s
    box friction     |limit |B v+| + f_b B v+|  [J]               |x - clip(x - y, -limit, limit)|

The scaled forms are distances: how far, in these units, is the nearest pair of impulse and
velocity that obeys the law? A product like f_n (N v+ - b) is not one: it is small wherever
either factor is, and says 1e-8 where both are 1e-4 of their scales.

The tangential laws:

`coulomb`       dissipation |mu f_n |T v+| + f_t . T v+| [J], zero where friction opposes slip
                with all its strength. Scaled: |z - P(z - t)|, P the projection on the disc of
                radius mu f_n W_t / s; it grows with slip inside the cone, with friction that
                falls short while sliding, and with its deviation from the direction of slip. Or,
                if less, the same with z's own radius together with the error of f_n that
                would explain that radius. With facets = d the disc is the polygon with corners
                at the angles 2 pi j / d from tangent 1, |T v+| its support function and |f_t| its
                gauge. mu = inf is the limit of large mu: no slip where f_n > 0; where f_n = 0
                and N v+ = b an impulse against the slip (the limit of sliding, f_n = |f_t| / mu);
                none where the contact opens. dissipation is then (f_n + |f_t|) |T v+| + f_t . T v+.
`frictionless`  f_t = 0, reported as cone.
`no-slip`       T v+ = 0 where touching (b >= 0), any f_t: slip |T v+| [m/s], scaled |t|;
                f_t = 0 at contacts ahead (b < 0) and at those with mu = 0.
`viscous`       f_t = -h mu_v T v+ where touching: drag |f_t + h mu_v T v+| [N s], scaled by
                s / W_t + h mu_v s; f_t = 0 at contacts ahead. mu is not looked at.
`convex`        cone only, neither complementarity nor dissipation: what any impact law that
                minimizes energy over the cone (Drumwright and Shell's) still has to obey.

In `coulomb`, `no-slip` and `convex` a contact with mu = 0 is frictionless.

`limit` of a box row is its box_limit; under `coulomb`, box_limit + box_friction max(0, f_n) of its
contact, where it has one. Torsional and rolling friction belong to that law alone: under the
others |f_b| <= box_limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from stiction.contact.certificate.grading import grade_dense, grade_problem, grade_residual
from stiction.contact.certificate.laws import Entry, Law, Table
from stiction.contact.problem.blocks import ROWS
from stiction.contact.problem.dense_blocks import from_contact_space
from stiction.contact.problem.laws import LAWS
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.problem.validation import impulse
from stiction.errors import InvalidInput, is_count, is_one_of
from stiction.tolerances import RESIDUAL

LawName = Literal["coulomb", "frictionless", "no-slip", "viscous", "convex"]

_ROWS = {
    Entry.DYNAMICS: ("dynamics", "N s", "dof"),
    Entry.PENETRATION: ("penetration", "m/s", "contact"),
    Entry.ADHESION: ("adhesion", "N s", "contact"),
    Entry.COMPLEMENTARITY: ("complementarity", "J", "contact"),
    Entry.CONE: ("cone", "N s", "contact"),
    Entry.FRICTION: ("dissipation", "J", "contact"),
    Entry.JOINT: ("joint", "m/s", "joint"),
    Entry.BOX_LIMIT: ("box limit", "N s", "box row"),
    Entry.BOX_FRICTION: ("box friction", "J", "box row"),
}
_FRICTION = {Law.NO_SLIP: ("slip", "m/s", "contact"), Law.VISCOUS: ("drag", "N s", "contact")}


@dataclass(frozen=True, slots=True)
class Certificate:
    """How far an answer is from each law; see the module's head for every formula.

    The attributes named after laws are in SI units, `scaled` holds the same without units.
    """

    law: Law
    value: tuple[float, ...]
    """Largest violation of each `Entry`, SI."""
    scaled: tuple[float, ...]
    """Largest violation of each `Entry` over the problem's own scale."""
    where: tuple[int, ...]
    """Row of the largest scaled violation of each `Entry`, or -1 where there is none."""
    worst: float
    """Largest scaled violation; inf where the answer holds NaN or, from rest, moves."""

    @property
    def passed(self) -> bool:
        """Whether no scaled violation exceeds 1e-8."""
        return self.worst <= RESIDUAL

    @property
    def worst_entry(self) -> Entry:
        """The law that is violated most."""
        return Entry(int(np.argmax(self.scaled)))

    @property
    def dynamics(self) -> float:
        """Momentum not accounted for by the impulses [N s]."""
        return self.value[Entry.DYNAMICS]

    @property
    def penetration(self) -> float:
        """Speed into the other body beyond the bound [m/s]."""
        return self.value[Entry.PENETRATION]

    @property
    def adhesion(self) -> float:
        """Pulling normal impulse [N s]."""
        return self.value[Entry.ADHESION]

    @property
    def complementarity(self) -> float:
        """Normal impulse at a contact that opens, times its speed [J]."""
        return self.value[Entry.COMPLEMENTARITY]

    @property
    def cone(self) -> float:
        """Tangential impulse beyond what the normal one allows [N s]."""
        return self.value[Entry.CONE]

    @property
    def friction(self) -> float:
        """Dissipation missed [J]; of `no-slip` slip [m/s], of `viscous` drag [N s]."""
        return self.value[Entry.FRICTION]

    @property
    def joint(self) -> float:
        """Speed at which a joint opens [m/s]."""
        return self.value[Entry.JOINT]

    @property
    def box_limit(self) -> float:
        """Impulse of a box row, dry joint friction say, beyond its limit [N s]."""
        return self.value[Entry.BOX_LIMIT]

    @property
    def box_friction(self) -> float:
        """Dissipation missed by box rows [J]."""
        return self.value[Entry.BOX_FRICTION]

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        lines = [f"{_name(self.law)} certificate {verdict}: worst {self.worst:.1e}"]
        for entry, row in _ROWS.items():
            label, unit, what = _FRICTION.get(self.law, row) if entry == Entry.FRICTION else row
            at = "" if self.where[entry] < 0 else f"  at {what} {self.where[entry]}"
            value = f"{self.value[entry]:8.1e} {unit:<4}"
            lines.append(f"  {label:<16}{value} scaled {self.scaled[entry]:8.1e}{at}")
        return "\n".join(lines)


def certify(
    problem: ContactProblem,
    velocity: ArrayLike,
    normal: ArrayLike,
    tangent: ArrayLike | None = None,
    joint: ArrayLike | None = None,
    box: ArrayLike | None = None,
    *,
    law: LawName = "coulomb",
    facets: int | None = None,
) -> Certificate:
    """The certificate of an answer: velocity v+ (nv,) and the impulses that lead to it.

    normal (nc,), tangent (nc, 2), joint (nj,), box (nb,) [N s]; None means zeros. `facets` is
    the number of corners of the friction polygon, None the circular cone. Of a Delassus
    problem `velocity` is u (dimension nc,).
    """
    if not isinstance(problem, ContactProblem):
        raise InvalidInput("problem", f"is {problem!r}: a ContactProblem")
    if not is_one_of(law, LAWS):
        raise InvalidInput("law", f"is {law!r}: known are {', '.join(LAWS)}")
    if facets is not None and not is_count(facets, 2):
        raise InvalidInput("facets", f"is {facets!r}: a polygon needs 3 or more, a line 2")
    code, corners = int(LAWS[law]), 0 if facets is None else int(facets)
    v = impulse("velocity", velocity, (problem.nv,))
    f_n = impulse("normal", normal, (problem.nc,))
    f_t = impulse("tangent", tangent, (problem.nc, 2))
    f_j = impulse("joint", joint, (problem.nj,))
    f_b = impulse("box", box, (problem.nb,))
    arrays, scales, dt = problem.arrays, problem.scales, problem.dt
    if problem.sparse is not None:
        order = problem.sparse.nodes.order
        by_place = scales._replace(own=scales.own[order], sigma=scales.sigma[order])
        table = grade_dense(
            code, corners, problem.blocks, by_place, problem.kernel_delassus, v[order], f_n, f_t,
            f_j, f_b,
        )  # fmt: skip
        if table.where[Entry.DYNAMICS] >= 0:
            table.where[Entry.DYNAMICS] = order[table.where[Entry.DYNAMICS]]
    elif problem.is_sparse:
        f = np.zeros((problem.nc, ROWS))
        f[:, 0], f[:, 1:3] = f_n, f_t
        residual = v - problem.velocity - problem.delassus @ f[:, : problem.dimension].ravel()
        b = from_contact_space(arrays, dt, problem.dimension)
        table = grade_residual(code, corners, b, scales, v, f, residual)
    else:
        table = grade_problem(
            code, corners, dt, arrays, scales, problem.kernel_delassus, v, f_n, f_t, f_j, f_b
        )
    return from_table(LAWS[law], table)


def from_table(law: Law, table: Table) -> Certificate:
    """The certificate that a kernel filled in."""
    scaled = tuple(table.scaled.tolist())
    return Certificate(
        law, tuple(table.value.tolist()), scaled, tuple(table.where.tolist()), max(scaled)
    )


def _name(law: Law) -> str:
    return law.name.lower().replace("_", "-")
