"""Temperature: logits divided by a number. Ackley et al. 1985, https://doi.org/10.1016/S0364-0213(85)80012-4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from attnlab.decoding.strategy import Filter, best, only

_COLDEST = (
    1e-250  # below, dividing would leave what numbers can hold; the best token has had all chances since
)


@dataclass(frozen=True, kw_only=True)
class Temperature(Filter):
    """Below 1 the likely becomes likelier; towards 0 only the likeliest is left."""

    temperature: Annotated[float, Field(ge=0.0)] = 0.8

    def __str__(self) -> str:
        return f"divide logits by {self.temperature:g}"

    def __call__(self, logits_BV: Tensor, written_BT: Tensor) -> Tensor:
        if self.temperature < _COLDEST:
            return only(best(logits_BV), logits_BV)
        return logits_BV / self.temperature
