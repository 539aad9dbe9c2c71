"""Causal mask: a position sees itself and what came before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from attnlab.attention.mask.mask import Mask


@dataclass(frozen=True, kw_only=True)
class Causal(Mask):
    """Visible: every key at or before the query."""

    hides_future: ClassVar[bool] = True

    def visible(self, queries_T: Tensor, keys_S: Tensor) -> Tensor:
        return keys_S <= queries_T[:, None]
