"""Sliding window: a position sees itself and the few before it. Child et al. 2019,
https://arxiv.org/abs/1904.10509; Beltagy et al. 2020, https://arxiv.org/abs/2004.05150.

Fused like every mask before the softmax. Computed densely: the cost stays O(T²).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from attnlab.attention.mask.mask import Mask
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class Window(Mask):
    """Visible: the last `size` keys, the query's own among them."""

    hides_future: ClassVar[bool] = True
    size: Positive = 16

    def visible(self, queries_T: Tensor, keys_S: Tensor) -> Tensor:
        back_TS = queries_T[:, None] - keys_S
        return (back_TS >= 0) & (back_TS < self.size)
