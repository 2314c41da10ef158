"""A step for PyTorch: `step(simulator, qpos, qvel, ctrl)`, which gradients go back through.

    from stiction.gradients.torch import step

    qpos, qvel, act = step(sim, qpos, qvel, ctrl)
    loss(qpos, qvel).backward()

Tensors are of any leading batch dimensions, on the CPU; they are computed with in double precision,
whatever they are given in, all states of a batch at once on all processors. Neither way do the
step's matrices come into being. Forward mode (`torch.autograd.forward_ad`) goes through as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stiction.contact.derivatives.derivatives import check_smoothing
from stiction.gradients.function import Inputs, State, StepFunction, step_function
from stiction.simulate.simulator import Simulator


class _Step(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(
        ctx: Any, function: StepFunction, smoothing: float, *inputs: torch.Tensor
    ) -> tuple[Any, ...]:
        ctx.function, ctx.inputs = function, Inputs(*(_array(part) for part in inputs))
        ctx.smoothing = smoothing
        ctx.like = [(tensor.dtype, tensor.device) for tensor in inputs]
        ends = function.forward(ctx.inputs)
        ctx.end = ends.qpos
        return tuple(_tensor(end, ctx.like[0]) for end in ends)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        given = State(*(_array(part) for part in gradients))
        found = ctx.function.pull(ctx.inputs, ctx.end, given, ctx.smoothing)
        return (
            None,
            None,
            *(_tensor(part, like) for part, like in zip(found, ctx.like, strict=True)),
        )

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, *changes: torch.Tensor | None) -> tuple[Any, ...]:
        given = Inputs(
            *(
                np.zeros(own.shape) if part is None else _array(part)
                for own, part in zip(ctx.inputs, changes, strict=True)
            )
        )
        found = ctx.function.push(ctx.inputs, ctx.end, given, ctx.smoothing)
        return tuple(_tensor(part, ctx.like[0]) for part in found)


def _array(tensor: torch.Tensor) -> Any:
    return tensor.detach().cpu().numpy().astype(np.float64)


def _tensor(array: Any, like: tuple[Any, Any]) -> torch.Tensor:
    return torch.as_tensor(array, dtype=like[0], device=like[1])


def step(
    simulator: Simulator,
    qpos: torch.Tensor,
    qvel: torch.Tensor,
    ctrl: torch.Tensor | None = None,
    act: torch.Tensor | None = None,
    *,
    smoothing: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(qpos, qvel, act) after one step of the simulator: (..., nq), (..., nv), (..., na).

    Controls and activations that are not given are zero. At the modes of the step's contacts; see
    `Simulator.derivatives` for what is exact, and which side is taken at borders. smoothing: of the
    gradients alone, as there.
    """
    function, smoothing = step_function(simulator), check_smoothing(smoothing)
    *_, na, nu = function.sizes
    batch = qpos.shape[:-1]
    controls = qpos.new_zeros((*batch, nu)) if ctrl is None else ctrl
    activations = qpos.new_zeros((*batch, na)) if act is None else act
    ends: Any = _Step.apply(function, smoothing, qpos, qvel, activations, controls)
    return ends[0], ends[1], ends[2]
