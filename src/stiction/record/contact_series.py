"""`ContactSeries`: all contacts of a run's samples, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.modes import Mode
from stiction.simulate.report import Contact

Array = NDArray[np.float64]

LOADED = 0.01
"""Share of the largest normal force of a sample from which a contact counts as loaded: what bears
next to nothing slips without a meaning."""


@dataclass(eq=False)
class ContactSeries:
    """All contacts at all samples, one after another: m entries."""

    pairs: list[tuple[str, str]] = field(default_factory=list)
    """Bodies of each pair, in the order in which they first touched."""
    sample: list[int] = field(default_factory=list)
    pair: list[int] = field(default_factory=list)
    normal: list[float] = field(default_factory=list)
    """[N]."""
    tangential: list[float] = field(default_factory=list)
    """[N], its length."""
    margin: list[float] = field(default_factory=list)
    """mu f_n - |f_t| [N]."""
    slip: list[float] = field(default_factory=list)
    """Sliding speed [m/s]."""
    gap: list[float] = field(default_factory=list)
    """[m], before the step."""
    mode: list[int] = field(default_factory=list)
    _known: dict[tuple[str, str], int] = field(default_factory=dict, repr=False)

    def add(self, sample: int, contacts: Sequence[Contact]) -> None:
        """Keeps the contacts of one sample, those at a distance left out."""
        for contact in contacts:
            if contact.mode == Mode.SEPARATE and contact.gap > 0.0:
                continue
            if contact.bodies not in self._known:
                self._known[contact.bodies] = len(self.pairs)
                self.pairs.append(contact.bodies)
            self.sample.append(sample)
            self.pair.append(self._known[contact.bodies])
            self.normal.append(float(contact.force[0]))
            self.tangential.append(float(np.hypot(contact.force[1], contact.force[2])))
            self.margin.append(contact.margin)
            self.slip.append(float(np.hypot(contact.slip[0], contact.slip[1])))
            self.gap.append(contact.gap)
            self.mode.append(int(contact.mode))

    def trim(self, samples: int) -> None:
        """Drops what an interrupt left of later samples."""
        count = sum(sample < samples for sample in self.sample)
        for name in ("sample", "pair", "normal", "tangential", "margin", "slip", "gap", "mode"):
            del getattr(self, name)[count:]

    def column(self, name: str) -> Array:
        """(m,) one of the lists as an array."""
        return np.array(getattr(self, name), float)

    def fastest_slip(self, samples: int) -> Array:
        """(samples,) fastest slip at a loaded contact [m/s], 0 without contacts."""
        out, loaded = np.zeros(samples), self.loaded(samples)
        where = self.column("sample").astype(int)
        np.maximum.at(out, where[loaded], self.column("slip")[loaded])
        return out

    def loaded(self, samples: int) -> NDArray[np.bool_]:
        """(m,) whether each contact is loaded, of so many samples."""
        normal, where = self.column("normal"), self.column("sample").astype(int)
        largest = np.zeros(samples)
        np.maximum.at(largest, where, normal)
        return np.asarray((normal > 0.0) & (normal >= LOADED * largest[where]))
