"""Linear attention: φ(x) = elu(x) + 1. Katharopoulos et al. 2020, https://arxiv.org/abs/2006.16236.

y_t = φ(q_t)·Σ_{s≤t} φ(k_s) v_sᵀ / φ(q_t)·Σ_{s≤t} φ(k_s). Cost O(T·d²) in time and memory; the decoding state
is a d × d matrix per head.

Shapes: B batch, H heads, T tokens, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.attention.mixer import Mixer
from attnlab.attention.mixers.feature_maps import FeatureMap, FeatureMapLayer
from attnlab.attention.mixers.refusal import unless_embedded
from attnlab.attention.position import Position


@dataclass(frozen=True, kw_only=True)
class LinearAttention(Mixer):
    """Attention with the kernel (elu(q) + 1)·(elu(k) + 1)."""

    hides_future: ClassVar[bool] = True

    def build(self, dims: Dims) -> FeatureMapLayer:
        return FeatureMapLayer(EluPlusOne(), dims)

    def refuses(self, position: Position) -> str | None:
        return unless_embedded(self, position)


class EluPlusOne(FeatureMap):
    """log(elu(x) + 1): x below zero, log(1 + x) above."""

    def forward(self, x_BHTd: Tensor) -> Tensor:
        return torch.where(x_BHTd < 0, x_BHTd, x_BHTd.clamp_min(0).log1p())
