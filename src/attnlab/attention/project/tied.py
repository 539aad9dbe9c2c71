"""Tied projections: one linear layer for two or all three of queries, keys and values.

Q = K makes the scores symmetric (Kitaev et al. 2020, Reformer, https://arxiv.org/abs/2001.04451).
Cost O(T·D²) per distinct layer.

A part that stays apart keeps the module name it has in `Separate`, so that arms share its initial values.

Shapes: N tokens, D model width, H heads, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.project.project import Project, Projection


@dataclass(frozen=True, kw_only=True)
class QueryIsKey(Project):
    """Q = K, and values of their own."""

    bias: bool = True

    def build(self, dims: Dims) -> TiedProjection:
        return TiedProjection(dims, self.bias, query="query", key="query", value="value")


@dataclass(frozen=True, kw_only=True)
class KeyIsValue(Project):
    """K = V, and queries of their own."""

    bias: bool = True

    def build(self, dims: Dims) -> TiedProjection:
        return TiedProjection(dims, self.bias, query="query", key="key", value="key")


@dataclass(frozen=True, kw_only=True)
class QueryIsKeyIsValue(Project):
    """Q = K = V."""

    bias: bool = True

    def build(self, dims: Dims) -> TiedProjection:
        return TiedProjection(dims, self.bias, query="query", key="query", value="query")


class TiedProjection(Projection):
    """As many linear layers as there are different names among the three roles."""

    def __init__(self, dims: Dims, bias: bool, **layer_of: str) -> None:
        super().__init__()
        self.heads, self.layer_of = dims.heads, layer_of
        for name in dict.fromkeys(layer_of.values()):
            self.add_module(name, nn.Linear(dims.width, dims.width, bias))

    def forward(self, x_ND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        made = {name: layer(x_ND).unflatten(-1, (self.heads, -1)) for name, layer in self.named_children()}
        return made[self.layer_of["query"]], made[self.layer_of["key"]], made[self.layer_of["value"]]
