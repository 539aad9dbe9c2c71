"""Differential attention: the difference of two attention maps. Ye et al. 2024,
https://arxiv.org/abs/2410.05258.

y = RMSNorm((A₁ - λ A₂) v)·(1 - λ₀), where A₁ and A₂ come from the two halves of q and k and
λ = e^(λq₁·λk₁) - e^(λq₂·λk₂) + λ₀. What both maps see cancels, as noise does between two microphones.
Cost O(T²·d) in time, O(T) in memory on the fused path; the decoding state is every key and value.

Shapes: N tokens, B batch, H heads, G key/value heads, M maps (2H), T queries, S keys, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from attnlab.attention.core import Core
from attnlab.attention.dims import Dims
from attnlab.attention.operator import Attention
from attnlab.spec import Rate


@dataclass(frozen=True, kw_only=True)
class Differential(Attention):
    """Attention whose every head subtracts a second map; λ begins at `start`, as λ₀."""

    start: Rate = 0.8

    def misfit(self, dims: Dims) -> str | None:
        if dims.head_width % 2:
            return (
                f"mixer 'differential' halves every head, and {dims.head_width} places "
                f"(width {dims.width} over heads {dims.heads}) have no halves"
            )
        return super().misfit(dims)

    def core(self, dims: Dims) -> DifferentialCore:
        return DifferentialCore(self, dims)


class DifferentialCore(Core):
    """2H maps of half the width, first those of the first halves, and what makes one of each two."""

    keeps_sums = False  # they sum to 1 - λ

    def __init__(self, parts: Differential, dims: Dims) -> None:
        halves = replace(dims, heads=2 * dims.heads)
        super().__init__(parts, halves)
        self.factor = Factor(halves.head_width, parts.start)
        self.norm = nn.RMSNorm(dims.head_width, eps=1e-5)

    def apart(self, q_NHd: Tensor, k_NGd: Tensor, v_NGd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return _halves(q_NHd), _halves(k_NGd), torch.cat([v_NGd, v_NGd], dim=1)

    def together(self, mixed_BMTd: Tensor) -> Tensor:
        normed: Tensor = self.norm(self.of_heads(mixed_BMTd))
        return normed * (1 - self.factor.start)

    def of_heads(self, weights_BMTS: Tensor) -> Tensor:
        first, second = weights_BMTS.unflatten(1, (2, -1)).unbind(1)
        return first - self.factor() * second


def _halves(x_NHd: Tensor) -> Tensor:
    """The first halves of all heads, then the second ones."""
    return x_NHd.unflatten(-1, (2, -1)).movedim(-2, 1).flatten(1, 2)


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
