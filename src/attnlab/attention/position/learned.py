"""Learned positions: a vector per position, added to the token's (Vaswani et al. 2017; GPT-2)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.position.position import Position, PositionScheme


@dataclass(frozen=True, kw_only=True)
class Learned(Position):
    """One learned vector for each of the `context` positions; further ones are unknown to it."""

    def build(self, dims: Dims) -> LearnedPositions:
        return LearnedPositions(dims)


class LearnedPositions(PositionScheme):
    """The table of position vectors."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.table = nn.Embedding(dims.context, dims.width)
        self.longest = dims.context

    def embed(self, x_ND: Tensor, positions_N: Tensor) -> Tensor:
        return x_ND + self.table(positions_N)
