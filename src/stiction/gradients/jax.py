"""A step for JAX: `make_step(simulator)`, a function with gradients in reverse mode.

    from stiction.gradients.jax import make_step

    step = make_step(sim)
    qpos, qvel, act = step(qpos, qvel, ctrl, act)
    jax.grad(lambda ctrl: loss(*step(qpos, qvel, ctrl, act)))(ctrl)

The step runs on the CPU by a callback, under `jit` too; `vmap` calls it once for the whole batch,
which runs on all processors. The step's matrices do not come into being.
It has double precision where JAX has (`jax.config.update("jax_enable_x64", True)`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from stiction.contact.derivatives.derivatives import check_smoothing
from stiction.gradients.function import Inputs, State, step_function
from stiction.simulate.simulator import Simulator

Step = Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]]


def make_step(simulator: Simulator, *, smoothing: float = 0.0) -> Step:
    """A function of qpos (..., nq), qvel (..., nv), ctrl (..., nu) and act (..., na): the first two
    and act after one step.

    At the modes of the step's contacts; see `Simulator.derivatives` for what is exact, and which
    side is taken at borders. smoothing: of the gradients alone, as there.
    """
    function, smoothing = step_function(simulator), check_smoothing(smoothing)
    nq, nv, na, nu = function.sizes

    def ahead(qpos: Any, *rest: Any) -> tuple[Any, ...]:
        ends = function.forward(_inputs(qpos, *rest))
        return tuple(part.astype(qpos.dtype) for part in ends)

    def back(*arrays: Any) -> tuple[Any, ...]:
        inputs, kind = _inputs(*arrays[:4]), arrays[0].dtype
        end, *gradients = (np.asarray(part, np.float64) for part in arrays[4:])
        by = function.pull(inputs, end, State(*gradients), smoothing)
        return tuple(part.astype(kind) for part in (by.qpos, by.qvel, by.ctrl, by.act))

    def call(what: Any, sizes: tuple[int, ...], *arrays: Any) -> Any:
        batch, kind = arrays[0].shape[:-1], arrays[0].dtype
        shapes = tuple(jax.ShapeDtypeStruct((*batch, n), kind) for n in sizes)
        return jax.pure_callback(what, shapes, *arrays, vmap_method="broadcast_all")

    @jax.custom_vjp
    def step(qpos: Any, qvel: Any, ctrl: Any, act: Any) -> Any:
        return call(ahead, (nq, nv, na), qpos, qvel, ctrl, act)

    def forward(qpos: Any, qvel: Any, ctrl: Any, act: Any) -> Any:
        ends = step(qpos, qvel, ctrl, act)
        return ends, (qpos, qvel, ctrl, act, ends[0])

    def backward(kept: Any, gradients: Any) -> Any:
        return call(back, (nq, nv, nu, na), *kept, *gradients)

    step.defvjp(forward, backward)
    return step


def _inputs(qpos: Any, qvel: Any, ctrl: Any, act: Any) -> Inputs:
    q, v, u, a = (np.asarray(part, np.float64) for part in (qpos, qvel, ctrl, act))
    return Inputs(q, v, a, u)
