"""Newton's method on the contact laws in velocities, with proximal impulses: a step's first rung.

Unknown is the velocity v; every row's impulse follows from it. With u the speed along a row (less
its bound), w its inverse inertia, and f the impulse of the last iteration, a row that holds has

    f+ = f - u / (eps w)                     so that at rest, f+ = f, u is zero exactly

A row that separates has none, a sliding one mu f_n+ against the slip. The momentum balance
M (v - v0) = h f_applied + A' f+ is then a linear system in v (`blocks/system.py`) whose matrix is

    M + sum over holding rows of a a' / (eps w) + (mu / (eps w_n)) d n' where sliding along d

Modes are those of Alart and Curnier's functions (`coulomb/newton.py`), the step of whose projection
is 1/w: a contact presses if f - u/w > 0, sticks if the friction f - u/w stays in its disc. Without
sliding the matrix is symmetric and stays the same while the modes do: then an iteration costs a
triangular solve, and the impulses converge by a factor of eps times the spread of inertias each.

It is a local method, and needs a start: the last step's impulses, or an interior point's. Started
with no memory of the impulses (keep = 0) redundant rows share the load in one way only, whatever
came before: with new modes f begins at zero, and -u / (eps w) summed over iterations is the least
impulse, weighted by w, that does it. Where that lies outside a cone (faces with many contacts,
contacts that push against each other) the impulses must be built upon (keep = 1).

A small eps kicks impulses by u / eps and scatters modes that are not right yet; a large one
converges slowly. So it begins with what it is given, and falls (`EPS_FALL`) whenever the modes
stay and the residual does not fall tenfold.

What each iteration keeps true: the momentum balance, to rounding. How it can fail: the modes go
round, or a sliding system has no solution. The best iterate is kept, and its residual returned.

The law may be any of `grading.Law` but CONVEX: frictionless leaves rows 1.. out, no-slip holds rows
1 and 2 of a touching contact whatever the normal does, viscous friction is a row that gives.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.solvers.blocks.iterate import add_vector, copy_island
from stiction.contact.solvers.blocks.system import (
    factor_system,
    imbalance,
    solve,
    speeds,
    unbalanced,
)
from stiction.contact.solvers.blocks.workspace import (
    NewtonWorkspace,
    Setting,
    System,
    unpack_newton,
    unpack_problem,
)
from stiction.contact.solvers.proximal.laws import enter_cones, residual_of, residual_of_block
from stiction.contact.solvers.proximal.modes import (
    CALM,
    KEPT_MODE,
    MAY_PRESS,
    PRESSES,
    SEPARATE,
    SLIDE,
    STICK,
    change_one,
    digest_modes,
    find_modes,
    note_modes,
)
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix
from stiction.kernels.stage import stage

EXACT = 1e-13
"""Residual of impulses and speeds, relative to the load, that is rounding: what is to rest exactly
is refined so far."""

LEAST_EPS = 1e-9
"""Compliance of a row over its own inverse inertia, at least: below it the refined solve no longer
resolves the mass beside the rows."""

LARGE_EPS, EPS_FALL, SLOW_EPS_FALL = 5e-4, 1e-2, 0.1
"""Compliance to which a hundredth of it may follow where modes stay, and that share; and the share
where it begins larger, with modes that are not known yet."""

LAST_DIGITS = 1e-11
"""Residual up to which an iteration with the same modes that leaves half of it is the last:
contacts contradict each other by as much, as those of a foot of which one lands. A fifth of what a
humanoid that sways had factored was for nothing."""

SOLVED = 1e-9
"""Residual, relative to the load, of an iterate that will do; the certificate asks for 1e-8 of
scales that may be larger than the load or a little smaller. Where modes still change, and an
iteration from there leaves more than half of it, no other follows, but on what is to rest: contacts
of heaps that contradict each other in the last digits went round for a dozen factorizations."""

SAME, ROUNDS = 0.1, 2
"""Difference of the residual from that of two iterations before, over itself, up to which the same
modes as then are taken to go round; and how often in a row, until they are given up. A foot that
slides and sticks by turns went on for a dozen factorizations."""

BALANCED = 1e-7
"""Residual of the laws below which the momentum's counts as well, where the iteration ends; above,
it says nothing."""

NEARLY_CONTENT = 1e3
"""Residual of the laws, over the one that an iteration may end with, up to which the momentum's
counts. Beyond, another iteration follows anyway. Of iterates nearer than that, some with hardly any
residual of the laws are off by 1e-8 in their momentum, and would be taken for the best."""

UNREFINED = 1e-3
"""Residual above which the solution with a new factor needs no refinement: its rounding is less
than what the next iteration changes."""

AT_LIMIT = 1e-5
"""Share of its limit that friction may lack, and yet be taken to slide as it did, when an island is
begun with the impulses of the last step: what has slid to where it stands still, or all but, has
no speed to tell by."""

MODES, IMPULSES, ONE_BY_ONE, AFRESH = 0, 1, 2, 3
"""What Newton's method takes of the impulses that it begins with: the modes alone; themselves, to
build upon; the same with modes that change one block at a time, the worst one's; and the modes, but
that all which touches presses (`CALM`). All at once
they may go round for ever where a few are wrong; one by one takes as many iterations as are."""


@lean_leaf
def fill_sliding(D, i, follows, turn, d0, d1):
    """D := how rows 1 and 2 of contact i, which slides along d, fall with the speeds: their limit
    with the normal's, by `follows`, and across d, as the impulse turns with the slip, by `turn`."""
    D[i, ROWS] = follows * d0
    D[i, 2 * ROWS] = follows * d1
    D[i, ROWS + 1] = turn * d1 * d1
    D[i, ROWS + 2] = D[i, 2 * ROWS + 1] = -turn * d0 * d1
    D[i, 2 * ROWS + 2] = turn * d0 * d0


@lean
def linearize(b: Blocks, g: Graph, k, law, work: NewtonWorkspace, D, memory, eps):
    """g := the impulses that the modes give at the speeds u, after the impulses f, or after none
    if memory is 0; D := how they fall with the speeds."""
    head, data = b.head, b.data
    f, out, u = work.f, work.g, work.u
    weight, shape, mode = work.weight, work.shape, work.mode
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows = head[i, Head.ROWS]
        for c in range(ROWS * rows):
            D[i, c] = 0.0
        if head[i, Head.KIND] == Kind.SOFT:
            D[i, 0] = data[i, Datum.DRAG]
            out[i, 0] = -data[i, Datum.DRAG] * u[i, 0]
            continue
        stiff = 0.0
        if mode[i, 0] == STICK:
            stiff = 1.0 / (eps * weight[i, 0])
            out[i, 0] = memory * f[i, 0] - u[i, 0] * stiff
        elif mode[i, 0] == SEPARATE:
            out[i, 0] = 0.0
        else:
            out[i, 0] = data[i, Datum.LIMIT] if mode[i, 0] == SLIDE else -data[i, Datum.LIMIT]
        D[i, 0] = stiff
        if rows < 3:
            continue
        out[i, 1] = out[i, 2] = 0.0
        if mode[i, 1] == STICK:
            hold = data[i, Datum.DRAG] if law == Law.VISCOUS else 1.0 / (eps * weight[i, 1])
            before = 0.0 if law == Law.VISCOUS else memory
            for r in range(1, 3):
                out[i, r] = before * f[i, r] - hold * u[i, r]
                D[i, (ROWS + 1) * r] = hold
        elif mode[i, 1] == SLIDE:
            d0, d1, turn = shape[i, 0], shape[i, 1], shape[i, 3]
            rough = data[i, Datum.SLIDE] * shape[i, 2]
            held = memory * eps * weight[i, 1] * (d0 * f[i, 2] - d1 * f[i, 1])
            across = turn * (held - (d0 * u[i, 2] - d1 * u[i, 1]))
            out[i, 1] = rough * out[i, 0] * d0 - across * d1
            out[i, 2] = rough * out[i, 0] * d1 + across * d0
            fill_sliding(D, i, rough * stiff, turn, d0, d1)
        for r in range(3, rows):
            rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
            out[i, r] = 0.0
            if mode[i, r - 1] == STICK:
                hold = 1.0 / (eps * weight[i, r])
                out[i, r] = memory * f[i, r] - u[i, r] * hold
                D[i, (ROWS + 1) * r] = hold
            elif mode[i, r - 1] != SEPARATE:
                edge = rough if mode[i, r - 1] == SLIDE else -rough
                out[i, r] = edge * out[i, 0]
                D[i, ROWS * r] = edge * stiff


@lean
def move_island(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, k, work: NewtonWorkspace, memory, eps
):  # fmt: skip
    """v += x; u and f change with it. By the change itself, because the speeds' rounding, divided
    by eps, would spoil the momentum balance."""
    add_vector(g, s, k, 1.0, y.x, work.v)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows = b.head[i, Head.ROWS]
        for r in range(rows):
            total = work.g[i, r]
            for q in range(rows):
                d = y.D[i, ROWS * r + q]
                if d != 0.0:
                    total -= d * y.change[i, q]
            work.f[i, r] = total
            work.u[i, r] += y.change[i, r]
        if work.mode[i, 0] == SEPARATE and work.weight[i, 0] > 0.0:
            before = memory * work.shape[i, 4]
            work.shape[i, 4] = before - work.u[i, 0] / (eps * work.weight[i, 0])


@lean
def _imbalance(b: Blocks, g: Graph, s: BlockMatrix, y: System, k, v, f, load):
    """What impulses f and velocity v leave of the momentum balance of island k, over the load."""
    unbalanced(b, g, s, k, v, f, y.left, y.rhs)
    return imbalance(b, g, s, k, y.rhs) / load


@stage("float64(intp, int64, float64, int64, float64, int64, int64, float64, float64)")
def refine_island(address, k, load, keep, eps, limit, patience, content, least):
    """Residual of the best iterate, which replaces the impulses f and the velocity v of island k
    if it is better than the residual `least`; else they are as before.

    address: of a packed workspace; keep: MODES, IMPULSES, ONE_BY_ONE or AFRESH;
    patience: iterations without half the residual after which modes are taken to go round;
    content: residual at which it ends.
    """
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    law, facets = request.setting[Setting.LAW], request.setting[Setting.FACETS]
    f, v, u = work.f, work.v, work.u
    copy_island(g, s, k, f, v, work.best_f, work.best_v)
    speeds(b, g, k, v, u)
    for at in range(g.members[k], g.members[k + 1]):
        work.shape[g.member[at], 4] = 0.0
    best, before, older = least, np.inf, np.inf
    two_ago, one_ago, modes, rounds = np.int64(0), np.int64(0), np.int64(0), 0
    stuck, star, complete = 0, g.size[Size.STAR] == 1, True
    ready, whole, slow = False, False, True
    used, fall = 0.0, EPS_FALL if eps <= LARGE_EPS else SLOW_EPS_FALL
    for turn in range(limit):
        near = MAY_PRESS * load if turn > 0 else 0.0
        share = 1.0 if turn > 0 else 1.0 - AT_LIMIT
        tied = min(2.0 * before, KEPT_MODE) * load if turn > 0 else 0.0
        if keep == ONE_BY_ONE:
            note_modes(g, k, work)
        calm = CALM * load if turn == 0 and keep == AFRESH else 0.0
        changed, slides, turned = find_modes(
            b, g, k, law, facets, work, eps, near, PRESSES * load, tied, share, calm
        )  # fmt: skip
        if keep == ONE_BY_ONE and changed and BALANCED < before < np.inf:
            slides = change_one(b, g, k, law, facets, work, load)
        slides |= star  # in contact space no matrix is symmetric
        anew = changed or not ready or used != eps or whole != slides
        anew = anew or (slides and (slow or turned))
        whole = slides
        alone = keep in (MODES, AFRESH)
        memory = 0.0 if alone and (changed or turn == 0) else 1.0
        linearize(b, g, k, law, work, y.D, memory, eps)
        if anew:
            request.setting[Setting.FACTORIZATIONS] += 1
            used = eps
            if factor_system(b, g, s, y, k, np.int64(not whole)) == 0.0:
                break
        ready = True
        unbalanced(b, g, s, k, v, work.g, y.left, y.rhs)
        # With memory an iteration refines the one before; a symmetric system needs no more, nor
        # does another one as long as modes are looked for.
        searches = anew and UNREFINED < before < np.inf
        solve(b, g, s, y, k, np.int64(whole and not searches))
        move_island(b, g, s, y, k, work, memory, eps)
        residual = residual_of(b, g, k, law, facets, u, f, work.weight, load)
        if not residual < np.inf:
            break
        near_end = residual <= NEARLY_CONTENT * content or least < np.inf
        weighed = residual < BALANCED and near_end
        if weighed:
            residual = max(residual, _imbalance(b, g, s, y, k, v, f, load))
        two_ago, one_ago = one_ago, modes
        if changed or turn == 0:
            modes = digest_modes(b, g, k, work)
        again = changed and modes == two_ago and abs(residual - older) < SAME * residual
        rounds = rounds + 1 if again else 0
        slow = residual > 0.1 * before
        stalled = turn > 0 and not changed and LAST_DIGITS >= residual > 0.5 * before
        if turn > 0 and not changed and (anew or not slides) and slow and eps > LEAST_EPS:
            eps = max(LEAST_EPS, fall * eps)
            stuck -= 1
        older, before = before, residual
        stuck = 0 if residual < 0.5 * best else stuck + 1
        if residual <= content and residual < best:
            return residual
        if residual < best:
            best, complete = residual, weighed
            copy_island(g, s, k, f, v, work.best_f, work.best_v)
        spent = changed and stuck > 0 and best <= SOLVED and content > EXACT
        if residual <= content or stalled or spent or stuck > patience or rounds >= ROUNDS:
            break
        if ticks() > request.setting[Setting.DEADLINE]:
            break
    copy_island(g, s, k, work.best_f, work.best_v, f, v)
    if best < BALANCED and not complete:
        best = max(best, _imbalance(b, g, s, y, k, v, f, load))
    return best


@stage("void(intp, int64, float64)", eager=False)
def spread_residual(address, k, load):
    """Takes the impulses f of island k into their cones, and writes the residual of each of its
    blocks into `System.pull`, column 0."""
    b, g, _, request = unpack_problem(address)
    y, work = unpack_newton(address)
    law, facets = request.setting[Setting.LAW], request.setting[Setting.FACETS]
    enter_cones(b, g, k, law, facets, work.f)
    speeds(b, g, k, work.v, work.u)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        y.pull[i, 0] = residual_of_block(b, i, law, facets, work.u, work.f, work.weight, load)


refine = refine_island.external
