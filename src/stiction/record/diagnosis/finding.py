"""`Finding`: one thing that a diagnosis found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What it is, where, the evidence, and what to do."""

    kind: str
    """`condim 1`, `no friction`, `too little friction`, `moving`, `near the cone`, `free to turn`,
    `actuator at its limit`, `soft friction`, `light body`, `sinking`, `overlap at the start`,
    `passes through`, `no contact`, `ignored`, `stopped`, `holds`."""
    where: str
    text: str
    """With the figures that it rests on."""
    advice: str = ""
    cause: bool = True
    """Whether it can be why something slips or moves; False for what is only worth knowing."""
