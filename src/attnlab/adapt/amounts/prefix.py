"""Keys and values that stand before the text in every layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.adapt.amounts.amount import Amount, Counted, Sizes, with_peft
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class Prefix(Amount):
    """Prefix tuning (Li and Liang 2021, https://arxiv.org/abs/2101.00190): so many places with a key and a
    value of their own in every layer, as they are or, with `projection`, out of a small network."""

    length: Positive = 128
    projection: bool = False
    hidden: Positive | None = None  # width of that network; the model's unless given

    @property
    def places(self) -> int:
        return self.length

    def put(self, model: Any) -> Any:
        return with_peft(
            model,
            "PrefixTuningConfig",
            num_virtual_tokens=self.length,
            prefix_projection=self.projection,
            encoder_hidden_size=self.hidden or model.config.hidden_size,
        )

    def counted(self, sizes: Sizes) -> Counted:
        n, d, L = self.length, sizes.d, sizes.L
        also = f"{n}d + {sizes.head_formula}"
        if sizes.head == sizes.C * d + sizes.C:
            also += f" = {n + sizes.C}d + {sizes.C}"
        why = (
            f"the smaller count takes one vector of width d for each of the {n} places; what the library "
            "trains is a key and a value for each place in each layer, 2L vectors"
        )
        if not self.projection:
            value = n * 2 * L * d + sizes.head
            return Counted(f"{n} · 2L·d + {sizes.head_formula}", value, also, n * d + sizes.head, why)
        h = self.hidden or d
        value = n * d + (d * h + h) + (h * 2 * L * d + 2 * L * d) + sizes.head
        formula = f"{n}d + (d + 1)·{h} + ({h} + 1)·2L·d + {sizes.head_formula}"
        why += ", here out of a network that goes from d over its hidden layer to 2L·d"
        return Counted(formula, value, also, n * d + sizes.head, why)
