"""A pre-norm transformer block: x + mix(norm x), then x + mlp(norm x); the second is left out where the MLP
is to have no width.

Shapes: N tokens of a flat stream, D model width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention import Dims, Layout, Mixer, PositionScheme, State
from attnlab.attention.dropout import dropout
from attnlab.attention.residual import EndsResidual


class Block(nn.Module):
    """One layer of a model."""

    def __init__(self, mixer: Mixer, dims: Dims, mlp_ratio: int) -> None:
        super().__init__()
        self.norm_mix = nn.LayerNorm(dims.width)
        self.mixer = mixer.build(dims)
        self.mlp: Mlp | None = None
        if mlp_ratio:
            self.norm_mlp = nn.LayerNorm(dims.width)
            self.mlp = Mlp(dims.width, mlp_ratio)
        self.dropout = dims.dropout

    def forward(
        self, x_ND: Tensor, layout: Layout, position: PositionScheme, state: State | None = None
    ) -> Tensor:
        mixed_ND = self._mix(self.norm_mix(x_ND), layout, position, state)
        x_ND = x_ND + dropout(mixed_ND, self.dropout, self.training)
        if self.mlp is None:
            return x_ND
        return x_ND + dropout(self.mlp(self.norm_mlp(x_ND)), self.dropout, self.training)

    def _mix(self, x_ND: Tensor, layout: Layout, position: PositionScheme, state: State | None) -> Tensor:
        buckets = layout.buckets if state is None else (layout,)
        if len(buckets) == 1:
            mixed_ND: Tensor = self.mixer(x_ND, layout, position, state)
            return mixed_ND
        pieces = x_ND.split([bucket.tokens for bucket in buckets])
        mixed = [self.mixer(x, bucket, position) for x, bucket in zip(pieces, buckets, strict=True)]
        return torch.cat(mixed)


class Mlp(nn.Module):
    """Two linear layers with a GELU between them."""

    def __init__(self, width: int, ratio: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, ratio * width)
        self.down = EndsResidual(ratio * width, width)

    def forward(self, x_ND: Tensor) -> Tensor:
        y_ND: Tensor = self.down(F.gelu(self.up(x_ND), approximate="tanh"))
        return y_ND
