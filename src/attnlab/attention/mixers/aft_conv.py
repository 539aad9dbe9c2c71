"""AFT-conv: a learned number w per head and distance, zero beyond a window. Zhai et al. 2021,
https://arxiv.org/abs/2105.14103.

y_t = σ(q_t) ⊙ Σ_{s≤t} e^(w_{t-s} + k_s) ⊙ v_s / Σ_{s≤t} e^(w_{t-s} + k_s), with w = 0 from `window` on.
Computed densely, O(T²·D) in time; any length; the decoding state is the window and one folded token, of
constant size.

Shapes: B batch, H heads, T queries, S keys, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.layout import Layout
from attnlab.attention.mixer import Mixer, State
from attnlab.attention.mixers.aft import AftLayer, average_of_pairs
from attnlab.attention.mixers.recent import RecentAndFolded
from attnlab.attention.mixers.refusal import unless_embedded
from attnlab.attention.position import Position
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class AftConv(Mixer):
    """AFT with a bias per head and distance, all zero to begin with."""

    hides_future: ClassVar[bool] = True
    window: Positive = 16

    def build(self, dims: Dims) -> AftConvLayer:
        return AftConvLayer(self.window, dims)

    def refuses(self, position: Position) -> str | None:
        return unless_embedded(self, position)


class AftWindowedLayer(AftLayer):
    """An AFT whose biases are zero from `window` tokens back."""

    def __init__(self, window: int, dims: Dims) -> None:
        super().__init__(dims)
        self.window = window

    def begin(self) -> RecentAndFolded:
        return RecentAndFolded(self.window)

    def average(self, k_BHTd: Tensor, v_BHTd: Tensor, layout: Layout, state: State | None) -> Tensor:
        queries = keys = layout.positions_T
        if isinstance(state, RecentAndFolded):
            k_BHTd, v_BHTd, keys = state.append(k_BHTd, v_BHTd)
        return average_of_pairs(self.pair_biases(queries, keys), keys <= queries[:, None], k_BHTd, v_BHTd)


class AftConvLayer(AftWindowedLayer):
    """A kernel per head."""

    def __init__(self, window: int, dims: Dims) -> None:
        super().__init__(window, dims)
        self.kernel = nn.Parameter(torch.zeros(dims.heads, window))

    def pair_biases(self, queries_T: Tensor, keys_S: Tensor) -> Tensor:
        back_TS = queries_T[:, None] - keys_S
        within = (back_TS >= 0) & (back_TS < self.window)
        return self.kernel[:, back_TS.clamp(0, self.window - 1)] * within
