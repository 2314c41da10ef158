"""What J.A and J.B do to one vector, without them: a change of the state taken forward through a
step, or a gradient taken back.

Back, the steps of the way forward are transposed in the reverse order: integration, the correction
of overlap, the law of contact, contacts, and what is smooth.
"""

from __future__ import annotations

from stiction.contact.derivatives.held_rows import Size
from stiction.contact.derivatives.held_system import Solved, solve_back, solve_forward
from stiction.contact.derivatives.soft_system import gives_way, solve_softly, solve_softly_back
from stiction.contact.problem.blocks import ROWS, Blocks, Head
from stiction.contact.solvers.blocks.workspace import unpack_problem
from stiction.kernels.compile import lean, lean_leaf
from stiction.simulate.derivatives.bodies import spread_velocity
from stiction.simulate.derivatives.contact_products import (
    Change,
    pull_contacts,
    pull_rows,
    push_contacts,
    push_rows,
)
from stiction.simulate.derivatives.equalities import pull_equalities, push_equalities
from stiction.simulate.derivatives.manifold import turn_step
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


@lean
def _integrate(dt, step: Step, w: Working, c: Change, x, out, back):
    """out (nv,) := change of the next position for a change x (nv,) of the position and c.rate and
    c.moved of the velocity; or, back, the gradient by c.rate as well as by c.moved from that by the
    next position, x, and out (nv,) := that by the position."""
    nv, speed = w.sigma.shape[0], w.acceleration  # not needed any more
    for j in range(nv):
        out[j] = x[j] + (0.0 if back else dt * (c.rate[j] + c.moved[j]))
        if back:
            c.moved[j] = dt * x[j]
    for at in range(w.turns.shape[0]):
        j = w.turns[at]
        for i in range(3):
            speed[i] = dt * (step.v_plus[j + i] + w.correction[j + i])
        turn_step(speed, w.rotation)
        for i in range(3):
            out[j + i], moved = 0.0, 0.0
            for k in range(3):
                a, e = (k, i) if back else (i, k)
                out[j + i] += w.rotation[0, a, e] * x[j + k]
                if back:
                    moved += dt * w.rotation[1, a, e] * x[j + k]
                else:
                    change = dt * (c.rate[j + k] + c.moved[j + k])
                    out[j + i] += w.rotation[1, a, e] * change
            if back:
                c.moved[j + i] = moved


@lean_leaf
def _push_along(b: Blocks, i, r, impulse, out):
    """out (nv,) += that impulse along row r of block i."""
    width, c0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN]
    a0 = b.head[i, Head.VALUE] + r * width
    for e in range(width):
        out[b.column[c0 + e]] += impulse * b.value[a0 + e]


@lean_leaf
def _speed_along(b: Blocks, i, r, v):
    """Speed along row r of block i at v (nv,)."""
    width, total = b.head[i, Head.WIDTH], 0.0
    c0, a0 = b.head[i, Head.COLUMN], b.head[i, Head.VALUE] + r * width
    for e in range(width):
        total += b.value[a0 + e] * v[b.column[c0 + e]]
    return total


@lean
def push_forward(m, d, dt, lifted, address, own, state, control, end):
    """end (2 nv + na,) := A state + B control; whether there is one answer."""
    tree, ahead, apart, _, _, _, meeting, maps, _, _, _, _ = unpack_bodies(own)
    h, w = unpack_working(own)
    out, s, c, z = unpack_solution(own)
    b, _, _, _ = unpack_problem(address)
    _, step = unpack_step(address)
    nv, na, nu = out.push_q.shape[0], out.push_a.shape[1], out.push_u.shape[1]
    count = step.counts[Count.BLOCKS]
    for j in range(nv):
        c.place[j], push, push_w = state[j], 0.0, 0.0
        for k in range(nv):
            push += out.push_q[j, k] * state[k] + out.push_v[j, k] * state[nv + k]
            push_w += out.push_w[j, k] * state[k]
        for k in range(na):
            push += out.push_a[j, k] * state[2 * nv + k]
        for k in range(nu):
            push += out.push_u[j, k] * control[k]
        c.push[j], c.push_w[j], c.moved[j] = push, push_w, 0.0
    push_contacts(
        m, d, tree, b, count, step.key, step.place, ahead, apart, is_corrected(w), w.gripped,
        0.5 * dt, w.needed, maps, meeting, c,
    )  # fmt: skip
    push_equalities(d, out, c)
    push_rows(dt, b, h, w.source, c)
    taken = hold_velocity(b, count, h, s, z)
    if taken < 0:
        return False
    if gives_way(h):
        solve_softly(taken, h, s, z, c.push, c.wanted, c.rate)
    else:
        solve_forward(taken, s, c.push, c.wanted, c.rate)
    if lifted > 0:
        taken = hold_correction(lifted, has_factored_mass(h), b, count, s, w)
        if taken < 0:
            return False
        for i in range(count):
            for r in range(1, 1 + 2 * w.gripped[i]):
                slip = c.speed_w[i, r]
                for j in range(nv):
                    slip += w.bend[i, r, j] * c.rate[j]
                _push_along(b, i, r, -w.drag[i] * slip, c.push_w)
        for a in range(lifted):
            i, total = w.lifted[a, 0], 0.0
            if w.gripped[i] == 1:
                for j in range(nv):
                    total -= w.bend[i, 0, j] * c.rate[j]
            c0, a0 = b.head[i, Head.COLUMN], b.head[i, Head.VALUE]
            for e in range(b.head[i, Head.WIDTH]):
                total -= b.value[a0 + e] * c.rate[b.column[c0 + e]]
            total -= w.share[i] * c.gap[i] / dt + c.speed[i, 0] + c.speed_w[i, 0]
            if w.deepest[i] >= 0:
                total += share_rate(i, dt, step, w) * c.gap[w.deepest[i]]
            c.wanted[a] = total
        solve_forward(taken, s, c.push_w, c.wanted, c.moved)
    _integrate(dt, step, w, c, state, end, False)
    for j in range(nv):
        end[nv + j] = c.rate[j]
    for i in range(na):
        end[2 * nv + i] = 0.0
        for k in range(na):
            end[2 * nv + i] += out.act_a[i, k] * state[2 * nv + k]
        for k in range(nu):
            end[2 * nv + i] += out.act_u[i, k] * control[k]
    return True


@lean
def _pull_correction(dt, lifted, b: Blocks, step: Step, s: Solved, w: Working, g: Change):
    """From g.moved: g.push_w, and what reaches g.rate, g.speed, g.gap and g.speed_w; whether there
    is one answer. The mass is factored anew."""
    taken = hold_correction(lifted, False, b, step.counts[Count.BLOCKS], s, w)
    if taken < 0:
        return False
    solve_back(lifted, taken, s, g.moved, g.push_w, g.wanted)
    for i in range(step.counts[Count.BLOCKS]):
        for r in range(1, 1 + 2 * w.gripped[i]):
            slip = -w.drag[i] * _speed_along(b, i, r, g.push_w)
            g.speed_w[i, r] += slip
            for j in range(g.rate.shape[0]):
                g.rate[j] += slip * w.bend[i, r, j]
    for a in range(lifted):
        i, x = w.lifted[a, 0], g.wanted[a]
        if w.gripped[i] == 1:
            for j in range(g.rate.shape[0]):
                g.rate[j] -= w.bend[i, 0, j] * x
        c0, a0 = b.head[i, Head.COLUMN], b.head[i, Head.VALUE]
        for e in range(b.head[i, Head.WIDTH]):
            g.rate[b.column[c0 + e]] -= b.value[a0 + e] * x
        g.gap[i] -= w.share[i] * x / dt
        g.speed[i, 0] -= x
        g.speed_w[i, 0] -= x
        if w.deepest[i] >= 0:
            g.gap[w.deepest[i]] += share_rate(i, dt, step, w) * x
    return True


@lean
def pull_back(m, d, dt, lifted, address, own, gradient, by_state, by_control):
    """by_state (2 nv + na,) := A' gradient, by_control (nu,) := B' gradient; whether there is one
    answer."""
    tree, ahead, apart, back, back_w, _, meeting, maps, _, _, _, _ = unpack_bodies(own)
    h, w = unpack_working(own)
    out, s, g, z = unpack_solution(own)
    b, _, _, _ = unpack_problem(address)
    _, step = unpack_step(address)
    nv, na, nu = out.push_q.shape[0], out.push_a.shape[1], out.push_u.shape[1]
    count, corrected = step.counts[Count.BLOCKS], is_corrected(w)
    for i in range(count):
        g.gap[i] = 0.0
        for r in range(3):
            g.speed_w[i, r] = 0.0
        for r in range(ROWS):
            g.speed[i, r] = 0.0
    _integrate(dt, step, w, g, gradient, g.place, True)
    for j in range(nv):
        g.rate[j], g.push_w[j] = gradient[nv + j] + g.moved[j], 0.0
    if lifted > 0 and not _pull_correction(dt, lifted, b, step, s, w, g):
        return False
    taken = hold_velocity(b, count, h, s, z)
    if taken < 0:
        return False
    if gives_way(h):
        solve_softly_back(taken, h, s, z, g.rate, g.push, g.wanted)
    else:
        solve_back(h.size[Size.HELD], taken, s, g.rate, g.push, g.wanted)
    pull_rows(dt, b, h, w.source, g)
    spread_velocity(d, tree, g.push, back)
    if corrected:
        spread_velocity(d, tree, g.push_w, back_w)
    pull_contacts(
        m, d, tree, b, count, step.key, step.place, ahead, apart, back, back_w, corrected,
        w.gripped, 0.5 * dt, w.needed, maps, meeting, g,
    )  # fmt: skip
    pull_equalities(d, out, g)
    for k in range(nv):
        by_state[k], by_state[nv + k] = g.place[k], 0.0
    for k in range(na):
        by_state[2 * nv + k] = 0.0
    for k in range(nu):
        by_control[k] = 0.0
    for j in range(nv):
        x, y = g.push[j], g.push_w[j]
        for k in range(nv):
            by_state[k] += x * out.push_q[j, k] + y * out.push_w[j, k]
            by_state[nv + k] += x * out.push_v[j, k]
        for k in range(na):
            by_state[2 * nv + k] += x * out.push_a[j, k]
        for k in range(nu):
            by_control[k] += x * out.push_u[j, k]
    for i in range(na):
        x = gradient[2 * nv + i]
        for k in range(na):
            by_state[2 * nv + k] += x * out.act_a[i, k]
        for k in range(nu):
            by_control[k] += x * out.act_u[i, k]
    return True
