"""ALiBi: -m·|t - s| added to the scores, with a slope m per head. Press et al. 2021,
https://arxiv.org/abs/2108.12409.

Nothing is learned, and any distance has a penalty. Fused, as a mask that holds numbers.
Cost O(H·T²) for that mask.

Shapes: H heads, T queries, S keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.attention.position.position import Position, PositionScheme


@dataclass(frozen=True, kw_only=True)
class Alibi(Position):
    """A penalty linear in the distance.

    `slopes = "per-head"` is the published scheme, whose slopes fall geometrically from head to head.
    `slopes = "one"` gives every head the first and steepest of them, a variant seen in the wild: there, no
    head can look far.
    """

    enters: ClassVar[Literal["scores"]] = "scores"
    slopes: Literal["per-head", "one"] = "per-head"

    def build(self, dims: Dims) -> AlibiBias:
        per_head = published_slopes(dims.heads)
        return AlibiBias(per_head if self.slopes == "per-head" else per_head[:1] * dims.heads)


class AlibiBias(PositionScheme):
    """The penalty for every head. Slopes follow from the declaration, so no checkpoint holds them."""

    slopes_H: Tensor

    def __init__(self, slopes: list[float]) -> None:
        super().__init__()
        self.register_buffer("slopes_H", torch.tensor(slopes), persistent=False)

    def bias(self, queries_T: Tensor, keys_S: Tensor) -> Tensor:
        far_TS = (queries_T[:, None] - keys_S).abs().to(self.slopes_H.dtype)
        return -self.slopes_H[:, None, None] * far_TS


def published_slopes(heads: int) -> list[float]:
    """2^(-8h/H) for H a power of two; for others the paper's: those of the power below, then every second
    one of the power above."""
    below = 1 << int(math.log2(heads))
    slopes = [2.0 ** (-8.0 * h / below) for h in range(1, below + 1)]
    return slopes + [2.0 ** (-4.0 * h / below) for h in range(1, 2 * (heads - below), 2)]
