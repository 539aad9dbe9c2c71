"""Min-p. Nguyen et al. 2024, https://arxiv.org/abs/2407.01082."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from attnlab.decoding.strategy import Filter, best, only


@dataclass(frozen=True, kw_only=True)
class MinP(Filter):
    """The tokens that have at least the share p of the likeliest one's chance."""

    p: Annotated[float, Field(ge=0.0, le=1.0)] = 0.05

    def __str__(self) -> str:
        return f"keep what has {self.p:g} of the likeliest one's chance"

    def __call__(self, logits_BV: Tensor, written_BT: Tensor) -> Tensor:
        if self.p == 1:
            return only(best(logits_BV), logits_BV)
        chances_BV = logits_BV.softmax(-1)
        return only(chances_BV >= self.p * chances_BV.amax(-1, keepdim=True), logits_BV)
