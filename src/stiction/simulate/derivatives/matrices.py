"""J.A and J.B: all columns of the next state's derivatives, from the slopes of a step's problem."""

from __future__ import annotations

from stiction.bridge.layout import number, offset
from stiction.contact.derivatives.held_rows import Held, Size
from stiction.contact.derivatives.held_system import (
    Solved,
    add_pushed,
    add_wanted,
    fill_by_push,
    fill_by_speed,
    fill_inverse,
)
from stiction.contact.derivatives.soft_system import Softened, gives_way, solve_columns
from stiction.contact.problem.blocks import Blocks, Head
from stiction.contact.solvers.blocks.workspace import unpack_problem
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.panel import add_scaled, clear, padded, put_scaled
from stiction.simulate.derivatives.contacts import Slopes, differentiate_rows
from stiction.simulate.derivatives.manifold import turn_step
from stiction.simulate.derivatives.meetings import grips_any
from stiction.simulate.derivatives.memory import (
    Working,
    unpack_bodies,
    unpack_solution,
    unpack_working,
)
from stiction.simulate.derivatives.step_system import (
    has_factored_mass,
    hold_correction,
    hold_velocity,
    is_corrected,
    share_rate,
)
from stiction.simulate.time_stepping.workspace import Count, Step, unpack_step

_TIMESTEP = offset("mjModel", "opt", "timestep")


@lean
def _ask_row(dt, a, out: Slopes, h: Held, w: Working, wanted, q):
    """wanted[q, :nv] := the speeds that positions ask of held row a."""
    nv, i, r = w.sigma.shape[0], h.block[a, 0], h.block[a, 1]
    if r == 1:
        x, y = h.direction[a, 0], h.direction[a, 1]
        for k in range(nv):
            wanted[q, k] = -x * out.speed[i, 1, k] - y * out.speed[i, 2, k]
        return
    source = w.source[i] if r == 0 else -1
    for k in range(nv):
        wanted[q, k] = -out.speed[i, r, k]
    if source >= 0:
        for k in range(nv):
            wanted[q, k] -= out.gap[source, k] / dt


@lean
def _ask(dt, taken, b: Blocks, out: Slopes, h: Held, s: Solved, w: Working):
    """Fills w.right with the push and w.wanted with the speeds of the rows that were taken, which
    positions ask for; (nv, nv) and (taken, nv)."""
    nv = w.sigma.shape[0]
    for j in range(nv):
        for k in range(nv):
            w.right[j, k] = out.push_q[j, k]
    for c in range(h.size[Size.CURVED]):
        i, x, y, curve = h.curved[c], h.across[c, 0], h.across[c, 1], h.across[c, 2]
        width, c0, a0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN], b.head[i, Head.VALUE]
        for e in range(width):
            along = curve * (x * b.value[a0 + width + e] + y * b.value[a0 + 2 * width + e])
            j = b.column[c0 + e]
            for k in range(nv):
                w.right[j, k] -= along * (x * out.speed[i, 1, k] + y * out.speed[i, 2, k])
    for q in range(taken):
        _ask_row(dt, s.taken[q], out, h, w, w.wanted, q)


@lean_leaf
def _add_column(n, matrix, j, scale, out, k):
    """out[:n, k] += scale matrix[:n, j]."""
    for i in range(n):
        out[i, k] += scale * matrix[i, j]


@lean
def _solve_softly(dt, taken, out: Slopes, h: Held, s: Solved, w: Working, z: Softened):
    """w.rate := changes of v+, all columns, where rows give way; `_ask` has been called."""
    nv, na, nu = out.push_q.shape[0], out.push_a.shape[1], out.push_u.shape[1]
    right, scale, wide = z.right, z.scale, z.right.shape[1]
    clear(nv + taken, right)
    for j in range(nv):
        for k in range(nv):
            right[j, k], right[j, nv + k] = w.right[j, k], out.push_v[j, k]
        for k in range(na):
            right[j, 2 * nv + k] = out.push_a[j, k]
        for k in range(nu):
            right[j, 2 * nv + na + k] = out.push_u[j, k]
    few = padded(nv)
    for k in range(nv, few):
        w.rate[0, k] = 0.0
    for a in range(h.size[Size.HARD], h.size[Size.HELD]):
        _ask_row(dt, a, out, h, w, w.rate, 0)
        for j in range(nv):
            along = h.along[a, j]
            if along != 0.0:
                add_scaled(right, j * wide, along / h.soft[a], w.rate, 0, few)
    for j in range(nv):
        put_scaled(right, j * wide, scale[j], right, j * wide, wide)
    for q in range(taken):
        for k in range(nv):
            right[nv + q, k] = w.wanted[q, k] / s.length[s.taken[q]]
    solve_columns(nv + taken, wide, z)
    for j in range(nv):
        put_scaled(w.rate, j * wide, scale[j], right, j * wide, wide)


@lean
def _solve_velocity(dt, b: Blocks, count, out: Slopes, h: Held, s: Solved, w: Working, z: Softened):
    """w.rate := changes of v+, all columns; whether there is one answer. count: blocks."""
    nv, na, nu = out.push_q.shape[0], out.push_a.shape[1], out.push_u.shape[1]
    taken = hold_velocity(b, count, h, s, z)
    if taken < 0:
        return False
    if gives_way(h):
        _ask(dt, taken, b, out, h, s, w)
        _solve_softly(dt, taken, out, h, s, w, z)
        return True
    fill_inverse(s)
    fill_by_push(taken, s)
    fill_by_speed(taken, s)
    _ask(dt, taken, b, out, h, s, w)
    for j in range(nv):
        for k in range(nv):
            w.right[j, nv + k] = out.push_v[j, k]
    clear(nv, w.rate)
    add_pushed(s, w.right, padded(2 * nv), w.rate)
    for j in range(nv):  # what acts along one joint, or few
        for k in range(na):
            if out.push_a[j, k] != 0.0:
                _add_column(nv, s.by_push, j, out.push_a[j, k], w.rate, 2 * nv + k)
        for k in range(nu):
            if out.push_u[j, k] != 0.0:
                _add_column(nv, s.by_push, j, out.push_u[j, k], w.rate, 2 * nv + na + k)
    for q in range(taken):
        for k in range(nv, s.inertia.shape[1]):
            w.wanted[q, k] = 0.0
    add_wanted(taken, s, w.wanted, s.inertia.shape[1], w.rate)
    return True


@lean
def _add_gripped(b: Blocks, count, columns, out: Slopes, s: Solved, w: Working):
    """w.moved += what the tangents that the correction grips push, by positions and by v+."""
    nv, slip, pushed = w.sigma.shape[0], w.right, w.acceleration
    for i in range(count):
        for r in range(1, 1 + 2 * w.gripped[i]):
            for k in range(columns):
                slip[0, k] = 0.0
            for k in range(nv):
                slip[0, k] = out.speed_w[i, r, k]
            for j in range(nv):
                x = w.bend[i, r, j]
                if x != 0.0:
                    add_scaled(slip, 0, x, w.rate, j * columns, columns)
            width, c0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN]
            a0 = b.head[i, Head.VALUE] + r * width
            for j in range(nv):
                pushed[j] = 0.0
                for c in range(width):
                    pushed[j] += s.by_push[j, b.column[c0 + c]] * b.value[a0 + c]
            for j in range(nv):
                add_scaled(w.moved, j * columns, -w.drag[i] * pushed[j], slip, 0, columns)


@lean
def _solve_correction(
    dt, lifted, b: Blocks, out: Slopes, step: Step, h: Held, s: Solved, w: Working
):
    """w.moved := changes of the correction, all columns; whether there is one answer. lifted: how
    many rows it holds."""
    nv, columns, wide = out.push_q.shape[0], w.rate.shape[1], s.inertia.shape[1]
    clear(nv, w.moved)
    if lifted == 0:
        return True
    factored = has_factored_mass(h) and not grips_any(w.gripped, 0, step.counts[Count.BLOCKS])
    taken = hold_correction(lifted, factored, b, step.counts[Count.BLOCKS], s, w)
    if taken < 0:
        return False
    fill_by_speed(taken, s)
    for q in range(taken):
        i = w.lifted[s.taken[q], 0]
        for k in range(columns):
            w.wanted[q, k] = 0.0
        if w.gripped[i] == 1:
            for j in range(nv):
                x = w.bend[i, 0, j]
                if x != 0.0:
                    add_scaled(w.wanted, q * columns, -x, w.rate, j * columns, columns)
        c0, a0 = b.head[i, Head.COLUMN], b.head[i, Head.VALUE]
        for c in range(b.head[i, Head.WIDTH]):
            j, x = b.column[c0 + c], b.value[a0 + c]
            add_scaled(w.wanted, q * columns, -x, w.rate, j * columns, columns)
        deepest, part = w.deepest[i], share_rate(i, dt, step, w)
        for k in range(nv):
            w.wanted[q, k] -= w.share[i] * out.gap[i, k] / dt + out.speed[i, 0, k]
            w.wanted[q, k] -= out.speed_w[i, 0, k]
        if deepest >= 0:
            for k in range(nv):
                w.wanted[q, k] += part * out.gap[deepest, k]
    if is_corrected(w):
        if not factored:
            fill_inverse(s)
        fill_by_push(taken, s)
        add_pushed(s, out.push_w, wide, w.moved)
        _add_gripped(b, step.counts[Count.BLOCKS], columns, out, s, w)
    add_wanted(taken, s, w.wanted, columns, w.moved)
    return True


@lean
def _turn_rows(dt, at, columns, step: Step, w: Working, A, B):
    """Three rows of A and B, of dt times changes of v+ and of the correction, become those of the
    quaternion that begins at degree of freedom `at`. columns: of A, and of both."""
    speed, left, right = w.acceleration, w.rotation[0], w.rotation[1]
    for c in range(3):  # accelerations are not needed any more
        speed[c] = dt * (step.v_plus[at + c] + w.correction[at + c])
    turn_step(speed, w.rotation)
    for k in range(columns[1]):
        out, i = (A, k) if k < columns[0] else (B, k - columns[0])
        x, y, z = out[at, i], out[at + 1, i], out[at + 2, i]
        for c in range(3):
            out[at + c, i] = right[c, 0] * x + right[c, 1] * y + right[c, 2] * z
    for c in range(3):
        for k in range(3):
            A[at + c, at + k] += left[c, k] - (1.0 if c == k else 0.0)


@lean
def _write(dt, step: Step, out: Slopes, w: Working, A, B):
    """A and B from the changes of v+ and of the correction."""
    nv, n, nu = out.push_q.shape[0], A.shape[0], B.shape[1]
    rate, moved = w.rate, w.moved
    for j in range(nv):
        for k in range(n):
            A[j, k] = dt * (rate[j, k] + moved[j, k])
        for k in range(n):
            A[nv + j, k] = rate[j, k]
        for k in range(nu):
            B[j, k] = dt * (rate[j, n + k] + moved[j, n + k])
        for k in range(nu):
            B[nv + j, k] = rate[j, n + k]
    for k in range(w.turns.shape[0]):
        _turn_rows(dt, w.turns[k], (n, n + nu), step, w, A, B)
    for j in range(nv):
        A[j, j] += 1.0
    for i in range(n - 2 * nv):
        for k in range(n):
            A[2 * nv + i, k] = out.act_a[i, k - 2 * nv] if k >= 2 * nv else 0.0
        for k in range(nu):
            B[2 * nv + i, k] = out.act_u[i, k]


@lean
def fill_slopes(m, d, address, own):
    """Adds to `Slopes` what contacts do."""
    tree, ahead, apart, _, _, _, meeting, maps, _, _, _, _ = unpack_bodies(own)
    _, w = unpack_working(own)
    out, _, _, _ = unpack_solution(own)
    b, _, _, _ = unpack_problem(address)
    _, step = unpack_step(address)
    count = step.counts[Count.BLOCKS]
    differentiate_rows(
        m, d, tree, b, count, step.key, step.place, ahead, apart, is_corrected(w), w.gripped,
        0.5 * number(m + _TIMESTEP), w.used, w.needed, w.alone, maps, meeting, out,
    )  # fmt: skip


@lean
def fill_matrices(dt, lifted, address, own, A, B):
    """A and B, from `Slopes`; whether there is one answer."""
    h, w = unpack_working(own)
    out, s, _, z = unpack_solution(own)
    b, _, _, _ = unpack_problem(address)
    _, step = unpack_step(address)
    if not _solve_velocity(dt, b, step.counts[Count.BLOCKS], out, h, s, w, z):
        return False
    if not _solve_correction(dt, lifted, b, out, step, h, s, w):
        return False
    _write(dt, step, out, w, A, B)
    return True
