"""FAVOR+: softmax attention estimated with positive orthogonal random features. Choromanski et al. 2020
(Performer), https://arxiv.org/abs/2009.14794.

φ(x) = e^(ω·x - |x|²/2) / √m with x = q/d^¼ or k/d^¼ and m directions ω; E φ(q)·φ(k) = e^(q·k/√d).
Cost O(T·m·d) in time and memory; the decoding state is an m × d matrix per head.

Shapes: B batch, H heads, T tokens, m features, d head width.
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
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class Favor(Mixer):
    """Attention through `features` random features, drawn once from the seed and saved with the model.

    Rotary positions work: they change q·k, and it is q·k that is estimated."""

    hides_future: ClassVar[bool] = True
    features: Positive = 64

    def build(self, dims: Dims) -> FeatureMapLayer:
        return FeatureMapLayer(PositiveRandomFeatures(self.features, dims.head_width), dims)

    def refuses(self, position: Position) -> str | None:
        return None if position.enters == "queries and keys" else unless_embedded(self, position)


class PositiveRandomFeatures(FeatureMap):
    """Fixed directions, the same for all heads."""

    directions_md: Tensor

    def __init__(self, features: int, head_width: int) -> None:
        super().__init__()
        self.register_buffer("directions_md", torch.empty(features, head_width))
        self.init_weights()

    def init_weights(self) -> None:
        """Orthogonal to one another in blocks of d, and as long as independent normal ones would be."""
        features, d = self.directions_md.shape
        blocks = [torch.linalg.qr(torch.randn(d, d)).Q for _ in range(-(-features // d))]
        lengths_m1 = torch.randn(features, d).norm(dim=1, keepdim=True)
        self.directions_md.copy_(torch.cat(blocks)[:features] * lengths_m1)

    def forward(self, x_BHTd: Tensor) -> Tensor:
        x_BHTd = x_BHTd * x_BHTd.shape[-1] ** -0.25
        # The factor 1/√m is the same for all features and cancels.
        return x_BHTd @ self.directions_md.to(x_BHTd.dtype).T - x_BHTd.square().sum(-1, keepdim=True) / 2
