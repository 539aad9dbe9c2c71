"""Vectors before the text, out of a small network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.adapt.amounts.amount import Amount, Counted, Sizes, with_peft
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class PTuning(Amount):
    """P-tuning (Liu and others 2021, https://arxiv.org/abs/2103.10385): vectors before the text's own, which
    a network of three layers makes out of others."""

    length: Positive = 20
    hidden: Positive | None = None  # width of the network; the model's unless given

    @classmethod
    def part_name(cls) -> str:
        return "p-tuning"

    @property
    def places(self) -> int:
        return self.length

    def put(self, model: Any) -> Any:
        return with_peft(
            model,
            "PromptEncoderConfig",
            num_virtual_tokens=self.length,
            encoder_hidden_size=self.hidden or model.config.hidden_size,
        )

    def counted(self, sizes: Sizes) -> Counted:
        n, d, h = self.length, sizes.d, self.hidden or sizes.d
        value = n * d + (d * h + h) + (h * h + h) + (h * d + d) + sizes.head
        return Counted(f"{n}d + (d + 1)·{h} + ({h} + 1)·{h} + ({h} + 1)·d + {sizes.head_formula}", value)
