"""The head alone: the checkpoint gives features, and something linear is fitted to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.adapt.amounts.amount import Amount, Counted, Sizes, freeze_body


@dataclass(frozen=True, kw_only=True)
class Head(Amount):
    """The head only. What goes into it never changes, so it is worked out once."""

    def put(self, model: Any) -> Any:
        freeze_body(model)
        return model

    def counted(self, sizes: Sizes) -> Counted:
        return Counted(sizes.head_formula, sizes.head)
