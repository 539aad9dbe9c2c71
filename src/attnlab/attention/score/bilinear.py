"""Bilinear score: qᵀ W k. Luong et al. 2015 ("general"), https://arxiv.org/abs/1508.04025.

Cost O(T²·d + T·d²) in time; O(T) in memory on the fused path, since (Wᵀq)·k is a dot product.

Shapes: B batch, H heads, T queries, S keys, d head width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.position import Position
from attnlab.attention.score.score import Score


@dataclass(frozen=True, kw_only=True)
class Bilinear(Score):
    """qᵀ W k, with one matrix for all heads."""

    def build(self, dims: Dims) -> BilinearScore:
        return BilinearScore(dims.head_width)

    def dot_scale(self, dims: Dims) -> float:
        return 1.0

    def refuses(self, position: Position) -> str | None:
        if position.enters == "queries and keys":
            return (
                f"position {position.name!r} needs a score in which turning q and k together cancels; "
                "with W between them it does not"
            )
        return None


class BilinearScore(nn.Module):
    """The matrix between query and key. It starts as the identity over √d: the scaled dot product."""

    def __init__(self, head_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(head_width, head_width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.eye_(self.weight)
        with torch.no_grad():
            self.weight.div_(math.sqrt(len(self.weight)))

    def forward(self, q_BHTd: Tensor, k_BHSd: Tensor) -> Tensor:
        return (q_BHTd @ self.weight) @ k_BHSd.transpose(-2, -1)

    def as_dot(self, q_BHTd: Tensor, k_BHSd: Tensor) -> tuple[Tensor, Tensor]:
        return q_BHTd @ self.weight, k_BHSd
