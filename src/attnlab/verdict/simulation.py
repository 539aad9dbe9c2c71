"""Studies made of random numbers, whose truth is known: what every error rate here is measured on.

One unit is a seed deviation: how far a run's mean loss moves with its seed.

Shapes: T studies (trials), A arms beside the baseline, S seeds, N documents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnlab.verdict.crossed import Crossed, crossed_error
from attnlab.verdict.decision import HIGHER, LOWER, decide
from attnlab.verdict.looks import Plan

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]


def normal(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return rng.standard_normal(size)


def heavy_tails(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    """Student's t with three degrees of freedom: the variance exists, the kurtosis does not."""
    return np.asarray(rng.standard_t(3, size) / np.sqrt(3))


def outliers(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    """One value in twenty is ten times as far out as the others."""
    scale = np.where(rng.random(size) < 0.05, 10.0, 1.0)
    return np.asarray(rng.standard_normal(size) * scale / np.sqrt(0.95 + 0.05 * 100))


def skewed(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    """Exponential: a long tail to one side."""
    return rng.standard_exponential(size) - 1


SHAPES: Mapping[str, Draw] = {
    "normal": normal,
    "heavy tails": heavy_tails,
    "outliers": outliers,
    "skewed": skewed,
}


@dataclass(frozen=True, kw_only=True)
class World:
    """How noisy studies are: every deviation in units of the seed deviation, every mean zero."""

    shape: str = "normal"
    correlation: float = 0.0  # of the seed effects of an arm and its baseline
    document_effect: float = 0.0  # deviation of how much more an arm suits one document than another
    rest: float = 1.0  # deviation of one document in one run
    documents: int = 100

    def runs(self, rng: np.random.Generator, trials: int, arms: int, seeds: int) -> Array:
        """Per-document losses of studies in which no arm differs from the baseline: (T, 1 + A, S, N)."""
        draw = SHAPES[self.shape]
        runs_TASN = self.rest * draw(rng, (trials, 1 + arms, seeds, self.documents))
        own_TAS1 = np.sqrt(1 - self.correlation) * draw(rng, (trials, 1 + arms, seeds, 1))
        shared_T1S1 = np.sqrt(self.correlation) * draw(rng, (trials, 1, seeds, 1))
        runs_TASN += own_TAS1 + shared_T1S1
        runs_TASN[:, 1:] += self.document_effect * draw(rng, (trials, arms, 1, self.documents))
        return runs_TASN

    def differences(self, rng: np.random.Generator, trials: int, arms: int, seeds: int) -> Array:
        """Arm − baseline of such studies: (T, A, S, N)."""
        runs_TASN = self.runs(rng, trials, arms, seeds)
        return runs_TASN[:, 1:] - runs_TASN[:, :1]


@dataclass(frozen=True)
class Judged:
    """Studies judged at every look: the words as codes, and whether a difference is shown to be small."""

    codes: NDArray[np.int64]  # (look, T, A)
    inside: NDArray[np.bool_]  # (look, T, A): within the margin, whether or not better or worse as well

    def share(self, called: NDArray[np.bool_]) -> float:
        """The share of studies in which any arm was called so at any look."""
        return float(called.any(axis=(0, 2)).mean())

    @property
    def differs(self) -> float:
        return self.share((self.codes == LOWER) | (self.codes == HIGHER))

    @property
    def lower(self) -> float:
        return self.share(self.codes == LOWER)

    @property
    def small(self) -> float:
        return self.share(self.inside)


@dataclass(frozen=True)
class Studies:
    """Effects and their errors at each look: what is left of many studies once their tables are read."""

    looks: tuple[int, ...]
    crossed: tuple[Crossed, ...]  # one a look, over (T, A)

    @classmethod
    def read(cls, difference_TASN: Array, looks: Sequence[int], weights_N: Array | None = None) -> Studies:
        documents = difference_TASN.shape[-1]
        shares_N = np.full(documents, 1 / documents) if weights_N is None else weights_N
        return cls(
            tuple(looks), tuple(crossed_error(difference_TASN[..., :look, :], shares_N) for look in looks)
        )

    def judged(
        self,
        plan: Plan,
        *,
        margin: float = 0.0,
        effect: float | Sequence[float] = 0.0,
        arms: int | None = None,
    ) -> Judged:
        """Judge each study at each look, with the code `judge_many` uses, had the arms this true effect."""
        codes, inside = [], []
        for look, crossed in zip(self.looks, self.crossed, strict=True):
            seen = crossed.effect + np.asarray(effect, dtype=np.float64)
            error, dof = np.sqrt(crossed.variance), crossed.dof
            decision = decide(
                seen[:, :arms], error[:, :arms], dof[:, :arms], margin=margin, look=look, plan=plan
            )
            codes.append(decision.code)
            inside.append(decision.p_equivalent <= plan.alpha)
        return Judged(np.stack(codes), np.stack(inside))


CHUNK = 500  # studies at a time, so that their tables fit the cache
LARGE_MARGIN = 6.0  # beside which the interval of a study is short


def chunks(trials: int, seed: int) -> Iterator[tuple[np.random.Generator, int]]:
    """Studies in portions, each with random numbers of its own."""
    streams = np.random.SeedSequence(seed).spawn(-(-trials // CHUNK))
    for place, stream in enumerate(streams):
        yield np.random.default_rng(stream), min(CHUNK, trials - place * CHUNK)


@dataclass(frozen=True)
class Cell:
    """One world: the share of studies with a wrong word, by the number of arms beside the baseline."""

    world: World
    differs: Mapping[int, float]  # better or worse, with no difference
    small: Mapping[int, float]  # smaller than the margin, with the difference at it

    @property
    def shares(self) -> tuple[float, ...]:
        return (*self.differs.values(), *self.small.values())


def measure(world: World, plan: Plan, *, trials: int, arms: Sequence[int], seed: int) -> Cell:
    """How often each word is wrong over all looks of a plan, for studies with so many arms."""
    wrong: dict[tuple[str, int], float] = defaultdict(float)
    for rng, portion in chunks(trials, seed):
        studies = Studies.read(world.differences(rng, portion, max(arms), plan.looks[-1]), plan.looks)
        for number in arms:
            wrong["differs", number] += portion / trials * studies.judged(plan, arms=number).differs
            at_margin = studies.judged(plan, margin=LARGE_MARGIN, effect=LARGE_MARGIN, arms=number)
            wrong["small", number] += portion / trials * at_margin.small
    differs, small = ({number: wrong[word, number] for number in arms} for word in ("differs", "small"))
    return Cell(world, differs, small)
