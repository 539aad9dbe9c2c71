"""Sinusoidal positions: sin and cos of p / 10000^(2i/D). Vaswani et al. 2017, https://arxiv.org/abs/1706.03762.

Nothing is learned, and any position has a vector. Cost O(T·D).

Shapes: N tokens, D model width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.attention.position.position import Position, PositionScheme
from attnlab.spec import PositiveFloat


@dataclass(frozen=True, kw_only=True)
class Sinusoidal(Position):
    """A fixed vector per position, `amplitude` times sin in its even places and cos in its odd ones."""

    amplitude: PositiveFloat = 1.0

    def build(self, dims: Dims) -> SinusoidalPositions:
        return SinusoidalPositions(self.amplitude)


class SinusoidalPositions(PositionScheme):
    """Computed as they are needed: a table would have an end."""

    def __init__(self, amplitude: float) -> None:
        super().__init__()
        self.amplitude = amplitude

    def embed(self, x_ND: Tensor, positions_N: Tensor) -> Tensor:
        waves_ND = sinusoids(positions_N, x_ND.shape[-1])
        return x_ND + (self.amplitude * waves_ND).to(x_ND.dtype)


def sinusoids(positions_N: Tensor, width: int) -> Tensor:
    """(N, width): sines and cosines by turns, each pair slower than the one before."""
    pair = torch.arange(0, width, 2, device=positions_N.device, dtype=torch.float64)
    angles = positions_N[:, None] * torch.exp(pair * (-math.log(10_000.0) / width))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[:, :width]
