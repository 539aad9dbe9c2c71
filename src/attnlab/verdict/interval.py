"""How sure a mean over seeds and documents is, of one arm alone.

Two such intervals that overlap say nothing about a difference: most of what a document does, it does to both
arms. That is what `judge`, which pairs, is for.

Shapes: S seeds, N documents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from attnlab.errors import RequestError
from attnlab.verdict import distributions as stats
from attnlab.verdict.crossed import crossed_error
from attnlab.verdict.pairs import shares, table


@dataclass(frozen=True)
class MeanInterval:
    """A mean, and between what it may really lie for all seeds and documents like these."""

    mean: float
    low: float
    high: float


def mean_interval(values: ArrayLike, *, level: float = 0.95) -> MeanInterval:
    """Of an array `(seeds, documents)`. Seeds that all gave the same numbers, or a single one, leave the
    documents; a single document leaves nothing to go by."""
    if not 0 < level < 1:
        raise RequestError(f"the level must lie between 0 and 1, such as 0.95, not {level!r}")
    values_SN = table(values, "the values")
    seeds, documents = values_SN.shape
    mean = float(values_SN.mean())
    if documents == 1:
        return MeanInterval(mean, -math.inf, math.inf)
    if seeds == 1:
        error, dof = float(values_SN[0].std(ddof=1)) / math.sqrt(documents), documents - 1.0
    else:
        found = crossed_error(values_SN, shares(None, documents))
        error, dof = math.sqrt(float(found.variance)), float(found.dof)
    half = float(stats.t.ppf(0.5 + level / 2, dof)) * error if error else 0.0
    return MeanInterval(mean, mean - half, mean + half)
