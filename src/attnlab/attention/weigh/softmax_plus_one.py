"""Softmax with one extra in the denominator: e^s / (1 + Σ e^s). Miller 2023,
https://www.evanmiller.org/attention-is-off-by-one.html.

A head that finds nothing can take (almost) nothing. It is a softmax over one key more, of score zero and
value zero, and is fused as one. Cost O(T²) in time; O(T) in memory on the fused path.

Shapes: B batch, H heads, T queries, S keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.attention.weigh.weigh import Weigh


@dataclass(frozen=True, kw_only=True)
class SoftmaxPlusOne(Weigh):
    """Positive weights that add up to less than one."""

    is_softmax: ClassVar[bool] = True
    adds_a_key: ClassVar[bool] = True

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        hidden_BHTS = scores_BHTS.masked_fill(~visible, torch.finfo(scores_BHTS.dtype).min)
        with_zero = torch.cat([hidden_BHTS, torch.zeros_like(hidden_BHTS[..., :1])], dim=-1)
        return with_zero.softmax(-1)[..., :-1].masked_fill(~visible, 0.0)
