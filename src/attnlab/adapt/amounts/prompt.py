"""Vectors that stand before the text at the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.adapt.amounts.amount import Amount, Counted, Sizes, with_peft
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class Prompt(Amount):
    """Prompt tuning (Lester, Al-Rfou and Constant 2021, https://arxiv.org/abs/2104.08691): so many vectors
    in the place of embeddings, before the text's own."""

    length: Positive = 128

    @property
    def places(self) -> int:
        return self.length

    def put(self, model: Any) -> Any:
        return with_peft(model, "PromptTuningConfig", num_virtual_tokens=self.length)

    def counted(self, sizes: Sizes) -> Counted:
        total = self.length * sizes.d + sizes.head
        return Counted(f"{self.length}d + {sizes.head_formula}", total)
