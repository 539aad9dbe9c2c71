"""Differential attention: the difference of two attention maps. Ye et al. 2024,
https://arxiv.org/abs/2410.05258.

y = RMSNorm((A₁ - λ A₂) v)·(1 - λ₀), where A₁ and A₂ come from the two halves of q and k and
λ = e^(λq₁·λk₁) - e^(λq₂·λk₂) + λ₀. What both maps see cancels, as noise does between two microphones.
Cost O(T²·d) in time, O(T) in memory on the fused path; the decoding state is every key and value.

Shapes: N tokens, D model width, B batch, H heads (2H maps), T queries, S keys, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.layout import Layout
from attnlab.attention.mixer import State
from attnlab.attention.operator import Attention, AttentionLayer
from attnlab.attention.position import PositionScheme
from attnlab.errors import RequestError
from attnlab.spec import Rate


@dataclass(frozen=True, kw_only=True)
class Differential(Attention):
    """Attention whose every head subtracts a second map; λ begins at `start`, as λ₀."""

    start: Rate = 0.8

    def build(self, dims: Dims) -> DifferentialLayer:
        if dims.head_width % 2:
            raise RequestError(
                f"the mixer 'differential' halves every head, and {dims.head_width} places "
                f"(width {dims.width} over heads {dims.heads}) have no halves"
            )
        return DifferentialLayer(self, dims)


class DifferentialLayer(AttentionLayer):
    """Attention with 2H maps of half the width, and what makes one of each two."""

    def __init__(self, parts: Differential, dims: Dims) -> None:
        super().__init__(parts, dims)
        halves = replace(dims, heads=2 * dims.heads)
        self.score, self.scale = parts.score.build(halves), parts.score.dot_scale(halves)
        self.as_dot = getattr(self.score, "as_dot", parts.score.as_dot)
        self.factor = Factor(halves.head_width, parts.start)
        self.norm = nn.RMSNorm(dims.head_width, eps=1e-5)
        self.rows_sum_to_one = False  # they sum to 1 - λ

    def mix(self, x_ND: Tensor, layout: Layout, position: PositionScheme, state: State | None) -> Tensor:
        difference = self._subtract(super().mix(x_ND, layout, position, state))
        normed: Tensor = self.norm(difference)
        return normed * (1 - self.factor.start)

    def weights(self, x_ND: Tensor, layout: Layout, position: PositionScheme) -> Tensor:
        return self._subtract(super().weights(x_ND, layout, position))

    def _heads(self, x_ND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q_NHd, k_NGd, v_NGd = super()._heads(x_ND)
        q, k = (x.unflatten(-1, (2, -1)).flatten(1, 2) for x in (q_NHd, k_NGd))
        return q, k, v_NGd.repeat_interleave(2, dim=1)

    def _subtract(self, maps: Tensor) -> Tensor:
        first, second = maps.unflatten(1, (-1, 2)).unbind(2)
        return first - self.factor() * second


class Factor(nn.Module):
    """λ, one for all heads."""

    def __init__(self, width: int, start: float) -> None:
        super().__init__()
        self.start = start
        self.vectors = nn.Parameter(torch.empty(2, 2, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.vectors, std=0.1)

    def forward(self) -> Tensor:
        first, second = self.vectors.prod(1).sum(-1).exp()
        return first - second + self.start
