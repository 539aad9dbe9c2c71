"""Softmax: e^s over the sum of e^s of every visible key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.attention.weigh.weigh import Weigh


@dataclass(frozen=True, kw_only=True)
class Softmax(Weigh):
    """Weights that are positive and add up to one."""

    is_softmax: ClassVar[bool] = True
    sums_to_one: ClassVar[bool] = True

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        # The lowest finite number instead of -inf: a row that sees nothing would otherwise be 0/0.
        hidden = torch.finfo(scores_BHTS.dtype).min
        weights_BHTS = scores_BHTS.masked_fill(~visible, hidden).softmax(-1)
        if visible.any(-1).all():  # then what is hidden is at zero already, and a copy is saved
            return weights_BHTS
        return weights_BHTS.masked_fill(~visible, 0.0)
