"""Rotary positions: pairs of q and k turned by an angle p·θ_i, so that q·k depends on how far apart they are.
Su et al. 2021, https://arxiv.org/abs/2104.09864.

Pairs are (x_i, x_{i + d/2}), as in Llama. Fused: only q and k change. Cost O(T·d).

Shapes: B batch, H heads, T tokens, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.attention.position.position import Position, PositionScheme
from attnlab.errors import RequestError
from attnlab.spec import PositiveFloat


@dataclass(frozen=True, kw_only=True)
class Rotary(Position):
    """Queries and keys turned by their position, with θ_i = base^(-2i/d)."""

    enters: ClassVar[Literal["queries and keys"]] = "queries and keys"
    base: PositiveFloat = 10_000.0

    def misfit(self, dims: Dims) -> str | None:
        if dims.head_width % 2 == 0:
            return None
        return (
            f"position 'rotary' turns pairs, and a head of width {dims.head_width} "
            f"(width {dims.width} over heads {dims.heads}) has no even number of places"
        )

    def build(self, dims: Dims) -> RotaryPositions:
        reason = self.misfit(dims)
        if reason:
            raise RequestError(reason)
        return RotaryPositions(self.base)


class RotaryPositions(PositionScheme):
    """Angles are computed as they are needed, in double precision: they are small beside everything else."""

    def __init__(self, base: float) -> None:
        super().__init__()
        self.base = base

    def turn(self, x_BHTd: Tensor, positions_T: Tensor) -> Tensor:
        if x_BHTd.shape[-1] % 2:
            raise RequestError(f"position 'rotary' turns pairs, and {x_BHTd.shape[-1]} places make no pairs")
        half = x_BHTd.shape[-1] // 2
        i = torch.arange(half, device=x_BHTd.device, dtype=torch.float64)
        angles_Ti = positions_T[:, None] * self.base ** (-i / half)
        cos, sin = angles_Ti.cos().to(x_BHTd.dtype), angles_Ti.sin().to(x_BHTd.dtype)
        first, second = x_BHTd[..., :half], x_BHTd[..., half:]
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
