"""Argmax: all the weight on the best key (the limit of softmax as its temperature goes to zero).

No gradient reaches the scores, so queries and keys cannot be trained through it; values can.
Cost O(T²) in time and memory.

Shapes: B batch, H heads, T queries, S keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.attention.weigh.weigh import Weigh


@dataclass(frozen=True, kw_only=True)
class Argmax(Weigh):
    """One for the best visible key (the first of several), zero for the others."""

    sums_to_one: ClassVar[bool] = True

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        best = scores_BHTS.detach().masked_fill(~visible, float("-inf")).argmax(-1, keepdim=True)
        return torch.zeros_like(scores_BHTS).scatter(-1, best, 1.0).masked_fill(~visible, 0.0)
