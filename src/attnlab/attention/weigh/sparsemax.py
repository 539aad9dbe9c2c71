"""Sparsemax: the point of the simplex nearest to the scores, max(s - τ, 0). Martins and Astudillo 2016,
https://arxiv.org/abs/1602.02068.

Cost O(T² log T) in time for the sorting, O(T²) in memory.

Shapes: B batch, H heads, T queries, S keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from attnlab.attention.weigh.sparse import below_best, ranks, through
from attnlab.attention.weigh.weigh import Weigh


@dataclass(frozen=True, kw_only=True)
class Sparsemax(Weigh):
    """Weights that add up to one, many of them exactly zero."""

    sums_to_one: ClassVar[bool] = True

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        weights: Tensor = _Sparsemax.apply(scores_BHTS, visible)
        return weights


class _Sparsemax(torch.autograd.Function):
    """With its gradient written out: only the weights themselves are kept for it."""

    @staticmethod
    def forward(ctx: Any, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        z_BHTS = below_best(scores_BHTS, visible)
        sorted_BHTS, rank_S = ranks(z_BHTS)
        thresholds = (sorted_BHTS.cumsum(-1) - 1) / rank_S
        size = (sorted_BHTS > thresholds).sum(-1, keepdim=True).clamp_min_(1)
        weights = (z_BHTS - thresholds.gather(-1, size - 1)).clamp_min_(0).masked_fill_(~visible, 0.0)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: Any, grad_BHTS: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        return through(grad_BHTS, (weights > 0).to(grad_BHTS.dtype)), None
