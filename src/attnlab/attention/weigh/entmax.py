"""1.5-entmax: max(s/2 - τ, 0)², between softmax and sparsemax. Peters et al. 2019,
https://arxiv.org/abs/1905.05702.

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
class Entmax15(Weigh):
    """Weights that add up to one, smoother than sparsemax's, some of them exactly zero."""

    sums_to_one: ClassVar[bool] = True

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        weights: Tensor = _Entmax15.apply(scores_BHTS, visible)
        return weights


class _Entmax15(torch.autograd.Function):
    """With its gradient written out: only the weights themselves are kept for it."""

    @staticmethod
    def forward(ctx: Any, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        z_BHTS = below_best(scores_BHTS / 2, visible)
        sorted_BHTS, rank_S = ranks(z_BHTS)
        # With the best n in the support, Σ (z - τ)² = 1 is a quadratic equation in τ.
        mean = sorted_BHTS.cumsum(-1) / rank_S
        spread = sorted_BHTS.square().cumsum(-1) - rank_S * mean.square()
        thresholds = mean - ((1 - spread) / rank_S).clamp_min_(0).sqrt_()
        size = (sorted_BHTS >= thresholds).sum(-1, keepdim=True).clamp_min_(1)
        root = (z_BHTS - thresholds.gather(-1, size - 1)).clamp_min_(0).masked_fill_(~visible, 0.0)
        ctx.save_for_backward(root)
        return root.square()

    @staticmethod
    def backward(ctx: Any, grad_BHTS: Tensor) -> tuple[Tensor, None]:
        (root,) = ctx.saved_tensors
        return through(grad_BHTS, root), None
