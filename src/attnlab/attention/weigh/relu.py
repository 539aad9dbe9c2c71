"""ReLU weighing: max(s, 0) / n for n visible keys. Wortsman et al. 2023, https://arxiv.org/abs/2309.08586.

Cost O(T²) in time and memory.

Shapes: B batch, H heads, T queries, S keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attnlab.attention.weigh.weigh import Weigh


@dataclass(frozen=True, kw_only=True)
class Relu(Weigh):
    """Weights that grow with the score and are zero below zero; no row adds up to anything in particular."""

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        count_BHT1 = visible.sum(-1, keepdim=True).clamp_min(1).to(scores_BHTS.dtype)
        return (scores_BHTS.relu() / count_BHT1).masked_fill(~visible, 0.0)
