"""What sparsemax and entmax share: the scores as they are sorted, and a gradient within the support.

Shapes: B batch, H heads, T queries, S keys; ranks are keys from the best to the worst.
"""

from __future__ import annotations

import torch
from torch import Tensor


def below_best(scores_BHTS: Tensor, visible: Tensor) -> Tensor:
    """Scores counted from the best visible one. Everything at -1 or below is set to -1, as is what is hidden:
    neither weighing gives any weight there, and no infinity can get into the sums."""
    best = scores_BHTS.masked_fill(~visible, torch.finfo(scores_BHTS.dtype).min).amax(-1, keepdim=True)
    return (scores_BHTS - best).clamp_(-1.0, 0.0).masked_fill_(~visible, -1.0)


def ranks(z_BHTS: Tensor) -> tuple[Tensor, Tensor]:
    """The scores from the best to the worst, and 1, 2, … beside them."""
    sorted_BHTS = z_BHTS.sort(-1, descending=True).values
    return sorted_BHTS, torch.arange(1, z_BHTS.shape[-1] + 1, device=z_BHTS.device, dtype=z_BHTS.dtype)


def through(grad_BHTS: Tensor, slope_BHTS: Tensor) -> Tensor:
    """The gradient of weights that add up to one, each growing with its score by `slope`."""
    grad = grad_BHTS * slope_BHTS
    total = slope_BHTS.sum(-1, keepdim=True).clamp_min_(torch.finfo(grad.dtype).tiny)
    return grad.sub_(slope_BHTS * (grad.sum(-1, keepdim=True) / total))
