"""AFT-local: a learned number w for every pair of positions less than a window apart. Zhai et al. 2021,
https://arxiv.org/abs/2105.14103.

As AFT-full, with w = 0 from `window` on: everything is still seen, only its position is not. Computed
densely, O(T²·D) in time; it knows `context` positions; the decoding state is the window and one folded token,
of constant size.

Shapes: T queries, S keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.mixer import Mixer
from attnlab.attention.mixers.aft_conv import AftWindowedLayer
from attnlab.attention.mixers.refusal import unless_embedded
from attnlab.attention.position import Position
from attnlab.errors import RequestError
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class AftLocal(Mixer):
    """AFT with a bias per pair of positions in the window, all zero to begin with."""

    hides_future: ClassVar[bool] = True
    window: Positive = 16

    def build(self, dims: Dims) -> AftLocalLayer:
        return AftLocalLayer(self.window, dims)

    def refuses(self, position: Position) -> str | None:
        return unless_embedded(self, position)


class AftLocalLayer(AftWindowedLayer):
    """For every position, the biases towards itself and those before it in the window."""

    def __init__(self, window: int, dims: Dims) -> None:
        super().__init__(window, dims)
        self.table = nn.Parameter(torch.zeros(dims.context, window))

    def pair_biases(self, queries_T: Tensor, keys_S: Tensor) -> Tensor:
        if int(queries_T[-1]) >= len(self.table):
            raise RequestError(
                f"the mixer 'aft-local' has biases for {len(self.table)} positions, and there is one at "
                f"{int(queries_T[-1])}; raise `context`, or use 'aft-conv', which has no end"
            )
        back_TS = queries_T[:, None] - keys_S
        within = (back_TS >= 0) & (back_TS < self.window)
        biases_TS = self.table[queries_T[:, None], back_TS.clamp(0, self.window - 1)] * within
        return biases_TS[None]
