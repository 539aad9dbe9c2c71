"""How many seeds, or documents, would decide what is undecided.

The effect and the noise are taken as seen. A size decides if judging a study of that size would then end
in better, worse or equivalent with a chance of at least 80 %.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnlab.verdict import distributions as stats
from attnlab.verdict.crossed import Crossed
from attnlab.verdict.looks import Plan

CHANCE = 0.8
MOST_SEEDS = 10_000
MOST_DOCUMENTS = 1_000_000_000

# Middles of equally probable slices, over which a standard error's own uncertainty is averaged.
_SLICES = (np.arange(200) + 0.5) / 200


@dataclass(frozen=True)
class Needed:
    """Totals that would decide: each alone where it can, or both together where neither alone does."""

    seeds: int | None
    documents: int | None
    together: bool = False


@dataclass(frozen=True)
class Noise:
    """The spread of one difference: over seeds, over documents, and what is left."""

    effect: float
    seed: float
    document: float
    rest: float

    @classmethod
    def seen(cls, crossed: Crossed, seeds: int, documents: float) -> Noise:
        rest = float(crossed.rest_variance)
        return cls(
            effect=float(crossed.effect),
            seed=max(float(crossed.seed_variance) - rest, 0.0) * seeds,
            document=max(float(crossed.document_variance) - rest, 0.0) * documents,
            rest=rest * seeds * documents,
        )

    def at(self, seeds: int, documents: float) -> tuple[float, float]:
        """Standard error and degrees of freedom of a study of this size."""
        rest = self.rest / (seeds * documents)
        crossed = Crossed(
            effect=np.asarray(self.effect),
            seed_variance=np.asarray(self.seed / seeds + rest),
            document_variance=np.asarray(self.document / documents + rest),
            rest_variance=np.asarray(rest),
            seed_dof=seeds - 1.0,
            document_dof=documents - 1.0 if documents > 1 else np.inf,
        )
        return float(np.sqrt(crossed.variance)), float(crossed.dof)


@dataclass(frozen=True)
class Question:
    """What is to be decided: the noise, the margin, the plan, and the error this arm may spend of it."""

    noise: Noise
    margin: float
    plan: Plan
    alpha: float

    def chance(self, seeds: int, documents: float) -> float:
        """The chance that a study of this size decides, if effect and noise are as seen."""
        error, dof = self.noise.at(seeds, documents)
        if error == 0:
            return 1.0
        shift, room = self.noise.effect / error, self.margin / error
        seen = np.sqrt(stats.chi2.ppf(_SLICES, dof) / dof)
        away = stats.t.isf(self.plan.level(seeds, alpha=self.alpha) / 2, dof) * seen
        inside = room - stats.t.isf(self.plan.level(seeds, alpha=self.alpha, sides=1), dof) * seen
        differs = stats.norm.sf(away - shift) + stats.norm.cdf(-away - shift)
        equal = np.where(inside > 0, stats.norm.cdf(inside - shift) - stats.norm.cdf(-inside - shift), 0.0)
        return float(np.where(inside >= away, 1.0, differs + equal).mean())

    def needed(self, seeds: int, documents: float) -> Needed:
        """The least seeds and the least documents that would decide, from this size on."""
        by_seeds = self._seeds(seeds, documents)
        by_documents = self._documents(seeds, documents)
        if by_seeds is not None or by_documents is not None:
            return Needed(by_seeds, by_documents)
        last = max(seeds, self.plan.looks[-1])
        for more in (*(look for look in self.plan.looks if look > seeds), 2 * last, 8 * last, 64 * last):
            both = self._documents(more, documents)
            if both is not None:
                return Needed(more, both, together=True)
        return Needed(None, None)

    def _seeds(self, seeds: int, documents: float) -> int | None:
        for look in self.plan.looks:
            if look > seeds and self.chance(look, documents) >= CHANCE:
                return look
        beyond = max(seeds, self.plan.looks[-1]) + 1
        return least(beyond, MOST_SEEDS, lambda size: self.chance(size, documents) >= CHANCE)

    def _documents(self, seeds: int, documents: float) -> int | None:
        if documents <= 1:
            return None
        start = int(documents) + 1
        return least(start, MOST_DOCUMENTS, lambda size: self.chance(seeds, size) >= CHANCE)


def least(start: int, most: int, decides: Callable[[int], bool]) -> int | None:
    """The smallest size that decides, by doubling and halving: more of a kind never hurts."""
    if start > most:
        return None
    low, high = start - 1, start
    while not decides(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return high
