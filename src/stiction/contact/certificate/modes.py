"""What a contact does during a step, as it is read off an answer: one rule for all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array, Arrays
from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind, row_velocities
from stiction.contact.problem.dense_blocks import blocks_of, from_contact_space
from stiction.contact.problem.modes import Mode, choose_mode
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.problem.scales import block_speed
from stiction.contact.problem.validation import impulse
from stiction.kernels.compile import kernel, lean

STILL = 1e-9
"""Slip relative to the problem's own speeds below which a pressed contact sticks."""


@lean
def read_modes(b: Blocks, count, u, f, own, mode):
    """mode (count,) := `Mode` of each block, of those that are no contacts STICK where they act.
    own (nv,): the problem's speeds, see `Scales`. They are not the spread ones, since those are not
    there where an answer passed without them."""
    for i in range(count):
        if b.head[i, Head.KIND] != Kind.CONTACT:
            mode[i] = np.int64(Mode.SEPARATE if f[i, 0] == 0.0 else Mode.STICK)
            continue
        still = STILL * block_speed(b, i, own) if f[i, 0] > 0.0 else 0.0
        friction = b.data[i, Datum.SLIDE] if b.head[i, Head.ROWS] > 2 else 0.0
        mode[i] = choose_mode(f[i, 0], friction, u[i, 1], u[i, 2], still)


@kernel
def read_dense_modes(b: Blocks, own, v, normal) -> NDArray[np.int8]:
    """(nc,) `Mode` of the contacts of a problem whose blocks come from dense arrays."""
    nc = normal.shape[0]
    u, f = np.empty((nc, ROWS)), np.empty((nc, ROWS))
    f[:, 0] = normal
    row_velocities(b, nc, v, u)
    modes = np.empty(nc, np.int8)
    read_modes(b, nc, u, f, own, modes)
    return modes


@kernel
def _read_problem_modes(arrays: Arrays, dt, own, delassus, v, normal) -> NDArray[np.int8]:
    """The same from the arrays: one call for Python."""
    return read_dense_modes(blocks_of(arrays, dt, delassus), own, v, normal)


def contact_modes(problem: ContactProblem, velocity: Array, normal: Array) -> NDArray[np.int8]:
    """(nc,) `Mode` of each contact."""
    v = impulse("velocity", velocity, (problem.nv,))
    own, W = problem.scales.own, problem.kernel_delassus
    modes: NDArray[np.int8]
    if problem.sparse is not None:
        order = problem.sparse.nodes.order
        modes = read_dense_modes(problem.blocks, own[order], v[order], normal)
    elif problem.is_sparse:
        b = from_contact_space(problem.arrays, problem.dt, problem.dimension)
        modes = read_dense_modes(b, own, v, normal)
    else:
        modes = _read_problem_modes(problem.arrays, problem.dt, own, W, v, normal)
    return modes
