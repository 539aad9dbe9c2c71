"""Fastformer: one global query and one global key per head, multiplied into every token. Wu et al. 2021,
https://arxiv.org/abs/2108.09084.

q̄ = Σ α_t q_t with α = softmax(w_q·q_t / √d); k̄ = Σ β_t (q̄ ⊙ k_t) with β = softmax(w_k·(q̄ ⊙ k_t) / √d);
y_t = W (k̄ ⊙ v_t) + q_t. Cost O(T·D) in time and memory. Every token depends on the whole sequence: it is for
encoders, and there is no decoding state.

Shapes: N tokens, B batch, H heads, T tokens, d head width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.layout import Layout
from attnlab.attention.mixer import Mixer, MixerLayer, State
from attnlab.attention.mixers.refusal import unless_embedded
from attnlab.attention.position import Position, PositionScheme
from attnlab.attention.project import Separate
from attnlab.attention.residual import EndsResidual
from attnlab.errors import RequestError


@dataclass(frozen=True, kw_only=True)
class Fastformer(Mixer):
    """Additive pooling to global vectors, and products with them."""

    hides_future: ClassVar[bool] = False

    def build(self, dims: Dims) -> FastformerLayer:
        return FastformerLayer(dims)

    def refuses(self, position: Position) -> str | None:
        return unless_embedded(self, position)


class FastformerLayer(MixerLayer):
    """Projections named as in attention, and what decides how much each token counts."""

    no_weights_because = (
        "every token is multiplied by one vector that stands for the whole sequence, so there are no weights "
        "from token to token"
    )

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.project = Separate().build(dims)
        self.pool_queries = Pool(dims)
        self.pool_keys = Pool(dims)
        self.merge = EndsResidual(dims.width, dims.width)

    def forward(
        self, x_ND: Tensor, layout: Layout, position: PositionScheme, state: State | None = None
    ) -> Tensor:
        if state is not None:
            self.begin()
        q_NHd, k_NHd, v_NHd = self.project(x_ND)
        q_BTHd, k_BTHd, v_BTHd = layout.pad(q_NHd), layout.pad(k_NHd), layout.pad(v_NHd)
        met_BTHd = self.pool_queries(q_BTHd, layout) * k_BTHd
        mixed_BTHd = self.pool_keys(met_BTHd, layout) * v_BTHd
        merged: Tensor = self.merge(layout.flatten(mixed_BTHd).flatten(1))
        return merged + q_NHd.flatten(1)

    def begin(self) -> State:
        raise RequestError(
            "mixer 'fastformer' cannot generate: every token it makes depends on the whole sequence"
        )


class Pool(nn.Module):
    """A weighted mean over the real tokens of every sequence, per head."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dims.heads, dims.head_width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x_BTHd: Tensor, layout: Layout) -> Tensor:
        scores_BTH = (x_BTHd * self.weight).sum(-1) / math.sqrt(self.weight.shape[1])
        scores_BTH = scores_BTH.masked_fill(~layout.real_BT[..., None], torch.finfo(scores_BTH.dtype).min)
        return (scores_BTH.softmax(1).unsqueeze(-1) * x_BTHd).sum(1, keepdim=True)
