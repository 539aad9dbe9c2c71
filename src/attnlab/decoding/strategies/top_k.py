"""Top-k. Fan et al. 2018, https://arxiv.org/abs/1805.04833."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attnlab.decoding.strategy import Filter, only
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class TopK(Filter):
    """The k likeliest tokens; of equal ones those with the lowest ids, so that there are never more."""

    k: Positive = 20

    def __str__(self) -> str:
        return f"keep the {self.k} likeliest"

    def __call__(self, logits_BV: Tensor, written_BT: Tensor) -> Tensor:
        if self.k >= logits_BV.shape[-1]:
            return logits_BV
        least_B1 = logits_BV.topk(self.k, dim=-1).values[:, -1:]
        above_BV, equal_BV = logits_BV > least_B1, logits_BV == least_B1
        free_B1 = self.k - above_BV.sum(-1, keepdim=True)
        return only(above_BV | (equal_BV & (equal_BV.cumsum(-1) <= free_B1)), logits_BV)
