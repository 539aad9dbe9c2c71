"""What a mask is: which keys a query may see, and when the others are taken away.

Shapes: T queries, S keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from attnlab.spec import Part

Where = Literal["before", "after", "renormalised"]


@dataclass(frozen=True, kw_only=True)
class Mask(Part, family="mask"):
    """Which positions are visible from which.

    `where` says when invisible keys are taken away: `before` the weighing (their scores never enter it),
    `after` it (their weights are set to zero, but they stay in a softmax's denominator: with a causal mask
    this lets the future through), or after it and `renormalised` (the remaining weights add up to one again).
    """

    where: Where = "before"
    hides_future: ClassVar[bool] = False  # whether no query sees a later key

    def visible(self, queries_T: Tensor, keys_S: Tensor) -> Tensor:
        """(T, S), true where the query at one position may see the key at the other."""
        raise TypeError(f"the mask {self.name!r} does not say what is visible")
