"""What an operator rounds to, whatever dtype it is given: measured, since a cast inside is not declared."""

from __future__ import annotations

import torch

from attnlab.audit.operators.subject import Operator

_STEP = 1e-7  # far above the rounding of fp64, and about that of fp32


def grain_of(operator: Operator) -> float:
    """How far roundings inside move the outputs, beside the largest of them; 0 where fp64 explains it all.

    Between inputs a small step apart, what is computed smoothly lies half way. What casts to fp32 in
    the middle (the softmax of most libraries, the norms of some) does not: each value is rounded by itself.
    """
    if operator.dtype is not torch.float64 or operator.precision is not torch.float64:
        return 0.0
    inputs = operator.make(operator.home, seed=1)
    step = {name: _STEP * x for name, x in operator.make(operator.home, seed=2).items()}
    with torch.no_grad():
        here = operator(inputs)
        ahead, behind = (operator({n: x + s * step[n] for n, x in inputs.items()}) for s in (1, -1))
    if here.dtype is not torch.float64:
        return 0.0
    off = (ahead + behind - 2 * here).abs()
    usable = torch.isfinite(off)
    if not usable.any():
        return 0.0
    return (off[usable].max() / here[usable].abs().max().clamp_min(1e-30)).item()


def precision_of(operator: Operator) -> torch.dtype:
    """The coarsest precision to which inputs can be rounded without any change in the output.

    Code that casts to fp32 inside and back again returns fp64 with the errors of fp32.
    """
    inputs = operator.make(operator.home, seed=1)
    with torch.no_grad():
        exact = operator(inputs)
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            if torch.finfo(dtype).eps <= torch.finfo(operator.dtype).eps:
                continue
            rounded = {name: tensor.to(dtype).to(operator.dtype) for name, tensor in inputs.items()}
            if torch.equal(exact, operator(rounded)):
                return dtype
    if exact.is_floating_point() and torch.finfo(exact.dtype).eps > torch.finfo(operator.dtype).eps:
        return exact.dtype
    return operator.dtype
