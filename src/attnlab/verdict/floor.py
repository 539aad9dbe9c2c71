"""The noise floor: what a study sees when nothing was changed but the seed.

Shapes: S seeds, N documents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnlab.errors import RequestError
from attnlab.verdict.crossed import crossed_error
from attnlab.verdict.judging import PLAN, judge
from attnlab.verdict.looks import Plan
from attnlab.verdict.needed import CHANCE, Noise, Question
from attnlab.verdict.pairs import shares, table
from attnlab.verdict.result import LOSS, Metric, Verdict
from attnlab.verdict.wording import count, number


@dataclass(frozen=True, kw_only=True)
class NoiseFloor:
    """The baseline against itself: differences that mean nothing, and the least that could be found."""

    seeds: int
    documents: int
    mean: float
    seed_deviation: float  # of a run's mean over the documents, from seed to seed
    typical_gap: float  # two runs differ by this on average
    widest_gap: float  # and did here by as much as this
    detectable: Mapping[int, float]  # by look: found with a chance of 80 %, if pairing by seed gains nothing
    against_itself: Verdict | None  # half of the seeds against the other half; needs four
    metric: str = "loss"

    def __str__(self) -> str:
        share = f" ({abs(self.seed_deviation / self.mean):.2%} of {number(self.mean)})" if self.mean else ""
        first = min(self.detectable)
        lines = [
            f"two runs that differ in nothing but the seed differ in {self.metric} by "
            f"{number(self.typical_gap)} on average, and here by up to {number(self.widest_gap)} "
            f"({count(self.seeds, 'seed')})",
            f"a run's {self.metric} moves by {number(self.seed_deviation)} with its seed{share}",
            f"{first} seeds find a difference of {number(self.detectable[first])} four times in five, "
            "and smaller ones if arm and baseline move together with the seed",
        ]
        if self.against_itself is not None:
            lines.append(str(self.against_itself))
            if self.against_itself.verdict in ("better", "worse"):
                lines.append("this is a false alarm, as nothing was changed; one study in twenty has one")
        return "\n".join(lines)

    def plain(self) -> dict[str, Any]:
        verdict = self.against_itself
        return {
            "seeds": self.seeds,
            "documents": self.documents,
            "metric": self.metric,
            "mean": self.mean,
            "seed_deviation": self.seed_deviation,
            "typical_gap": self.typical_gap,
            "widest_gap": self.widest_gap,
            "detectable": {str(look): effect for look, effect in self.detectable.items()},
            "against_itself": verdict.plain() if verdict is not None else None,
        }


def noise_floor(
    baseline: ArrayLike,
    *,
    margin: float,
    weights: ArrayLike | None = None,
    metric: Metric = LOSS,
    plan: Plan = PLAN,
    baseline_name: str = "the baseline",
) -> NoiseFloor:
    """What seeds alone do to `(seeds, documents)` measurements of one arm; diverged runs are left out."""
    every_SN = table(baseline, baseline_name)
    runs_SN = every_SN[np.isfinite(every_SN).all(axis=1)]
    seeds, documents = runs_SN.shape
    if seeds < 2:
        raise RequestError(f"a noise floor needs two runs of {baseline_name} that finished, not {seeds}")
    weights_N = shares(weights, documents)
    mean_S = runs_SN @ weights_N
    deviation = float(mean_S.std(ddof=1))
    # Of the difference of two runs: twice a run's own noise, and no document that suits one arm more.
    crossed = crossed_error(runs_SN, weights_N)
    effective = 1 / float((weights_N**2).sum())
    run = Noise.seen(crossed, seeds, effective)
    gap = Noise(effect=0.0, seed=2 * run.seed, document=0.0, rest=2 * run.rest)
    half = seeds // 2
    return NoiseFloor(
        seeds=seeds,
        documents=documents,
        mean=float(mean_S.mean()),
        seed_deviation=deviation,
        typical_gap=2 * deviation / math.sqrt(math.pi),
        widest_gap=float(np.ptp(mean_S)),
        detectable={look: _detectable(gap, look, effective, plan) for look in plan.looks},
        against_itself=None
        if half < 2
        else judge(
            runs_SN[:half],
            runs_SN[half : 2 * half],
            margin=margin,
            weights=weights,
            metric=metric,
            plan=Plan((half,), plan.alpha),
            name=f"{baseline_name} with other seeds",
            baseline_name=baseline_name,
        ),
        metric=metric.name,
    )


def _detectable(gap: Noise, look: int, documents: float, plan: Plan) -> float:
    """The least effect that a look finds with the agreed chance, by halving."""
    error, _ = gap.at(look, documents)
    low, high = 0.0, 100 * error
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        question = Question(replace(gap, effect=middle), 0.0, plan, plan.alpha)
        low, high = (low, middle) if question.chance(look, documents) >= CHANCE else (middle, high)
    return high
