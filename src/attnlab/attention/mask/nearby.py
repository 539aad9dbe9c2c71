"""Sliding window to both sides, for encoders: a position sees its neighbourhood. Beltagy et al. 2020,
https://arxiv.org/abs/2004.05150.

Fused like every mask before the softmax. Computed densely: the cost stays O(T²).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attnlab.attention.mask.mask import Mask
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class Nearby(Mask):
    """Visible: every key at most `reach` places away, before or after."""

    reach: Positive = 8

    def visible(self, queries_T: Tensor, keys_S: Tensor) -> Tensor:
        return (queries_T[:, None] - keys_S).abs() <= self.reach
