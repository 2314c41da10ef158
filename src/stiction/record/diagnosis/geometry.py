"""What the model's geometry does before any friction: bodies that start inside each other, and
bodies that overlap without a contact between them."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge.names import body_of, name_of
from stiction.record.diagnosis.finding import Finding
from stiction.record.motion import body_id, body_name
from stiction.record.words import length

NOTABLE_OVERLAP = 1e-4
"""Overlap that is worth a word [m]: at rest under soft contact bodies overlap by less."""

TOLD = 3
"""Pairs that are named beside the deepest."""

_NO_DISTANCE = (
    mujoco.mjtGeom.mjGEOM_HFIELD,
    mujoco.mjtGeom.mjGEOM_SDF,
)
"""Geoms whose distance MuJoCo does not tell."""


def find_overlap(model: mujoco.MjModel, data: mujoco.MjData) -> list[Finding]:
    """Pairs of bodies whose contacts overlap in the state of data, the deepest first, as one
    finding: there may be dozens, and one remedy."""
    deepest: dict[tuple[str, str], tuple[float, str]] = {}
    for contact in range(data.ncon):
        depth = -float(data.contact.dist[contact])
        geoms = [int(geom) for geom in data.contact.geom[contact]]
        if depth < NOTABLE_OVERLAP or min(geoms) < 0:
            continue
        pair = (body_of(model, geoms[0]), body_of(model, geoms[1]))
        if depth > deepest.get(pair, (0.0, ""))[0]:
            names = " and ".join(name_of(model, "geom", geom) for geom in geoms)
            deepest[pair] = (depth, names)
    if not deepest:
        return []
    (pair, (depth, names)), *rest = sorted(deepest.items(), key=lambda item: -item[1][0])
    others = ""
    if rest:
        told = [f"{' and '.join(bodies)} by {length(less)}" for bodies, (less, _) in rest[:TOLD]]
        told += [f"{len(rest) - TOLD} other pairs of bodies"] * (len(rest) > TOLD)
        others = f"; no deeper are {', '.join(told)}"
    return [
        Finding(
            "overlap at the start", " and ".join(pair),
            f"{names} start {length(depth)} inside each other{others}. They are pushed apart "
            "first, without friction.",
            "another start (a keyframe, qpos0), or <exclude> where two are never to touch",
        )
    ]  # fmt: skip


class Passing:
    """Pairs of bodies that cannot touch: of those, which overlap during a run."""

    def __init__(self, model: mujoco.MjModel, watch: tuple[str, ...]) -> None:
        self.model = model
        self.found: dict[tuple[int, int], tuple[float, int, int]] = {}
        """Bodies: overlap [m], and its two geoms."""
        self._explicit = {
            frozenset((int(first), int(second)))
            for first, second in zip(model.pair_geom1, model.pair_geom2, strict=True)
        }
        self._geoms = [np.flatnonzero(model.geom_bodyid == body) for body in range(model.nbody)]
        self._pairs = [
            (body, other)
            for body in (body_id(model, name) for name in watch)
            for other in range(model.nbody)
            if self._apart(body, other) and not self._can_touch(body, other)
        ]

    def look(self, data: mujoco.MjData) -> None:
        """Keeps the deepest overlap of each watched body with others that it cannot touch."""
        for body, other in self._pairs:
            self._measure(data, body, other)

    def _apart(self, body: int, other: int) -> bool:
        """Whether they belong to different trees: links of one robot may overlap."""
        trees = [
            0 if self.model.body_weldid[b] == 0 else int(self.model.body_rootid[b])
            for b in (body, other)
        ]
        return trees[0] != trees[1]

    def _can_touch(self, body: int, other: int) -> bool:
        """Whether any of their geoms make contact with each other."""
        model, mine, theirs = self.model, self._geoms[body], self._geoms[other]
        if any(frozenset((int(g), int(h))) in self._explicit for g in mine for h in theirs):
            return True
        if self.excluded(body, other):
            return False
        meets = (model.geom_contype[mine, None] & model.geom_conaffinity[None, theirs]) | (
            model.geom_contype[None, theirs] & model.geom_conaffinity[mine, None]
        )
        return bool(meets.any())

    def excluded(self, body: int, other: int) -> bool:
        """Whether an <exclude> names the two."""
        first, second = sorted((body, other))
        return (first << 16) + second in self.model.exclude_signature

    def _measure(self, data: mujoco.MjData, body: int, other: int) -> None:
        fromto = np.zeros(6)
        for mine, theirs in self._near(data, self._geoms[body], self._geoms[other]):
            depth = -mujoco.mj_geomDistance(self.model, data, mine, theirs, 0.0, fromto)
            if depth > max(NOTABLE_OVERLAP, self.found.get((body, other), (0.0,))[0]):
                self.found[body, other] = (depth, mine, theirs)

    def _near(
        self, data: mujoco.MjData, mine: NDArray[np.int64], theirs: NDArray[np.int64]
    ) -> list[tuple[int, int]]:
        """Pairs of geoms whose bounding spheres meet; planes meet all but each other."""
        model = self.model
        kinds = model.geom_type
        plane = int(mujoco.mjtGeom.mjGEOM_PLANE)
        mine = mine[~np.isin(kinds[mine], _NO_DISTANCE)]
        theirs = theirs[~np.isin(kinds[theirs], _NO_DISTANCE)]
        apart = data.geom_xpos[mine, None] - data.geom_xpos[None, theirs]
        reach = model.geom_rbound[mine, None] + model.geom_rbound[None, theirs]
        flat = (kinds[mine, None] == plane).astype(int) + (kinds[None, theirs] == plane)
        close = ((np.linalg.norm(apart, axis=2) < reach) & (flat == 0)) | (flat == 1)
        return [(int(mine[i]), int(theirs[k])) for i, k in np.argwhere(close)]

    def findings(self) -> list[Finding]:
        """One for each pair of bodies, the deepest first."""
        return [self._told(*pair) for pair in sorted(self.found, key=lambda p: -self.found[p][0])]

    def _told(self, body: int, other: int) -> Finding:
        depth, mine, theirs = self.found[body, other]
        model = self.model
        if self.excluded(body, other):
            reason, advice = "an <exclude> forbids their contact", "drop the <exclude>"
        else:
            bits = ", ".join(
                f"contype {model.geom_contype[g]} conaffinity {model.geom_conaffinity[g]}"
                for g in (mine, theirs)
            )
            reason = f"no geom of one may touch one of the other ({bits})"
            advice = "contype and conaffinity that share a bit, or an explicit <pair>"
        return Finding(
            "passes through",
            f"{body_name(model, body)} and {body_name(model, other)}",
            f"{name_of(model, 'geom', mine)} was {length(depth)} inside "
            f"{name_of(model, 'geom', theirs)} without a contact: {reason}.",
            advice,
        )
