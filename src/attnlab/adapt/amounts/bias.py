"""The biases and the head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.adapt.amounts.amount import Amount, Counted, Sizes, freeze_body
from attnlab.errors import RequestError


@dataclass(frozen=True, kw_only=True)
class Bias(Amount):
    """Every bias, and the head (BitFit: Ben Zaken, Goldberg and Ravfogel 2022,
    https://arxiv.org/abs/2106.10199)."""

    def put(self, model: Any) -> Any:
        biases = [p for name, p in model.base_model.named_parameters() if name.endswith("bias")]
        if not biases:
            raise RequestError(
                f"model.amount: a {model.config.model_type} has no biases, so there is nothing to tune but "
                "its head; take the amount 'head', or another one"
            )
        freeze_body(model)
        for bias in biases:
            bias.requires_grad_(True)
        return model

    def counted(self, sizes: Sizes) -> Counted:
        return Counted(f"every bias + {sizes.head_formula}", None)
