"""The best of several, corrected for having been chosen.

The best of many figures is high partly because it was lucky on these items: with enough trials one of them
looks good even if all are alike. The correction chooses again and again on items drawn with replacement, and
looks at what was chosen on the items that were not drawn (bootstrap bias correction: Tsamardinos, Greasidou
and Borboudakis 2018, https://doi.org/10.1007/s10994-018-5714-4).

Shapes: K candidates, N items, B draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from attnlab.errors import RequestError

_DRAWS = 2000
_AT_ONCE = 100
_LEAST = 5  # items


@dataclass(frozen=True)
class Chosen:
    """Which candidate was chosen, its figure as it stands, and what to expect of it on other items."""

    place: int
    value: float
    corrected: float
    low: float
    high: float
    candidates: int
    items: int

    def plain(self) -> dict[str, float | int]:
        return dict(vars(self))


def corrected(
    values: ArrayLike, *, better: Literal["higher", "lower"] = "higher", draws: int = _DRAWS, seed: int = 0
) -> Chosen:
    """`values` (candidates, items): of every candidate the value of every item, the same items for all."""
    values_KN = np.asarray(values, dtype=np.float64)
    if values_KN.ndim != 2 or 0 in values_KN.shape or not np.isfinite(values_KN).all():
        raise RequestError(
            f"an array (candidates, items) of numbers is needed, not one of shape {values_KN.shape}"
        )
    K, N = values_KN.shape
    sign = 1.0 if better == "higher" else -1.0
    means_K = values_KN.mean(axis=1)
    place = int((sign * means_K).argmax())
    if N < _LEAST:
        raise RequestError(f"{N} items are too few to correct a choice on; {_LEAST} are the least")
    draw = np.random.default_rng(seed)
    seen: list[float] = []
    while len(seen) < draws:
        counts_BN = draw.multinomial(N, np.full(N, 1 / N), size=min(_AT_ONCE, draws - len(seen)))
        chosen_B = (sign * (counts_BN @ values_KN.T)).argmax(axis=1)
        out_BN = counts_BN == 0
        left_B = out_BN.sum(axis=1)
        sums_B = (out_BN * values_KN[chosen_B]).sum(axis=1)
        # With few items a draw may have them all; it then says nothing.
        seen += [float(s / n) if n else float(means_K[place]) for s, n in zip(sums_B, left_B, strict=True)]
    low, high = np.quantile(seen, [0.025, 0.975])
    return Chosen(place, float(means_K[place]), float(np.mean(seen)), float(low), float(high), K, N)
