"""When results may be looked at, and how strict each look must be.

Who looks at 5, 8 and 12 seeds and stops at the first "significant" result has had three chances to be
fooled. A plan gives every look the same level, chosen so that all of them together err with probability
alpha. The level is computed for the looks of the plan: the t statistics of nested samples are laid out
over a low-discrepancy sequence, and the quantile of their smallest p is the level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import RequestError
from attnlab.verdict import distributions as stats

Array = NDArray[np.float64]

# 2**18 points give the level to about three digits in a third of a second.
POINTS_LOG2 = 18
# Below this total the points are too few to count; the union bound takes over.
SMALLEST_COUNTED = 1e-3
# A look outside the plan (three seeds to begin with, twenty because twelve did not decide) is judged at
# this share of the level, so that acting on it adds next to nothing to the total error.
UNPLANNED_SHARE = 0.1


@dataclass(frozen=True)
class Plan:
    """The numbers of seeds at which a study is judged, and the error allowed to all looks together."""

    looks: tuple[int, ...] = (5, 8, 12)
    alpha: float = 0.05

    def __post_init__(self) -> None:
        looks = tuple(self.looks)
        if not looks or any(not isinstance(look, (int, np.integer)) or look < 2 for look in looks):
            raise RequestError(f"looks must be whole numbers of seeds, each at least 2, not {looks!r}")
        if list(looks) != sorted(set(looks)):
            raise RequestError(f"looks must rise, each number of seeds once, not {looks!r}")
        if not 0 < self.alpha < 0.5:
            raise RequestError(f"alpha, the error allowed, must lie between 0 and 0.5, not {self.alpha!r}")
        object.__setattr__(self, "looks", tuple(int(look) for look in looks))

    def planned(self, look: int) -> bool:
        return look in self.looks

    def after(self, seeds: int) -> int | None:
        """The next look for a study that has so many seeds, or None: the plan is done."""
        return next((look for look in self.looks if look > seeds), None)

    def level(self, look: int, *, alpha: float | None = None, sides: int = 2) -> float:
        """The p below which a look decides, so that the whole plan errs with probability alpha."""
        total = self.alpha if alpha is None else alpha
        level = _Crossing.of(self.looks, sides).level(total)
        return level if self.planned(look) else UNPLANNED_SHARE * level

    def sequential_p(self, p: Array, look: int, *, sides: int = 2) -> Array:
        """What p at one look means for the whole plan: at most alpha exactly when p is within its level."""
        share = 1.0 if self.planned(look) else UNPLANNED_SHARE
        return _Crossing.of(self.looks, sides).total(np.minimum(np.asarray(p) / share, 1.0))


@dataclass(frozen=True)
class _Crossing:
    """How probable it is, with no difference at all, that the smallest p of a plan is below a level."""

    looks: tuple[int, ...]
    smallest_p: Array  # sorted, one value a simulated study; empty for a single look

    @staticmethod
    @lru_cache(maxsize=16)
    def of(looks: tuple[int, ...], sides: int) -> _Crossing:
        if len(looks) == 1:
            return _Crossing(looks, np.empty(0))
        return _Crossing(looks, np.sort(_smallest_p(looks, sides)))

    def total(self, p: Array) -> Array:
        if len(self.looks) == 1:
            return p
        counted = np.searchsorted(self.smallest_p, p, side="right") / self.smallest_p.size
        union = np.minimum(len(self.looks) * p, SMALLEST_COUNTED)
        return np.where(counted > SMALLEST_COUNTED, counted, union)

    def level(self, total: float) -> float:
        if len(self.looks) == 1:
            return total
        if total < SMALLEST_COUNTED:
            return total / len(self.looks)
        # The last p below which no more than this share of studies falls.
        return float(np.nextafter(self.smallest_p[int(total * self.smallest_p.size)], 0))


def _smallest_p(looks: Sequence[int], sides: int) -> Array:
    """Per simulated study with no difference, the smallest p over its looks (normal seeds)."""
    points = stats.qmc.Sobol(2 * len(looks), rng=np.random.default_rng(0)).random_base2(POINTS_LOG2)
    total = squares = np.zeros(len(points))
    smallest = np.ones(len(points))
    seen = 0
    for step, seeds in enumerate(looks):
        fresh = seeds - seen
        added = np.sqrt(fresh) * stats.norm.ppf(points[:, 2 * step])
        if fresh > 1:
            squares = squares + stats.chi2.ppf(points[:, 2 * step + 1], fresh - 1)
        if seen:
            squares = squares + (total / seen - added / fresh) ** 2 * seen * fresh / seeds
        total, seen = total + added, seeds
        t = total / np.sqrt(seeds * squares / (seeds - 1))
        p = stats.t.sf(t, seeds - 1) if sides == 1 else 2 * stats.t.sf(np.abs(t), seeds - 1)
        smallest = np.minimum(smallest, p)
    return smallest
