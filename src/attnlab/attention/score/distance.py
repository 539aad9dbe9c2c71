"""Distance score: -|q - k|² / √d, a Gaussian kernel once it is under a softmax (Tsai et al. 2019,
https://arxiv.org/abs/1908.11775).

It is 2·q·k - |q|² - |k|², so two columns more on q and k make it a dot product, and it is fused as one.
Cost O(T²·d) in time; O(T) in memory on the fused path.

Shapes: B batch, H heads, T queries, S keys, d head width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.attention.score.score import Score


@dataclass(frozen=True, kw_only=True)
class Distance(Score):
    """The negative squared distance between query and key, over √d."""

    def __call__(self, q_BHTd: Tensor, k_BHSd: Tensor) -> Tensor:
        q, k = self.as_dot(q_BHTd, k_BHSd)
        return (q / math.sqrt(q_BHTd.shape[-1])) @ k.transpose(-2, -1)

    def dot_scale(self, dims: Dims) -> float:
        return 1.0 / math.sqrt(dims.head_width)

    def as_dot(self, q_BHTd: Tensor, k_BHSd: Tensor) -> tuple[Tensor, Tensor]:
        q2, k2 = q_BHTd.square().sum(-1, keepdim=True), k_BHSd.square().sum(-1, keepdim=True)
        queries = torch.cat([2 * q_BHTd, -q2, torch.ones_like(q2)], dim=-1)
        return queries, torch.cat([k_BHSd, torch.ones_like(k2), -k2], dim=-1)
