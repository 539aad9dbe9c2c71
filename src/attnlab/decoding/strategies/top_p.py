"""Top-p, or nucleus sampling. Holtzman et al. 2019, https://arxiv.org/abs/1904.09751."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from attnlab.decoding.strategy import Filter, only


@dataclass(frozen=True, kw_only=True)
class TopP(Filter):
    """The fewest likeliest tokens that together have at least the chance p; always one."""

    p: Annotated[float, Field(ge=0.0, le=1.0)] = 0.7

    def __str__(self) -> str:
        return f"keep the likeliest that make up {self.p:g}"

    def __call__(self, logits_BV: Tensor, written_BT: Tensor) -> Tensor:
        if self.p == 1:
            return logits_BV
        return only(until(self.p, -logits_BV, logits_BV), logits_BV)


def until(share: float, rank_BV: Tensor, logits_BV: Tensor) -> Tensor:
    """(B, V): the tokens of lowest rank, one by one until together they have this share of the chances."""
    order_BV = rank_BV.sort(dim=-1, stable=True).indices
    chances_BV = logits_BV.softmax(-1).gather(1, order_BV)
    before_BV = chances_BV.cumsum(-1) - chances_BV
    wanted_BV = before_BV < share
    wanted_BV[:, 0] = True
    return torch.zeros_like(wanted_BV).scatter_(1, order_BV, wanted_BV)
