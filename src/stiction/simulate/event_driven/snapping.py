"""Rows that would be dependent if contacts were where they are within a tolerance.

Four corners of a box on the floor, one of them 1e-7 m higher: its tangents differ from those of the
others by 1e-6, which is enough to make them independent, and then contacts that may not slip
(`NoSlip`) hold the box against tipping as well. So with equality constraints: a rod between two
points of a planar linkage, written with eight decimals, has a row across the plane whose entries
are 1e-8, and as an exact constraint that holds the whole linkage still. Rows that close to the span
of those before them are moved into it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import kernel
from stiction.kernels.linear import project_out

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@kernel
def snap_tangents(mass: Array, joint: Array, tangent: Array, friction: Array, near: float) -> Array:
    """(nc, 2, nv) tangents of contacts with friction, each within `near` of the span of joint rows
    and earlier tangents moved into it; lengths in the metric of the mass' diagonal."""
    nc, nv = tangent.shape[0], tangent.shape[2]
    scale = np.empty(nv)
    for k in range(nv):
        scale[k] = 1.0 / np.sqrt(mass[k, k])
    out = tangent.copy()
    basis = np.empty((nv, nv))
    size = 0
    row = np.empty(nv)
    for i in range(joint.shape[0] + 2 * nc):
        c, t = (i - joint.shape[0]) // 2, (i - joint.shape[0]) % 2
        if i >= joint.shape[0] and not friction[c] > 0.0:
            continue
        length = 0.0
        for k in range(nv):
            row[k] = (joint[i, k] if i < joint.shape[0] else tangent[c, t, k]) * scale[k]
            length += row[k] * row[k]
        project_out(basis, size, row)
        rest = project_out(basis, size, row)
        if rest > near * np.sqrt(length) and size < nv:
            for k in range(nv):
                basis[size, k] = row[k] / rest
            size += 1
        elif i >= joint.shape[0]:
            for k in range(nv):
                out[c, t, k] -= row[k] / scale[k]
    return out


@kernel
def snap_joints(mass: Array, joint: Array, group: Indices, near: float) -> None:
    """Moves rows of equality constraints, joint (ne, nv), into the span of earlier ones where they
    are within `near` of it, in units of the longest row of their group (ne,), which is a
    constraint's translation or its rotation; lengths in the metric of the mass' diagonal."""
    ne, nv = joint.shape
    scale, row = np.empty(nv), np.empty(nv)
    for k in range(nv):
        scale[k] = 1.0 / np.sqrt(mass[k, k])
    longest = np.zeros(ne)
    for i in range(ne):
        length = 0.0
        for k in range(nv):
            length += (joint[i, k] * scale[k]) ** 2
        for j in range(ne):
            if group[j] == group[i]:
                longest[j] = max(longest[j], np.sqrt(length))
    basis = np.empty((nv, nv))
    size = 0
    for i in range(ne):
        for k in range(nv):
            row[k] = joint[i, k] * scale[k]
        project_out(basis, size, row)
        rest = project_out(basis, size, row)
        if rest > near * longest[i] and size < nv:
            for k in range(nv):
                basis[size, k] = row[k] / rest
            size += 1
        else:
            for k in range(nv):
                joint[i, k] -= row[k] / scale[k]
