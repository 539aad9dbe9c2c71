"""A product of two thin matrices beside a large one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.adapt.amounts.amount import Amount, Counted, Sizes, with_peft
from attnlab.spec import Positive, PositiveFloat, Rate


@dataclass(frozen=True, kw_only=True)
class Lora(Amount):
    """LoRA (Hu and others 2021, https://arxiv.org/abs/2106.09685), of the queries' and the values'
    projections unless `targets` names other modules."""

    rank: Positive = 8
    alpha: PositiveFloat = 16.0
    dropout: Rate = 0.0
    targets: tuple[str, ...] = ()

    def put(self, model: Any) -> Any:
        return with_peft(
            model,
            "LoraConfig",
            r=self.rank,
            lora_alpha=self.alpha,
            lora_dropout=self.dropout,
            target_modules=list(self.targets) or None,
        )

    def counted(self, sizes: Sizes) -> Counted:
        if self.targets:
            return Counted(f"{self.rank}(in + out) per matrix + {sizes.head_formula}", None)
        added = 2 * sizes.L * 2 * sizes.d * self.rank
        return Counted(f"2L · 2d·{self.rank} + {sizes.head_formula}", added + sizes.head)
