"""What stands still but for rounding: taken for standing still, to the bit.

Forces that balance (a servo and a weight, two pads and what is between them) leave of each other
what rounding leaves, so that things at rest would go on moving by 1e-14 m/s for ever, each step in
its last digits another one. Beside the forces that act this is nothing: with

    e   = max over a tree's degrees of freedom of  h (|bias| + |passive| + |actuator| + |applied|)
          / sqrt(M_jj), or how hard its island is run into, whichever is more

a speed below `STANDSTILL` e / sqrt(M_jj) is none, where all of the tree, or of the island, are so
slow. Before the solve (`drop_rounding`) such a tree has no speed, and no force where its forces
balance as closely; after it (`stop_rounding`) a tree or an island with no more speed than that has
none. What is pushed ever so little, in the absence of other forces, moves: it is measured by what
pushes it.

The answer is graded after that. Where it is not good enough any more (a soft row may ask for such a
speed), these degrees of freedom keep the velocity that they had before the step (`keep_velocity`),
or else the one that was solved for; only their positions are left where they are.
"""

from __future__ import annotations

import mujoco
import numpy as np

from stiction.bridge.layout import integers, number, numbers, offset, pointer
from stiction.contact.problem.blocks import Blocks
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.solvers.blocks.workspace import Outcome
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix
from stiction.simulate.time_stepping.workspace import Step

_TIMESTEP = offset("mjModel", "opt", "timestep")
_TREE = offset("mjModel", "dof_treeid")
_QVEL = offset("mjData", "qvel")
_BIAS, _PASSIVE, _ACTUATOR, _APPLIED = (
    offset("mjData", f"qfrc_{name}") for name in ("bias", "passive", "actuator", "applied")
)

STANDSTILL = 1e-11
"""Speed that is rounding, over what the forces that act would give in a step, by energy. Of robots
on their feet, hands and grasps at rest 8e-13 was the most that was left; a joint that creeps so
slowly would need a year for a micrometre."""

LARGEST = float(mujoco.mjMAXVAL)
"""Of speeds; beyond it MuJoCo calls a state bad. Forces that would give more in a step make nothing
stand still: beside them everything is rounding."""

SPEED_ROUNDING = 1e-13
"""The same over the speed of the free motion in this degree of freedom."""


@lean_leaf
def _still_speed(e, mass):
    """Speed below which a degree of freedom of that mass stands still, beside e, by energy."""
    speed = e / np.sqrt(mass)
    return STANDSTILL * speed if speed <= LARGEST else 0.0


@lean
def drop_rounding(m, d, b: Blocks, step: Step):
    """Takes speeds that are rounding out of the step's velocity, and out of its push forces that
    are; step.still := the speed of each degree of freedom below which it stands still."""
    nv, still = b.first.shape[0], step.still
    dt, tree = number(m + _TIMESTEP), integers(pointer(m + _TREE), nv)
    bias, passive = numbers(pointer(d + _BIAS), nv), numbers(pointer(d + _PASSIVE), nv)
    actuator, applied = numbers(pointer(d + _ACTUATOR), nv), numbers(pointer(d + _APPLIED), nv)
    begin = 0
    while begin < nv:
        end, most = begin, 0.0
        while end < nv and tree[end] == tree[begin]:
            j = end
            force = abs(bias[j]) + abs(passive[j]) + abs(actuator[j]) + abs(applied[j])
            most = max(most, force / np.sqrt(b.mass[b.row[j] + j]))
            end += 1
        slow = True
        for j in range(begin, end):
            still[j] = _still_speed(dt * most, b.mass[b.row[j] + j])
            slow = slow and abs(b.velocity[j]) < still[j]
        if slow:
            for j in range(begin, end):
                b.velocity[j] = 0.0
                if abs(b.push[j]) < still[j] * b.mass[b.row[j] + j]:
                    b.push[j] = 0.0
        begin = end


@lean
def _is_slow(b: Blocks, s: BlockMatrix, node, load, v, still):
    """Whether all speeds v of a node are below what counts; load: of its island, by energy."""
    for j in range(s.start[node], s.start[node + 1]):
        limit = max(still[j], _still_speed(load, b.mass[b.row[j] + j]))
        if not abs(v[j]) < limit:
            return False
    return True


@lean
def _stop(s: BlockMatrix, node, v):
    """Takes the speeds of a node away; whether there were any."""
    any_left = False
    for j in range(s.start[node], s.start[node + 1]):
        any_left |= v[j] != 0.0
        v[j] = 0.0
    return any_left


@lean
def stop_rounding(b: Blocks, g: Graph, s: BlockMatrix, outcome, own, v, step: Step):
    """Takes speeds v away that are rounding; step.v_plus := v as it was, step.motion := as it is
    then. Returns whether there were any. outcome: of the islands; own (nv,): see `Scales`."""
    stopped = False
    for j in range(v.shape[0]):
        step.v_plus[j] = v[j]
        if v[j] != 0.0 and abs(v[j]) < SPEED_ROUNDING * own[j]:
            v[j] = 0.0
            stopped = True
    for node in range(g.island.shape[0]):
        if g.island[node] < 0 and _is_slow(b, s, node, 0.0, v, step.still):
            stopped |= _stop(s, node, v)
    for k in range(g.size[Size.ISLANDS]):
        slow, load = True, outcome[k, Outcome.LOAD]
        for p in range(g.positions[k], g.positions[k + 1]):
            slow = slow and _is_slow(b, s, s.order[p], load, v, step.still)
        if slow:
            for p in range(g.positions[k], g.positions[k + 1]):
                stopped |= _stop(s, s.order[p], v)
    for j in range(v.shape[0]):
        step.motion[j] = v[j]
    return stopped


@lean
def keep_velocity(d, v, step: Step):
    """Puts the velocity before the step where `stop_rounding` has taken speeds away."""
    qvel = numbers(pointer(d + _QVEL), v.shape[0])
    for j in range(v.shape[0]):
        if v[j] != step.v_plus[j]:
            v[j] = qvel[j]
