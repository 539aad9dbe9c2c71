"""Talking heads: heads exchange their scores before the weighing, and their weights after it.
Shazeer et al. 2020, https://arxiv.org/abs/2003.02436.

weights = P_w · weigh(P_l · scores), with two H × H matrices that start as the identity: plain attention.
Cost O(T²·(d + H)) in time, O(H·T²) in memory, since the scores must be held; the decoding state is every key
and value.

Shapes: B batch, H heads, T queries, S keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnlab.attention.core import Core
from attnlab.attention.dims import Dims
from attnlab.attention.operator import Attention
from attnlab.attention.weigh import Weigh


@dataclass(frozen=True, kw_only=True)
class TalkingHeads(Attention):
    """Attention whose heads are mixed before and after the weighing."""

    def not_softmax_because(self) -> str:
        return "heads exchange their scores before the softmax"

    def core(self, dims: Dims) -> TalkingCore:
        return TalkingCore(self, dims)


class TalkingCore(Core):
    """Attention with a weighing that spans the heads."""

    keeps_sums = False  # once the heads have exchanged their weights

    def __init__(self, parts: TalkingHeads, dims: Dims) -> None:
        super().__init__(parts, dims)
        self.weigh: TalkingWeigh = TalkingWeigh(parts.weigh, dims.heads)


class TalkingWeigh(nn.Module):
    """A weighing between two exchanges. What is hidden from one head is hidden from all, so it stays zero."""

    def __init__(self, weigh: Weigh, heads: int) -> None:
        super().__init__()
        self.weigh = weigh
        self.of_scores = nn.Parameter(torch.empty(heads, heads))
        self.of_weights = nn.Parameter(torch.empty(heads, heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.eye_(self.of_scores)
        nn.init.eye_(self.of_weights)

    def forward(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        weights_BHTS = self.weigh(_exchange(self.of_scores, scores_BHTS), visible)
        return _exchange(self.of_weights, weights_BHTS)


def _exchange(matrix_GH: Tensor, x_BHTS: Tensor) -> Tensor:
    return (matrix_GH @ x_BHTS.flatten(2)).unflatten(2, x_BHTS.shape[2:])
