"""AFT-full: a learned number w for every pair of positions. Zhai et al. 2021,
https://arxiv.org/abs/2105.14103.

y_t = σ(q_t) ⊙ Σ_{s≤t} e^(w_ts + k_s) ⊙ v_s / Σ_{s≤t} e^(w_ts + k_s). Cost O(T²·D) in time, O(T² + T·D) in
memory; it knows `context` positions, and its decoding state is every key and value.

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
from attnlab.attention.mixers.refusal import unless_embedded
from attnlab.attention.operator import KeysAndValues
from attnlab.attention.position import Position
from attnlab.errors import RequestError


@dataclass(frozen=True, kw_only=True)
class AftFull(Mixer):
    """AFT with a bias per pair of positions, all zero to begin with."""

    hides_future: ClassVar[bool] = True

    def build(self, dims: Dims) -> AftFullLayer:
        return AftFullLayer(dims)

    def refuses(self, position: Position) -> str | None:
        return unless_embedded(self, position)


class AftFullLayer(AftLayer):
    """The table of pair biases."""

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.table = nn.Parameter(torch.zeros(dims.context, dims.context))

    def begin(self) -> KeysAndValues:
        return KeysAndValues()

    def pair_biases(self, queries_T: Tensor, keys_S: Tensor) -> Tensor:
        last = int(queries_T[-1])
        if last >= len(self.table):
            raise RequestError(
                f"the mixer 'aft-full' has biases for {len(self.table)} positions, and there is one at "
                f"{last}; raise `context`, or use 'aft-conv', which has no end"
            )
        # Positions follow one another, so a slice is all that is ever asked for.
        first = int(queries_T[0])
        return self.table[None, first : last + 1, : len(keys_S)]

    def average(self, k_BHTd: Tensor, v_BHTd: Tensor, layout: Layout, state: State | None) -> Tensor:
        if isinstance(state, KeysAndValues):
            k_BHTd, v_BHTd = state.append(k_BHTd, v_BHTd)
        queries, keys = layout.positions_T, torch.arange(k_BHTd.shape[2], device=k_BHTd.device)
        return average_of_pairs(self.pair_biases(queries, keys), keys <= queries[:, None], k_BHTd, v_BHTd)
