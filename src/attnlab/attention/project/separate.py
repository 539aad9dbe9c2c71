"""Separate projections: one linear layer each for queries, keys and values (Vaswani et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.project.project import Project, Projection


@dataclass(frozen=True, kw_only=True)
class Separate(Project):
    """q, k and v from three linear layers of their own."""

    bias: bool = True

    def build(self, dims: Dims) -> SeparateProjection:
        return SeparateProjection(dims, self.bias)


class SeparateProjection(Projection):
    """Three linear layers, kept apart so that arms that share some of them start from the same values."""

    def __init__(self, dims: Dims, bias: bool) -> None:
        super().__init__()
        self.heads = dims.heads
        self.query = nn.Linear(dims.width, dims.width, bias)
        self.key = nn.Linear(dims.width, dims.width, bias)
        self.value = nn.Linear(dims.width, dims.width, bias)

    def forward(self, x_ND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # One product instead of three: at small widths the number of operations is what costs.
        layers = (self.query, self.key, self.value)
        weight = torch.cat([layer.weight for layer in layers])
        bias = torch.cat([layer.bias for layer in layers]) if self.query.bias is not None else None
        q, k, v = F.linear(x_ND, weight, bias).unflatten(-1, (3, self.heads, -1)).unbind(1)
        return q, k, v
