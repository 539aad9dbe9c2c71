"""Straight-through argmax: forward the best key, backward as if it had been a softmax.
Bengio et al. 2013, https://arxiv.org/abs/1308.3432; Jang et al. 2017, https://arxiv.org/abs/1611.01144.

The gradient is an estimate: it is not the derivative of what was computed.
Cost O(T²) in time and memory.

Shapes: B batch, H heads, T queries, S keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from attnlab.attention.weigh.argmax import Argmax
from attnlab.attention.weigh.softmax import Softmax
from attnlab.attention.weigh.weigh import Weigh


@dataclass(frozen=True, kw_only=True)
class StraightThroughArgmax(Weigh):
    """Argmax with softmax's gradient."""

    has_exact_gradient: ClassVar[bool] = False
    sums_to_one: ClassVar[bool] = True

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        soft_BHTS = Softmax()(scores_BHTS, visible)
        # In this order the bracket is exactly zero, and the weights exactly zero or one.
        return Argmax()(scores_BHTS, visible) + (soft_BHTS - soft_BHTS.detach())
