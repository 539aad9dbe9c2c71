"""What a verdict holds, how it reads aloud, and its form in results.json."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from attnlab.errors import RequestError, unknown

Word = Literal["better", "worse", "equivalent", "undecided", "invalid"]
Direction = Literal["lower", "higher"]


@dataclass(frozen=True)
class Metric:
    """What was measured, and which direction is the good one."""

    name: str = "loss"
    better: Direction = "lower"

    def __post_init__(self) -> None:
        if self.better not in get_args(Direction):
            raise RequestError(unknown("direction", self.better, get_args(Direction)))


LOSS = Metric("loss", "lower")
ACCURACY = Metric("accuracy", "higher")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One arm against its baseline: a word whose error rate is known, and what it rests on."""

    verdict: Word
    effect: float  # arm − baseline, in the metric's own units
    ci: tuple[float, float]  # wholly off zero exactly when the word is better or worse
    p: float  # adjusted for all looks and all arms
    seeds: int  # pairs of runs that count
    seeds_needed: int | None  # seeds in all that would decide; None: decided, or no number of them would
    documents_needed: int | None  # likewise, with the seeds at hand
    reason: str
    preliminary: bool = False
    documents: int = 0
    diverged: int = 0  # pairs left out because a run of theirs diverged
    margin: float = 0.0
    p_equivalent: float = 1.0
    arm: str = "the arm"
    baseline: str = "the baseline"
    metric: str = "loss"

    @property
    def decided(self) -> bool:
        """Whether more seeds could not be hoped to change the word."""
        return self.verdict != "undecided"

    def __str__(self) -> str:
        heads = {
            "better": f"{self.arm} is better than {self.baseline}",
            "worse": f"{self.arm} is worse than {self.baseline}",
            "equivalent": f"{self.arm} and {self.baseline} are equivalent",
            "undecided": f"{self.arm} against {self.baseline} is undecided",
            "invalid": f"{self.arm} cannot be ranked",
        }
        return f"{heads[self.verdict]}: {self.reason}"

    def plain(self) -> dict[str, Any]:
        """The entry of `verdicts` in results.json; what JSON cannot hold (infinite, not a number) is null."""
        low, high = self.ci
        return {
            "arm": self.arm,
            "baseline": self.baseline,
            "metric": self.metric,
            "effect": _finite(self.effect),
            "ci": [_finite(low), _finite(high)],
            "p": _finite(self.p),
            "verdict": self.verdict,
            "seeds": self.seeds,
            "seeds_needed": self.seeds_needed,
            "documents": self.documents,
            "documents_needed": self.documents_needed,
            "diverged": self.diverged,
            "margin": self.margin,
            "p_equivalent": _finite(self.p_equivalent),
            "preliminary": self.preliminary,
            "reason": self.reason,
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
