"""The sizes a part with weights is built for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Dims:
    """Sizes of the model a part is built into; `head_width` is the width of one head's q, k and v."""

    width: int
    heads: int
    context: int
    layers: int = 1
    dropout: float = 0.0

    @property
    def head_width(self) -> int:
        return self.width // self.heads
