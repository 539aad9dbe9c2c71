"""Locally typical sampling. Meister et al. 2022, https://arxiv.org/abs/2202.00666.

Shapes: B continuations, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from attnlab.decoding.strategies.top_p import until
from attnlab.decoding.strategy import Filter, only


@dataclass(frozen=True, kw_only=True)
class Typical(Filter):
    """The tokens whose surprise is nearest to the expected one, until they make up the mass. The likeliest
    token may not be among them."""

    mass: Annotated[float, Field(gt=0.0, le=1.0)] = 0.9

    def __str__(self) -> str:
        return f"keep the most typical that make up {self.mass:g}"

    def __call__(self, logits_BV: Tensor, written_BT: Tensor) -> Tensor:
        if self.mass == 1:
            return logits_BV
        surprise_BV = -logits_BV.log_softmax(-1)
        expected_B1 = (surprise_BV * (-surprise_BV).exp()).nansum(-1, keepdim=True)
        return only(until(self.mass, (surprise_BV - expected_B1).abs(), logits_BV), logits_BV)
