"""Everything is tuned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.adapt.amounts.amount import Amount, Counted, Sizes


@dataclass(frozen=True, kw_only=True)
class Full(Amount):
    """Every parameter of the checkpoint, and the head."""

    def put(self, model: Any) -> Any:
        return model

    def counted(self, sizes: Sizes) -> Counted:
        return Counted(f"{sizes.body:,} + {sizes.head_formula}", sizes.body + sizes.head)
