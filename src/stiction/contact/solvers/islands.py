"""A problem by blocks, island by island: Newton's method from the last step's impulses, and where
that fails the interior point.

    proximal         `proximal` from the given guess: its modes alone first, so that redundant
                     rows share the load in one way whatever came before; then building upon the
                     impulses, with ever less of a kick; and of islands of a few trees or bodies
                     with modes that change one by one, and redundant rows that drift
                     (`drifting.py`)
    interior point   `interior_point`, near the given impulses, or from nothing if there are none,
                     and near what that has found, and Newton's method from there: of small islands
                     from the modes alone, as above, if that does
    turns            Coulomb's law, where that is not enough: the interior point's path, followed
                     through its folds; large heaps are mended first, and then followed from near
                     what was found (`patches.py`). Without it, an attempt from nothing
    stiffening       before these paths where no more than the last digits are missing, else between
                     the first of them and the others: rows of what is nearly right grow stiffer,
                     and change their modes one by one (`stiffening`)
    sweeps           where time has run out before that (`sweeps.py`)

An island that nothing runs into has no impulses. One at rest that is to the bit what it was in the
last step has its answer already. Every way is bounded in iterations, those
of the interior point in time as well; the best iterate is kept, and the residual in
`Request.outcome` says how good it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind, drop_immobile
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.solvers.drifting import drift
from stiction.contact.solvers.interior_point.coarse import COARSE, part_coarsely
from stiction.contact.solvers.interior_point.continuation import (
    LARGE_TURNS,
    NEAR_TURNS,
    TURNS,
    follow_turn,
    is_near,
)
from stiction.contact.solvers.interior_point.iteration import (
    COLD_ATTEMPT,
    CONTENT,
    NEAR_ATTEMPT,
    SOLVED,
    contentment,
    follow_attempt,
    is_heap,
    is_small,
)
from stiction.contact.solvers.proximal import (
    AFRESH,
    EXACT,
    IMPULSES,
    MODES,
    ONE_BY_ONE,
    copy_island,
    enter_cones,
    load_of,
    refine,
)
from stiction.contact.solvers.stiffening.curve import stiffen
from stiction.contact.solvers.sweeps import sweep
from stiction.contact.solvers.system import assemble, push, solve, speeds
from stiction.contact.solvers.trees import forget_tree, mark_tree
from stiction.contact.solvers.workspace import (
    Guess,
    Outcome,
    Request,
    Rung,
    Setting,
    System,
    unpack_interior,
    unpack_newton,
    unpack_problem,
)
from stiction.kernels import sparse
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix
from stiction.kernels.stage import stage


class Start(NamedTuple):
    """How Newton's method begins with the impulses of the last step."""

    keep: float
    """1 if they are built upon, 0 if only their modes are taken."""
    eps: float
    limit: float
    """Iterations at most."""
    patience: float
    """Iterations without half the residual before it is given up; of islands up to SMALL_ISLAND."""
    hurry: float
    """The same of larger ones: their modes seldom come right after going round."""
    enough: float
    """Residual with which it is content."""


STARTS = (
    Start(0.0, 1e-7, 15.0, 8.0, 2.0, 1e-11),
    Start(1.0, 1e-7, 8.0, 1.0, 0.0, SOLVED),
    Start(1.0, 1e-2, 20.0, 6.0, 4.0, SOLVED),
)
"""In turn: modes alone share a load in one way whatever came before, where they can; then the
impulses, with a small compliance that finishes at once if the modes are right, and with a large one
that scatters fewer of those that are not, and falls as they come right. With a hundredth of it, in
half the iterations and not after the interior point, a seventh more problems of piles were left to
that."""

STARTS_DUE, AFRESH_DUE, DEAR = 8, 64, 4
"""How often the starts are tried that the interior point answers in place of, and how often the
load is shared AFRESH where impulses are built upon, every so many steps; and factorizations in a
step beyond which that is worth it. An arm that holds a part by four pads goes on with impulses near
the edges of their cones, once it has begun to, in 10 factorizations a step; shared anew, the load
takes one."""

RETURN = Start(1.0, 1e-4, 20.0, 2.0, 2.0, SOLVED)
"""In place of them on an island that is not small, after the interior point: it succeeds as often
as the last one, and takes 8 factorizations instead of 10. On heaps it is tried when it is due, in
others in every step: one time in two it succeeds, a try costs a fifth of what the interior point
takes, and of the steps of 27 bodies in a pile a quarter fewer need that."""

PARTED = 0.05
"""Residual at which overlap of a small island is taken to be gone: what is left is there again in
the next step, and gone after some. What a gripper that moves holds by four pads overlaps by
nanometres, of which rounding leaves no two contacts the same: which three of sixteen bear the
correction takes up to 140 factorizations to find out, and changes in every step."""

PARTING_EPS, PARTING_STEPS, PARTING_PATIENCE = 1e-3, 10, 1
"""Compliance and iterations, at most and without half the residual, of that correction: with so
much compliance contacts that contradict each other by rounding share it, and those that agree are
held exactly after some iterations with the same factor."""

FEW_NODES, FEW_DOFS = 12, 160
"""Trees and bodies of an island that is searched for its modes before the interior point is asked,
at most, and their degrees of freedom, unless they are of one tree. In a chain every contact moves
every other, its path has many folds, and near attempts solve one in a hundred of what starts had
left; of ragdolls, of heaps of up to six of them and of falling stones the search takes as long as
these or less. Of ten humanoids in a row it takes six times as long, of piles of 27 bodies a fifth
more."""

SEARCHES, SEARCH_EPS, SEARCH_STEPS, SEARCH_PATIENCE = 3, 1e-2, 60, 20
"""Turns of such a search, every other one of which lets rows drift; and compliance and iterations,
at most and without half the residual, of Newton's method in the others. Of 304 steps of chains of
20 links that took 4 ms or more it solves 269 in a mean of 36 factorizations, its first turn 192; of
152 of 50 links 142. With a patience of 12 the first turn solves 139."""

SEARCHED = 1e-3
"""Residual of what such a search leaves up to which no attempt is made near it: of 189 it solves 8,
paths that turn 99, at three times the cost."""

MOVING = 1e-12
"""Residual at which a start is content on an island that will not rest after the step. With 1e-10
it saves an iteration more, but the certificate then asks for scales that take longer to find."""

NEARBY = 0.3
"""Residual of an iterate that the interior point may begin near."""

MENDABLE = 0.1
"""Residual of an iterate that is worth mending (`patches.py`): beyond, it is wrong everywhere."""

ENOUGH = 2e-9
"""Residual with which no further attempt is made: rounding may leave as much on a heap."""

RESCUE_EPS, RESCUE_STEPS, RESCUE_PATIENCE = (1e-2, 1e-3), 40, 12
HEAP_PATIENCE = 6
"""Of Newton's method from the best iterate of an attempt that fell short, its modes changed one by
one: compliances, in turn, and iterations, at most and without half the residual. Of what attempts
left of a chain the first solves 80 % and the second half of the rest, of piles 60 and 15 %, in 11
to 19 factorizations; with a hundredth of the compliance and modes changed all at once, 30 and
25 %. On heaps only the first, with half the patience: patches and paths do what it leaves."""

STIFFENABLE, STIFFENING_LIMIT, STIFFENING_AFTER = 1e-2, 300, 1
"""Residual from which on rows are stiffened, factorizations of that, at most, and after which of
the paths that are followed; after the first of FEW_NODES, where the second one solves 4 of 86 that
it left, and this 76 of 80. Of 41 islands of walls that all paths had left 39 are solved so, in a
median of 94. Before any path it costs more than that: the slowest steps of 125 spheres took three
times as long, of 27 mixed bodies five times."""

FEW_LIMIT = 100.0
"""Factorizations of the path after which rows of a few trees or bodies are stiffened, where they
are near enough to be: of chains of 50 links three paths in four that lead to an answer take less,
and with twice as many the slowest steps, which stiffening solves, take up to half as long again."""

CONTRADICTORY, CONTRADICTORY_LIMIT = 1e-6, 80
"""Residual up to which rows are stiffened before any path, and factorizations of that, at most: no
more than the last digits contradict each other. Of boxes in a pile that takes 36 to 61 where two
paths take 400, in vain."""

DIGEST_PRIME = 0x100000001B3
"""Of Fowler, Noll and Vo's hash."""

CROWD = 48
"""Bodies of an island beyond which the path that begins near what is known comes before others, in
place of a second attempt: a chain or a few bodies that one attempt leaves are seldom near."""


@lean
def _free_island(b: Blocks, g: Graph, s: BlockMatrix, y: System, k, request: Request, weight):
    """Free velocity and inverse inertias of an island with soft rows, which are part of what its
    bodies weigh: a body that a stiff row holds gives way to nothing."""
    forget_tree(g, k)
    touched = False
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for c in range(ROWS * ROWS):
            y.D[i, c] = 0.0
        for r in range(ROWS):
            y.change[i, r] = 0.0
        if b.head[i, Head.KIND] == Kind.SOFT:
            touched = True
            y.D[i, 0] = b.data[i, Datum.DRAG]
    if not touched:
        return
    low, high = g.positions[k], g.positions[k + 1]
    assemble(b, g, s, y, k, np.int64(1))
    if sparse.factor(s, low, high, np.int64(1)) == 0.0:
        return
    speeds(b, g, k, b.velocity, y.change)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        y.change[i, 0] *= -y.D[i, 0]
        for r in range(1, ROWS):
            y.change[i, r] = 0.0
    for p in range(low, high):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            y.rhs[j] = b.push[j]
    push(b, g, k, y.change, y.rhs)
    solve(b, g, s, y, k, np.int64(1))
    for p in range(low, high):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            request.v_free[j] = b.velocity[j] + y.x[j]
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        if b.head[i, Head.KIND] == Kind.SOFT:  # exact, whatever they weigh
            continue
        width, c0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN]
        for r in range(b.head[i, Head.ROWS]):
            a0 = b.head[i, Head.VALUE] + r * width
            for p in range(low, high):
                node = s.order[p]
                for j in range(s.start[node], s.start[node + 1]):
                    y.x[j] = 0.0
            for c in range(width):
                y.x[b.column[c0 + c]] = b.value[a0 + c]
            weight[i, r] = sparse.inverse_form(s, low, high, y.x)
        drop_immobile(b, i, weight)


@stage("void(intp)", eager=False)
def free_islands(address):
    """Corrects free velocity and inverse inertias of a packed workspace, which are those of the
    mass alone, for soft rows."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    for k in range(g.size[Size.ISLANDS]):
        _free_island(b, g, s, y, k, request, work.weight)


@lean
def _do_nothing(g: Graph, s: BlockMatrix, k, v_free, f, v):
    """No impulses, and the free velocity, on island k."""
    for at in range(g.members[k], g.members[k + 1]):
        for r in range(ROWS):
            f[g.member[at], r] = 0.0
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            v[j] = v_free[j]


@lean_leaf
def _mix(digest, x):
    """The digest with the bits of a number in it."""
    return (digest ^ np.float64(x).view(np.int64)) * np.int64(DIGEST_PRIME) + (digest >> 29)


@lean_leaf
def _mix_all(digest, numbers, begin, end):
    """The digest with the bits of numbers[begin:end] in it, four at a time: each product would wait
    for the one before."""
    a, b, c, d = digest, digest + 1, digest + 2, digest + 3
    k = begin
    while k + 4 <= end:
        a, b = _mix(a, numbers[k]), _mix(b, numbers[k + 1])
        c, d = _mix(c, numbers[k + 2]), _mix(d, numbers[k + 3])
        k += 4
    while k < end:
        a = _mix(a, numbers[k])
        k += 1
    prime = np.int64(DIGEST_PRIME)
    return (((a * prime) ^ b) * prime ^ c) * prime ^ d


@lean
def _digest_at_rest(b: Blocks, g: Graph, s: BlockMatrix, k):
    """Digest of all that the answer of island k depends on, or 0 if anything in it moves."""
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            if b.velocity[j] != 0.0:
                return 0.0
    digest = np.int64(1)
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            digest = _mix(digest, np.float64(j))
            digest = _mix(digest, b.push[j])
            digest = _mix_all(digest, b.mass, b.row[j] + b.first[j], b.row[j] + j + 1)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows, width = b.head[i, Head.ROWS], b.head[i, Head.WIDTH]
        digest = _mix(digest, np.float64(b.head[i, Head.KIND]))
        for c in range(b.data.shape[1]):
            digest = _mix(digest, b.data[i, c])
        for c in range(b.head[i, Head.COLUMN], b.head[i, Head.COLUMN] + width):
            digest = _mix(digest, np.float64(b.column[c]))
        first = b.head[i, Head.VALUE]
        digest = _mix_all(digest, b.value, first, first + rows * width)
    return np.float64(digest >> 12)  # as many bits as a number holds exactly


@lean
def _recall(b: Blocks, g: Graph, s: BlockMatrix, k, request: Request, work):
    """Whether island k is to the bit what the guess answered, which then is the answer: at rest
    before that step and after it (`forget_moving`)."""
    digest = _digest_at_rest(b, g, s, k)
    same = digest != 0.0 and request.setting[Setting.WARM] != Guess.NONE
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        same = same and request.inputs[i] == digest
        request.inputs[i] = digest
    if same:
        copy_island(g, s, k, request.guess, request.start, work.f, work.v)
    return same


@lean
def forget_moving(g: Graph, s: BlockMatrix, v, inputs):
    """Drops the digests of islands that the velocity v (nv,) sets in motion: who puts them back to
    where they were asks for that motion again, and it is not kept."""
    for k in range(g.size[Size.ISLANDS]):
        rests = True
        for p in range(g.positions[k], g.positions[k + 1]):
            node = s.order[p]
            for j in range(s.start[node], s.start[node + 1]):
                rests = rests and v[j] == 0.0
        if not rests:
            for at in range(g.members[k], g.members[k + 1]):
                inputs[g.member[at]] = 0.0


@lean
def is_few(g: Graph, s: BlockMatrix, k):
    """Whether island k is one of a few trees or bodies."""
    low, high, dofs = g.positions[k], g.positions[k + 1], 0
    if high - low > FEW_NODES:
        return False
    for p in range(low, high):
        node = s.order[p]
        dofs += s.start[node + 1] - s.start[node]
    return high - low == 1 or dofs <= FEW_DOFS


@lean_leaf
def _is_due(streak, often):
    """Whether it is time to try once more what did not answer so many steps in a row: after one,
    two, four, and then every `often`, a power of two."""
    return streak & (streak - 1) == 0 or streak & (often - 1) == 0


@lean
def _moves(b: Blocks, g: Graph, s: BlockMatrix, k, v, load):
    """Whether anything in island k moves faster, by energy, at the velocity v than its load would
    have it in one step: it will not rest after this one."""
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            if b.mass[b.row[j] + j] * v[j] * v[j] > load * load:
                return True
    return False


@lean
def _start_warm(address, k, load, small, g: Graph, b: Blocks, s: BlockMatrix, work, request):
    """(rung, residual) of Newton's method from the guess: rung NONE if no start succeeds, and that
    of a near guess if it has one; steps in a row that the rung, or the interior point if there is
    none, has answered the island before this one."""
    near = request.setting[Setting.WARM] == Guess.NEAR
    upon, streak = np.int64(0), np.int64(-1)
    for at in range(g.members[k], g.members[k + 1]):
        before = np.int64(request.built[g.member[at]])
        upon = max(upon, -before)
        streak = max(streak, before - Rung.INTERIOR_POINT)
    hard = streak >= 0
    # Where modes alone were not enough they seldom are. After the interior point no start often is,
    # but one that succeeds makes the next steps cheaper, too.
    few = is_few(g, s, k) and request.setting[Setting.LAW] == Law.COULOMB
    lasting = small or few
    afresh = upon > 2 and _is_due(upon - 1, AFRESH_DUE)
    alone = (lasting or not hard) and (upon == 0 or afresh)
    first, last = 0 if alone else 1, len(STARTS)
    returns = hard and not near and not lasting
    if hard and not near:
        streak += 1
        due = _is_due(streak, STARTS_DUE)
        if returns:
            last = first + 1 if due or not is_heap(g, k) else first
        elif not due:
            first = last - 1
    rung, best = np.int64(Rung.NONE), np.inf
    content = EXACT
    if near:
        content = contentment(g, k)
    elif _moves(b, g, s, k, request.start, load):
        content = MOVING
    for turn in range(first, last):
        keep, eps, limit, patience, hurry, enough = RETURN if returns else STARTS[turn]
        keep = AFRESH if turn == 0 and afresh else keep
        copy_island(g, s, k, request.guess, request.start, work.f, work.v)
        best = refine(
            address, k, load, np.int64(keep), eps, np.int64(limit),
            np.int64(patience if lasting else hurry), min(content, enough), np.inf,
        )  # fmt: skip
        if best <= enough:
            rung = np.int64(Rung.IMPULSES if keep == IMPULSES else Rung.MODES)
            break
        if ticks() > request.setting[Setting.DEADLINE]:
            break
    if rung == Rung.NONE and few:
        best = _search(address, k, load, best, content, g, s, work, request)
        if best <= SOLVED:
            rung = np.int64(Rung.IMPULSES)
    if rung != Rung.NONE:
        if near and hard:
            rung = np.int64(Rung.INTERIOR_POINT)
        else:
            streak = upon if rung == Rung.IMPULSES else np.int64(0)
    return rung, best, max(streak, 0)


@lean_leaf
def _built(rung, streak, factorizations):
    """`Request.built` of an island that the rung answered, in so many factorizations, after so many
    steps in a row."""
    if rung == Rung.IMPULSES:
        return -(streak + 1) if factorizations > DEAR else -1
    return rung + streak


@lean
def _part(address, k, load, g: Graph, s: BlockMatrix, work, request):
    """Residual of the correction of overlap of a small island, from the guess."""
    if request.setting[Setting.WARM] != Guess.NONE:
        copy_island(g, s, k, request.guess, request.start, work.f, work.v)
    else:
        _do_nothing(g, s, k, request.v_free, work.f, work.v)
    enough = 10.0 ** -request.setting[Setting.DIGITS]
    return refine(
        address, k, load, MODES, PARTING_EPS, PARTING_STEPS, PARTING_PATIENCE, enough, np.inf
    )


@lean
def _search(address, k, load, best, content, g: Graph, s: BlockMatrix, work, request):
    """Residual after Newton's method with modes that change one by one, and rows that drift where
    these go round, from the iterate at hand, of residual `best`, or from the guess if that is far
    off. The best iterate is in work."""
    if best > NEARBY:
        best = np.inf
        copy_island(g, s, k, request.guess, request.start, work.f, work.v)
    before = np.inf
    for turn in range(SEARCHES):
        if best <= SOLVED or ticks() > request.setting[Setting.DEADLINE]:
            break
        if turn % 2 == 0:
            if turn > 0 and not best < before:
                break
            best = before = refine(
                address, k, load, ONE_BY_ONE, SEARCH_EPS, SEARCH_STEPS, SEARCH_PATIENCE, content,
                best,
            )  # fmt: skip
        elif best <= NEARBY:
            best = drift(address, k, load, CONTENT, best)
    return best


@lean
def _follow_attempts(
    address, k, load, best, near, enough, g: Graph, b: Blocks, s: BlockMatrix, work, w, request
):
    """(residual, attempts) of the interior point: begun near the iterate at hand of residual
    `best`, or the guess if that is far off, if `near` is true, or else from nothing; then, of
    islands that are neither small nor a crowd, near what that has found; and by paths that turn,
    until the residual is `enough`. Where a search has come near, a path comes first. Where none
    turns, or patches come first, an attempt from nothing takes their place. The best iterate is in
    work."""
    if best > NEARBY:
        best = np.inf
        if near:
            copy_island(g, s, k, request.guess, request.start, work.f, work.v)
        else:
            _do_nothing(g, s, k, request.v_free, work.f, work.v)
    copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
    small, brief = is_small(g, k), request.setting[Setting.BRIEF] == 1
    coulomb = request.setting[Setting.LAW] == Law.COULOMB
    few, crowd = is_few(g, s, k) and coulomb, g.positions[k + 1] - g.positions[k] > CROWD
    turns = enough < MENDABLE and coulomb
    searched = few and turns and best <= SEARCHED
    taken, cold, tried = 0, False, np.inf
    polished, known = best if few else -1.0, False
    while (near or not cold) and not searched:
        tried = best if near else tried
        best = follow_attempt(
            address, k, load, np.int64(NEAR_ATTEMPT if near else COLD_ATTEMPT), best
        )
        taken, known = taken + 1, known or best < np.inf
        best = polished = _polish(address, k, load, best, polished, g, b, s, work, w, request)
        if best <= enough or ticks() > request.setting[Setting.DEADLINE]:
            break
        cold, better = cold or not near, best < min(tried, NEARBY)
        if turns and (crowd or brief or small or taken > 1 or not better):
            break
        near = better and (turns or not near)
    if turns and best <= CONTRADICTORY:
        best = _stiffen(address, k, load, best, CONTRADICTORY_LIMIT, g, s, work, w, request)
    # A path near what Newton's method made of nothing costs more than one from nothing, and comes
    # last.
    first, last = 0 if crowd and known else NEAR_TURNS, len(TURNS) if small else LARGE_TURNS
    if brief:
        first, last = 0, NEAR_TURNS
    for number in range(first, last if turns else 0):
        if best <= enough or ticks() > request.setting[Setting.DEADLINE]:
            break
        best, tried = _turn(
            address, k, load, number, best, tried, polished, g, b, s, work, w, request
        )
        polished, taken = best, taken + 1
        if number == first + (0 if few else STIFFENING_AFTER):
            best = _stiffen(address, k, load, best, STIFFENING_LIMIT, g, s, work, w, request)
        if searched and number == first and best > enough:
            best = follow_attempt(address, k, load, np.int64(NEAR_ATTEMPT), best)
            best = polished = _polish(address, k, load, best, polished, g, b, s, work, w, request)
    if turns and crowd and first > 0 and best > enough:
        best, _ = _turn(address, k, load, 0, best, tried, polished, g, b, s, work, w, request)
    if best == np.inf:
        _do_nothing(g, s, k, request.v_free, work.f, work.v)
    return best, taken


@lean
def _polish(
    address, k, load, best, polished, g: Graph, b: Blocks, s: BlockMatrix, work, w, request
):  # fmt: skip
    """Residual after Newton's method from the interior point's best iterate, unless that is the one
    of residual `polished`, from which it came no further; the better one is in work, and the
    interior point's best."""
    setting, heap = request.setting, is_heap(g, k)
    copy_island(g, s, k, w.best_f, w.best_v, work.f, work.v)
    if best == polished:
        return best
    if best == np.inf:
        # Its steps were too short to meet the momentum: no iterate is the best one. Newton's
        # method meets it in one step: from the last iterate it spares 38 of 62 heaps of spheres
        # the attempt from nothing, from where the attempt began it brought none of them nearer.
        copy_island(g, s, k, w.f, w.v, work.f, work.v)
        enter_cones(b, g, k, setting[Setting.LAW], setting[Setting.FACETS], work.f)
    patience = np.int64(HEAP_PATIENCE if heap else RESCUE_PATIENCE)
    for number in range(1 if heap else len(RESCUE_EPS)):
        if best <= SOLVED or ticks() > setting[Setting.DEADLINE]:
            break
        found = refine(
            address, k, load, ONE_BY_ONE, RESCUE_EPS[number], RESCUE_STEPS, patience,
            contentment(g, k), best,
        )  # fmt: skip
        if found < best:
            best = found
            copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
    return best


@lean
def _stiffen(address, k, load, best, limit, g: Graph, s: BlockMatrix, work, w, request):
    """Residual after the rows have been stiffened from the interior point's best iterate, if that
    is near, in `limit` factorizations at most; the better one is in work, and the interior point's
    best."""
    if not SOLVED < best <= STIFFENABLE or request.setting[Setting.FACETS] != 0:
        return best
    copy_island(g, s, k, w.best_f, w.best_v, work.f, work.v)
    found = stiffen(address, k, load, contentment(g, k), best, limit)
    if found < best:
        best = found
        copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
    return best


@lean
def _turn(
    address, k, load, number, best, tried, polished, g: Graph, b: Blocks, s: BlockMatrix, work, w,
    request,
):  # fmt: skip
    """(residual, tried) after path `number`, and an attempt near the best iterate, unless
    its residual is `tried`: that of the last one that such an attempt was begun near, to no avail;
    none of a few trees or bodies, of which it solves one in a hundred, and none of heaps, of which
    it solves one in fifteen, where the next path solves most. The best iterate is in work,
    and the interior point's best. No path begins near what is far off. polished: see `_polish`."""
    if is_near(number) and not best < NEARBY:
        return best, tried
    short = is_few(g, s, k) and best <= STIFFENABLE and request.setting[Setting.FACETS] == 0
    most = FEW_LIMIT if short and number == NEAR_TURNS else np.inf
    best = follow_turn(address, k, load, number, best, most)
    best = polished = _polish(address, k, load, best, polished, g, b, s, work, w, request)
    if ENOUGH < best < min(tried, NEARBY) and not (is_few(g, s, k) or is_heap(g, k)):
        tried = best
        best = follow_attempt(address, k, load, np.int64(NEAR_ATTEMPT), best)
        best = _polish(address, k, load, best, polished, g, b, s, work, w, request)
    return best, tried


@lean
def _sweep(address, k, load, best, g: Graph, b: Blocks, s: BlockMatrix, work, request):
    """Residual after sweeps from the iterate at hand of residual `best`, or from the guess if that
    is far off."""
    if best > NEARBY:
        best = np.inf
        if request.setting[Setting.WARM] != Guess.NONE:
            copy_island(g, s, k, request.guess, request.start, work.f, work.v)
        else:
            _do_nothing(g, s, k, request.v_free, work.f, work.v)
    return sweep(address, k, load, best)


@stage("void(intp, int64)")
def solve_blocks(address, count):
    """Impulses f and velocity v of the `count` blocks of a packed workspace, and what came of each
    island. The graph, v_free, the rows' weights and the settings are the caller's."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    (w,) = unpack_interior(address)
    setting, weight, v_free = request.setting, work.weight, request.v_free
    law, facets = setting[Setting.LAW], setting[Setting.FACETS]
    for j in range(v_free.shape[0]):
        work.v[j] = v_free[j]
        if setting[Setting.WARM] != Guess.NEAR:
            request.start[j] = b.velocity[j]
    for i in range(count):
        for c in range(ROWS):
            work.f[i, c] = 0.0
        if b.head[i, Head.ROWS] > 2:
            weight[i, 1] = weight[i, 2] = max(weight[i, 1], weight[i, 2])
    for k in range(g.size[Size.ISLANDS]):
        forget_tree(g, k)
        speeds(b, g, k, v_free, work.u)
        load = load_of(b, g, k, law, work.u, weight, v_free)
        for c in range(request.outcome.shape[1]):
            request.outcome[k, c] = 0.0
        if load == 0.0:
            for at in range(g.members[k], g.members[k + 1]):
                i = g.member[at]
                if b.head[i, Head.KIND] == Kind.SOFT:
                    work.f[i, 0] = -b.data[i, Datum.DRAG] * work.u[i, 0]
            continue
        if setting[Setting.WARM] != Guess.ALIKE and _recall(b, g, s, k, request, work):
            built = np.int64(request.built[g.member[g.members[k]]])
            answered = min(built, np.int64(Rung.INTERIOR_POINT))
            request.outcome[k, Outcome.RUNG] = answered if built >= 0 else np.int64(Rung.IMPULSES)
            request.outcome[k, Outcome.LOAD] = load
            continue
        best, rung, streak, taken = np.inf, np.int64(Rung.NONE), np.int64(0), 0
        small = is_small(g, k)
        setting[Setting.FACTORIZATIONS] = 0
        mark_tree(b, g, s, k, y.x)
        coarse = setting[Setting.DIGITS] > 0
        if coarse and not small:
            guessed = np.int64(setting[Setting.WARM] != Guess.NONE)
            best = part_coarsely(address, k, load, guessed)
            if best <= COARSE:
                rung = np.int64(Rung.INTERIOR_POINT)
        elif coarse:
            best = _part(address, k, load, g, s, work, request)
            if best <= PARTED:
                rung = np.int64(Rung.MODES)
        if rung == Rung.NONE and setting[Setting.WARM] != Guess.NONE and (small or not coarse):
            rung, best, streak = _start_warm(address, k, load, small, g, b, s, work, request)
            taken = np.int64(rung == Rung.INTERIOR_POINT)
        if rung == Rung.NONE and ticks() > setting[Setting.DEADLINE]:
            rung, taken = np.int64(Rung.INTERIOR_POINT), 1
        elif rung == Rung.NONE:
            rung = np.int64(Rung.INTERIOR_POINT)
            near = setting[Setting.WARM] != Guess.NONE
            mended = setting[Setting.MENDED] == 1 and is_heap(g, k)
            enough = MENDABLE if mended else ENOUGH
            best, taken = _follow_attempts(
                address, k, load, best, near, enough, g, b, s, work, w, request
            )
            if best <= ENOUGH and small:
                _, eps, limit, patience, _, enough = STARTS[0]
                found = refine(
                    address, k, load, np.int64(0), eps, np.int64(limit), np.int64(patience),
                    EXACT, np.inf,
                )  # fmt: skip
                if found <= enough:
                    best = found
                else:
                    copy_island(g, s, k, w.best_f, w.best_v, work.f, work.v)
        if best > ENOUGH and ticks() > setting[Setting.DEADLINE]:
            best = _sweep(address, k, load, best, g, b, s, work, request)
        enter_cones(b, g, k, law, facets, work.f)
        built = _built(rung, streak, setting[Setting.FACTORIZATIONS])
        for at in range(g.members[k], g.members[k + 1]):
            request.built[g.member[at]] = built
        request.outcome[k, Outcome.RESIDUAL] = best
        request.outcome[k, Outcome.FACTORIZATIONS] = setting[Setting.FACTORIZATIONS]
        request.outcome[k, Outcome.RUNG] = rung
        request.outcome[k, Outcome.ATTEMPTS] = taken
        request.outcome[k, Outcome.LOAD] = load


@stage("void(intp, int64, int64, float64)", eager=False)
def take_turn(address, k, number, tried):
    """Path `number` (`continuation.py`) on an island that attempts and patches did not solve: the
    better one of what the island had and what is found. tried: see `_turn`."""
    b, g, s, request = unpack_problem(address)
    _, work = unpack_newton(address)
    (w,) = unpack_interior(address)
    setting, outcome = request.setting, request.outcome
    load, best = outcome[k, Outcome.LOAD], outcome[k, Outcome.RESIDUAL]
    setting[Setting.FACTORIZATIONS] = 0
    copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
    best, _ = _turn(address, k, load, number, best, tried, best, g, b, s, work, w, request)
    enter_cones(b, g, k, setting[Setting.LAW], setting[Setting.FACETS], work.f)
    outcome[k, Outcome.RESIDUAL] = best
    outcome[k, Outcome.ATTEMPTS] += 1
    outcome[k, Outcome.FACTORIZATIONS] += setting[Setting.FACTORIZATIONS]


free_all, solve_all = free_islands.external, solve_blocks.external
