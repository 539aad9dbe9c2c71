"""Fewer key and value heads than query heads. One for all: Shazeer 2019 (multi-query),
https://arxiv.org/abs/1911.02150; one for each group: Ainslie et al. 2023 (grouped-query),
https://arxiv.org/abs/2305.13245.

What it saves is the decoding state: G/H of the keys and values. Cost O(T·D²).

Shapes: N tokens, D model width, H query heads, G key/value heads, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.project.project import Project, Projection
from attnlab.errors import RequestError
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class Grouped(Project):
    """`key_value_heads` heads of keys and values, each shared by a group of query heads; 1 is multi-query."""

    key_value_heads: Positive = 1
    bias: bool = True

    def misfit(self, dims: Dims) -> str | None:
        if dims.heads % self.key_value_heads == 0:
            return None
        divisors = ", ".join(str(n) for n in range(1, dims.heads + 1) if dims.heads % n == 0)
        return (
            f"project 'grouped': {dims.heads} query heads cannot share {self.key_value_heads} "
            f"key/value heads evenly (valid: {divisors})"
        )

    def build(self, dims: Dims) -> GroupedProjection:
        reason = self.misfit(dims)
        if reason:
            raise RequestError(reason)
        return GroupedProjection(dims, self.key_value_heads, self.bias)


class GroupedProjection(Projection):
    """Three linear layers, two of them narrow."""

    def __init__(self, dims: Dims, key_value_heads: int, bias: bool) -> None:
        super().__init__()
        self.head_width = dims.head_width
        narrow = key_value_heads * dims.head_width
        self.query = nn.Linear(dims.width, dims.width, bias)
        self.key = nn.Linear(dims.width, narrow, bias)
        self.value = nn.Linear(dims.width, narrow, bias)

    def forward(self, x_ND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (
            layer(x_ND).unflatten(-1, (-1, self.head_width)) for layer in (self.query, self.key, self.value)
        )
        return q, k, v
