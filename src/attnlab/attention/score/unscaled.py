"""Unscaled dot product: q·k. Luong et al. 2015, https://arxiv.org/abs/1508.04025.

Its variance grows with the head width d, which is why the dot product came to be divided by √d.
Cost O(T²·d) in time; O(T) in memory on the fused path.

Shapes: B batch, H heads, T queries, S keys, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.attention.score.score import Score


@dataclass(frozen=True, kw_only=True)
class Unscaled(Score):
    """q·k, as it is."""

    def __call__(self, q_BHTd: Tensor, k_BHSd: Tensor) -> Tensor:
        return q_BHTd @ k_BHSd.transpose(-2, -1)

    def dot_scale(self, dims: Dims) -> float:
        return 1.0
