"""Sigmoid weighing: σ(s - log n) for n visible keys, so that a fresh row adds up to about one.
Ramapuram et al. 2024, https://arxiv.org/abs/2409.04431.

Every key is judged alone: a row need not add up to one. Cost O(T²) in time and memory.

Shapes: B batch, H heads, T queries, S keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.attention.weigh.weigh import Weigh


@dataclass(frozen=True, kw_only=True)
class Sigmoid(Weigh):
    """Weights between zero and one, each independent of the others."""

    offset: float = 0.0  # at 0 a row of equal scores weighs n/(n+1)

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        count_BHT1 = visible.sum(-1, keepdim=True).clamp_min(1).to(scores_BHTS.dtype)
        return torch.sigmoid(scores_BHTS - count_BHT1.log() + self.offset).masked_fill(~visible, 0.0)
