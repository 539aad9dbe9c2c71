"""Cosine score: cos(q, k) / τ. Henry et al. 2020 (query-key normalisation), https://arxiv.org/abs/2010.04245.

Scores lie between -1/τ and 1/τ whatever the size of queries and keys.
Cost O(T²·d) in time; O(T) in memory on the fused path.

Shapes: B batch, H heads, T queries, S keys, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.attention.score.score import Score
from attnlab.spec import PositiveFloat


@dataclass(frozen=True, kw_only=True)
class Cosine(Score):
    """The cosine of the angle between query and key, over a fixed temperature."""

    temperature: PositiveFloat = 0.1

    def __call__(self, q_BHTd: Tensor, k_BHSd: Tensor) -> Tensor:
        q, k = self.as_dot(q_BHTd, k_BHSd)
        return (q / self.temperature) @ k.transpose(-2, -1)

    def dot_scale(self, dims: Dims) -> float:
        return 1.0 / self.temperature

    def as_dot(self, q_BHTd: Tensor, k_BHSd: Tensor) -> tuple[Tensor, Tensor]:
        return F.normalize(q_BHTd, dim=-1), F.normalize(k_BHSd, dim=-1)
