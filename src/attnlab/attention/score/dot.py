"""Scaled dot product: q·k / √d. Vaswani et al. 2017, https://arxiv.org/abs/1706.03762.

Cost O(T²·d) in time; O(T) in memory on the fused path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.attention.score.score import Score


@dataclass(frozen=True, kw_only=True)
class Dot(Score):
    """q·k / √d, with d the width of one head."""

    def __call__(self, q_BHTd: Tensor, k_BHSd: Tensor) -> Tensor:
        return (q_BHTd / math.sqrt(q_BHTd.shape[-1])) @ k_BHSd.transpose(-2, -1)

    def dot_scale(self, dims: Dims) -> float:
        return 1.0 / math.sqrt(dims.head_width)
