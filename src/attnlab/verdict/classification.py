"""Right and wrong answers: how sure an accuracy is, and whether a classifier learned anything at all.

These judge one run on its items. Over several seeds, `judge` on (seeds, items) arrays of 0 and 1 does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from attnlab.errors import RequestError
from attnlab.verdict import distributions as stats
from attnlab.verdict.needed import CHANCE, MOST_DOCUMENTS, least
from attnlab.verdict.wording import count, number

ALPHA = 0.05
# From this share of equal answers on, a classifier is said to have collapsed.
COLLAPSED_SHARE = 0.99


@dataclass(frozen=True)
class Accuracy:
    """So many right of so many, and Wilson's interval for the accuracy on all items of this kind."""

    right: int
    items: int
    low: float
    high: float

    @property
    def value(self) -> float:
        return self.right / self.items

    def __str__(self) -> str:
        between = f"{number(self.low)} to {number(self.high)}"
        return f"{number(self.value)} ({self.right:,} of {self.items:,} right; {between} is possible)"


def accuracy(right: int, items: int, *, alpha: float = ALPHA) -> Accuracy:
    """An accuracy with its interval; unlike the usual ± it holds for few items and near 0 and 1."""
    _check_counts(right, items)
    z = stats.norm.isf(alpha / 2)
    share = right / items
    middle = (share + z**2 / (2 * items)) / (1 + z**2 / items)
    reach = z / (1 + z**2 / items) * math.sqrt(share * (1 - share) / items + z**2 / (4 * items**2))
    return Accuracy(right, items, max(float(middle - reach), 0.0), min(float(middle + reach), 1.0))


@dataclass(frozen=True)
class McNemar:
    """Two runs on the same items: those only one of them got right, and the exact two-sided p."""

    gained: int  # only the arm was right
    lost: int  # only the baseline was right
    p: float


def mcnemar(baseline_right: ArrayLike, arm_right: ArrayLike) -> McNemar:
    """Compare two runs item by item, each item right (1) or wrong (0)."""
    baseline, arm = _answers(baseline_right, "the baseline"), _answers(arm_right, "the arm")
    if baseline.shape != arm.shape:
        raise RequestError(
            f"the arm answered {arm.size} items and the baseline {baseline.size}: not the same"
        )
    gained, lost = int((arm & ~baseline).sum()), int((baseline & ~arm).sum())
    return McNemar(gained, lost, _discordant_p(gained, lost))


@dataclass(frozen=True)
class CountComparison:
    """Two reported accuracies on the same items, of which only the counts are known."""

    baseline: Accuracy
    arm: Accuracy
    p_at_best: float  # had the two runs agreed on as many items as they can have
    p_expected: float  # had each been right independently of the other
    items_needed: int | None  # that would decide accuracies like these; None: they are equal

    @property
    def undecided(self) -> bool:
        """No pattern of answers behind these counts could make the difference significant."""
        return self.p_at_best > ALPHA

    def __str__(self) -> str:
        pair = f"{self.arm} against {self.baseline}"
        needs = f"; about {count(self.items_needed, 'item')} would decide" if self.items_needed else ""
        if self.undecided:
            return f"undecided: {pair}; p is at least {number(self.p_at_best)} whoever got which right{needs}"
        if self.p_expected > ALPHA:
            return f"open: {pair}; it depends on which items each got right, which is not known{needs}"
        return f"these two runs differ: {pair}; whether other seeds would is not known from one run each"


def compare_counts(baseline_right: int, arm_right: int, items: int) -> CountComparison:
    """What two accuracies on the same items can say when only the counts were published."""
    baseline, arm = accuracy(baseline_right, items), accuracy(arm_right, items)
    gap = abs(arm_right - baseline_right)
    gained, lost = arm.value * (1 - baseline.value), baseline.value * (1 - arm.value)
    return CountComparison(
        baseline,
        arm,
        p_at_best=_discordant_p(gap, 0),
        p_expected=_discordant_p(round(gained * items), round(lost * items)),
        items_needed=items_needed(baseline.value, arm.value) if gap else None,
    )


def items_needed(baseline: float, arm: float) -> int | None:
    """The fewest items on which McNemar's exact test tells two accuracies apart four times in five.

    The two runs are taken to err independently; runs that err alike need fewer items.
    """
    gained, lost = arm * (1 - baseline), baseline * (1 - arm)
    return None if gained == lost else least(1, MOST_DOCUMENTS, lambda n: _power(n, gained, lost) >= CHANCE)


def _power(items: int, gained: float, lost: float) -> float:
    """The chance that McNemar's exact test rejects: over how many items differ, and how they fall."""
    differ = gained + lost
    middle, spread = items * differ, math.sqrt(items * differ * (1 - differ)) + 1
    n = np.arange(max(0, int(middle - 8 * spread)), min(items, int(middle + 8 * spread)) + 1)
    few = stats.binom.ppf(ALPHA / 2, n, 0.5)  # the largest count on one side that still rejects, or one above
    few = np.where(stats.binom.cdf(few, n, 0.5) <= ALPHA / 2, few, few - 1)
    share = gained / differ
    rejects = stats.binom.cdf(few, n, share) + stats.binom.sf(n - few - 1, n, share)
    return float((stats.binom.pmf(n, items, differ) * rejects).sum())


@dataclass(frozen=True)
class Answers:
    """Whether answers depend on the question: how they spread, and how they do against the usual answer."""

    items: int
    accuracy: Accuracy
    majority: str  # the most frequent label
    majority_share: float  # the accuracy of always answering it
    usual: str  # the most frequent answer
    usual_share: float
    entropy: float  # of the answers, in bits
    label_entropy: float
    p_above_majority: float  # exact and one-sided: as good by luck, if no better than the majority's share

    @property
    def collapsed(self) -> bool:
        return self.usual_share >= COLLAPSED_SHARE

    @property
    def learned(self) -> bool:
        return not self.collapsed and self.p_above_majority <= ALPHA

    def __str__(self) -> str:
        always = f"always answering {self.majority!r} gives {number(self.majority_share)}"
        seen = f"accuracy {self.accuracy}; {always}"
        if self.collapsed:
            return f"collapsed: {self.usual_share:.1%} of the answers are {self.usual!r}; {seen}"
        if not self.learned:
            luck = f"luck does as well (p = {number(self.p_above_majority)})"
            return f"not shown to have learned: {seen}, and {luck}"
        return f"learned: {seen}"


def check_answers(predicted: Sequence[object], labels: Sequence[object]) -> Answers:
    """Look for the classifier that gives one answer, or does no better than one that does."""
    if len(predicted) != len(labels) or not len(labels):
        raise RequestError(
            f"{len(predicted)} predictions for {len(labels)} labels: one each is needed, and at least one"
        )
    answers, truth = [str(value) for value in predicted], [str(value) for value in labels]
    right = np.array([answer == label for answer, label in zip(answers, truth, strict=True)])
    majority, majority_count = Counter(truth).most_common(1)[0]
    usual, usual_count = Counter(answers).most_common(1)[0]
    always = np.array([label == majority for label in truth])
    gained, lost = int((right & ~always).sum()), int((always & ~right).sum())
    return Answers(
        items=len(truth),
        accuracy=accuracy(int(right.sum()), len(truth)),
        majority=majority,
        majority_share=majority_count / len(truth),
        usual=usual,
        usual_share=usual_count / len(truth),
        entropy=_entropy(answers),
        label_entropy=_entropy(truth),
        p_above_majority=float(stats.binom.sf(gained - 1, gained + lost, 0.5)),
    )


def above_majority(right: int, items: int, majority: int) -> float:
    """The exact one-sided p of a reported count against one answer for all, right `majority` times.

    Only the counts are known, so the most favourable case is taken: every item the usual answer gets
    right was got right too, as far as there are such.
    """
    _check_counts(right, items)
    _check_counts(majority, items)
    return float(stats.binom.sf(right - majority - 1, right - majority, 0.5)) if right > majority else 1.0


def _discordant_p(gained: int, lost: int) -> float:
    return float(min(1.0, 2 * stats.binom.cdf(min(gained, lost), gained + lost, 0.5)))


def _entropy(values: Sequence[str]) -> float:
    return float(stats.entropy(list(Counter(values).values()), base=2))


def _answers(values: ArrayLike, name: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    array = np.asarray(values)
    if array.ndim != 1 or not array.size or not np.isin(array, (0, 1)).all():
        raise RequestError(f"{name} must be one row of 1 (right) and 0 (wrong), not shape {array.shape}")
    return array.astype(bool)


def _check_counts(right: int, items: int) -> None:
    if items < 1 or not 0 <= right <= items:
        raise RequestError(f"{right} right of {items} items: it must be 0 to {items} of at least 1")
    if right != int(right) or items != int(items):
        raise RequestError(f"{right} of {items}: give how many were right, not their share")
