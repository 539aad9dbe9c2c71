"""The repetition penalty of CTRL. Keskar et al. 2019, https://arxiv.org/abs/1909.05858."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.decoding.strategy import Filter
from attnlab.spec import PositiveFloat


@dataclass(frozen=True, kw_only=True)
class RepetitionPenalty(Filter):
    """Makes every token that is there already, in the prompt too, less likely: a positive logit is divided by
    the penalty, a negative one multiplied. What it does depends on where zero is, so it stands first."""

    penalty: PositiveFloat = 1.2

    def __str__(self) -> str:
        return f"penalise what is there already by {self.penalty:g}"

    def __call__(self, logits_BV: Tensor, written_BT: Tensor) -> Tensor:
        there_BT = logits_BV.gather(1, written_BT)
        less_BT = torch.where(there_BT < 0, there_BT * self.penalty, there_BT / self.penalty)
        return logits_BV.scatter(1, written_BT, less_BT)
