"""By gradient: a training signal from the future, also where the output itself does not show it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attnlab.audit.operators.fading import EPSILON_SHRINKAGE
from attnlab.audit.operators.subject import Inputs, Operator
from attnlab.audit.rule import Seen, found


def gradient_from_later(operator: Operator) -> Seen | None:
    """The finding, if an output has a gradient from a later input (straight-through tricks do)."""
    for training in operator.modes:
        inputs = {name: x.requires_grad_(True) for name, x in operator.make(operator.home, seed=11).items()}
        try:
            seen = _by_position(operator, inputs, training)
        except RuntimeError:  # no backward pass for one of its steps: the perturbations have to do
            return None
        if seen is not None:
            return seen
    return None


def _by_position(operator: Operator, inputs: Inputs, training: bool) -> Seen | None:
    with torch.enable_grad():
        output = operator(inputs, training=training)
    if not output.requires_grad:
        return None
    directions = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(output.dtype)
    for position in range(operator.home.T - 1):
        goal = (output * directions)[..., position, :].sum()
        slopes = torch.autograd.grad(goal, list(inputs.values()), retain_graph=True, allow_unused=True)
        seen = _later_slope(operator, list(inputs), slopes, position)
        if seen is not None:
            return seen
    return None


def _later_slope(
    operator: Operator, names: Sequence[str], slopes: Sequence[Tensor | None], position: int
) -> Seen | None:
    """Any input after `position` whose slope counts beside the largest slope of all."""
    sizes_T = {
        name: slope.abs().amax(dim=[axis for axis in range(slope.ndim) if axis != slope.ndim - 2])
        for name, slope in zip(names, slopes, strict=True)
        if slope is not None and torch.isfinite(slope).all()
    }
    largest = max((size_T.max().item() for size_T in sizes_T.values()), default=0.0)
    limit = max(operator.tolerance, EPSILON_SHRINKAGE) * largest
    for name, size_T in sizes_T.items():
        token = position + 1 + int(size_T[position + 1 :].argmax())
        slope = size_T[token].item()
        if slope > limit:
            return found(
                f"the output at position {position} has a gradient of {slope:.2g} from {name} at position "
                f"{token}, though its value does not move with it",
                position=position,
                token=token,
                through=[name],
                gradient=slope,
            )
    return None
