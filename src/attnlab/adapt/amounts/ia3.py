"""A factor for every channel of what attention and the feed-forward layers pass on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.adapt.amounts.amount import Amount, Counted, Sizes, with_peft


@dataclass(frozen=True, kw_only=True)
class Ia3(Amount):
    """(IA)³ (Liu and others 2022, https://arxiv.org/abs/2205.05638): keys, values and what goes into the
    feed-forward output are multiplied by a learned vector, in the modules that peft chooses for the model."""

    def put(self, model: Any) -> Any:
        return with_peft(model, "IA3Config")

    def counted(self, sizes: Sizes) -> Counted:
        return Counted(f"a factor per channel of what is rescaled + {sizes.head_formula}", None)
