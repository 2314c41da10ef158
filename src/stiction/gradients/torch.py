"""A step for PyTorch: `step(simulator, qpos, qvel, ctrl)`, which gradients go back through.

    from stiction.gradients.torch import step

    qpos, qvel, act = step(sim, qpos, qvel, ctrl)
    loss(qpos, qvel).backward()

Tensors are of any leading batch dimensions, on the CPU; they are computed with in double precision,
whatever they are given in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stiction.gradients.function import State, StepFunction
from stiction.simulate.simulator import Simulator


class _Step(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, function: StepFunction, *inputs: torch.Tensor) -> tuple[Any, ...]:
        arrays = [tensor.detach().cpu().numpy().astype(np.float64) for tensor in inputs]
        ctx.function, ctx.arrays = function, arrays
        ctx.kinds = [(tensor.dtype, tensor.device) for tensor in inputs]
        kind, device = ctx.kinds[0]
        ends = function.forward(*arrays)
        return tuple(torch.as_tensor(end, dtype=kind, device=device) for end in ends)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        given = State(*(part.detach().cpu().numpy().astype(np.float64) for part in gradients))
        found = ctx.function.backward(*ctx.arrays, given)
        back = zip(found, ctx.kinds, strict=True)
        return None, *(
            torch.as_tensor(part, dtype=kind, device=device) for part, (kind, device) in back
        )


def step(
    simulator: Simulator,
    qpos: torch.Tensor,
    qvel: torch.Tensor,
    ctrl: torch.Tensor | None = None,
    act: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(qpos, qvel, act) after one step of the simulator: (..., nq), (..., nv), (..., na).

    Controls and activations that are not given are zero. At the modes of the step's contacts; see
    `Simulator.derivatives` for what is exact, and which side is taken at borders.
    """
    function = StepFunction(simulator)
    *_, na, nu = function.sizes
    batch = qpos.shape[:-1]
    controls = qpos.new_zeros((*batch, nu)) if ctrl is None else ctrl
    activations = qpos.new_zeros((*batch, na)) if act is None else act
    ends: Any = _Step.apply(function, qpos, qvel, activations, controls)
    return ends[0], ends[1], ends[2]
