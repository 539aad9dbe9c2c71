"""T5's relative bias: a learned number per head and bucket of distances, added to the scores.
Raffel et al. 2019, https://arxiv.org/abs/1910.10683.

Short distances have a bucket each, longer ones share them on a logarithmic scale, and all from `furthest` on
share the last, so any distance has a number. Fused, as a mask that holds numbers. Cost O(H·T²) for that mask.

Shapes: H heads, T queries, S keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.position.position import Position, PositionScheme
from attnlab.errors import RequestError
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class T5Bias(Position):
    """A learned bias by distance. `sees` is what it tells apart: the past only, as in a decoder, or `both`
    sides, as in an encoder, with half of the buckets for each."""

    enters: ClassVar[Literal["scores"]] = "scores"
    buckets: Positive = 32
    furthest: Positive = 128
    sees: Literal["past", "both"] = "past"

    def misfit(self, dims: Dims) -> str | None:
        one_each = self.buckets // (4 if self.sees == "both" else 2)
        if 1 <= one_each < self.furthest:
            return None
        return (
            f"position 't5-bias': {self.buckets} buckets give {one_each} distances one of their own; "
            f"that must be at least 1 and less than furthest = {self.furthest}"
        )

    def build(self, dims: Dims) -> T5RelativeBias:
        reason = self.misfit(dims)
        if reason:
            raise RequestError(reason)
        return T5RelativeBias(self, dims.heads)


class T5RelativeBias(PositionScheme):
    """The table of biases, shared by all layers."""

    def __init__(self, spec: T5Bias, heads: int) -> None:
        super().__init__()
        self.spec = spec
        self.table = nn.Embedding(spec.buckets, heads)

    def bias(self, queries_T: Tensor, keys_S: Tensor) -> Tensor:
        buckets_TS = self._bucket(keys_S - queries_T[:, None])
        biases: Tensor = self.table(buckets_TS).permute(2, 0, 1)
        return biases

    def _bucket(self, ahead_TS: Tensor) -> Tensor:
        if self.spec.sees == "past":
            return self._by_distance((-ahead_TS).clamp_min(0), self.spec.buckets)
        half = self.spec.buckets // 2
        return self._by_distance(ahead_TS.abs(), half) + half * (ahead_TS > 0)

    def _by_distance(self, far_TS: Tensor, buckets: int) -> Tensor:
        exact = buckets // 2
        growth = (far_TS.clamp_min(exact) / exact).log() / math.log(self.spec.furthest / exact)
        shared_TS = exact + (growth * (buckets - exact)).long()
        return torch.where(far_TS < exact, far_TS, shared_TS.clamp_max(buckets - 1))
