"""Level 3: checks on a study, over plain data that whoever runs it hands in. No torch, no runner.

check = splits_apart(Splits({"train": [...], "test": [...]}))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from attnlab.audit.rule import Rule, Seen, fine, found, rule, skipped

_GRAM = 13  # words in a row that two documents hardly share by chance


@dataclass(frozen=True)
class Splits:
    """The documents of every split, as text."""

    documents: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class History:
    """What was done in order: pairs such as `("opened", "test")` and `("selected", "checkpoint 3")`."""

    events: Sequence[tuple[str, str]]
    test: str = "test"


@dataclass(frozen=True)
class Figures:
    """Where each arm's figure comes from: anything that has to be the same for all (step, split, function,
    vocabulary), by arm."""

    conditions: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class AgainstFloors:
    """A metric by arm, and what needs no learning: the majority class, a unigram or bigram count."""

    metric: str
    values: Mapping[str, float]
    floors: Mapping[str, float]
    lower_is_better: bool = True


@dataclass(frozen=True)
class Budgets:
    """What each arm was given: parameters, operations, runs of its search, by name, by arm."""

    by_arm: Mapping[str, Mapping[str, float]]
    strict: Sequence[str] = ("tuning",)  # those that must be the same for a comparison to be fair
    tolerance: float = 0.05


@dataclass(frozen=True)
class Repeat:
    """The same run twice: everything it measured."""

    first: Mapping[str, Any]
    second: Mapping[str, Any]


@dataclass(frozen=True)
class PrefixOnly:
    """The loss of every token from the full pass, and with the tokens after it really absent, in nats."""

    full: Sequence[float]
    prefix: Sequence[float]
    tolerance: float = field(default=1e-3)


@rule(
    "splits-apart",
    tests="no document of one split, and no 13 words in a row of it, are in another",
    claims="what is tested on was not trained on",
    threshold="exact, up to case and white space; 13 words in a row are hardly shared by chance",
)
def splits_apart(splits: Splits) -> Seen:
    names = list(splits.documents)
    texts = {name: [" ".join(text.lower().split()) for text in splits.documents[name]] for name in names}
    grams = {name: {gram for text in texts[name] for gram in _grams(text)} for name in names}
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            known = set(texts[one])
            same = [i for i, text in enumerate(texts[other]) if text and text in known]
            if same:
                return found(
                    f"{len(same)} of {len(texts[other])} documents of {other} are in {one} too, the first of "
                    f"them number {same[0]}: {texts[other][same[0]][:60]!r}",
                    splits=[one, other], documents=same[:20],
                )  # fmt: skip
            near = [i for i, text in enumerate(texts[other]) if any(g in grams[one] for g in _grams(text))]
            if near:
                return found(
                    f"{len(near)} of {len(texts[other])} documents of {other} share {_GRAM} words "
                    "in a row with "
                    f"{one}, the first of them number {near[0]}", splits=[one, other], documents=near[:20],
                )  # fmt: skip
    return fine(f"{', '.join(f'{name} ({len(texts[name])})' for name in names)} share nothing")


def _grams(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[i : i + _GRAM]) for i in range(len(words) - _GRAM + 1)]


@rule(
    "test-once",
    tests="the test split was opened once, and nothing was selected after that",
    claims="the test split chose nothing",
    threshold="exact",
)
def test_once(history: History) -> Seen:
    opened = [
        i for i, (what, which) in enumerate(history.events) if (what, which) == ("opened", history.test)
    ]
    if not opened:
        return skipped(f"the split {history.test!r} was not opened")
    if len(opened) > 1:
        return found(f"the split {history.test!r} was opened {len(opened)} times", times=len(opened))
    later = [which for what, which in history.events[opened[0] :] if what == "selected"]
    if later:
        return found(
            f"{later[0]} was selected after the split {history.test!r} had been opened", selected=later
        )
    return fine(f"the split {history.test!r} was opened once, after all was selected")


@rule(
    "like-with-like",
    tests="every arm's figure was taken at the same step, on the same split, by the same "
    "function, over the same "
    "vocabulary",
    claims="the figures can be compared",
    threshold="exact",
)
def like_with_like(figures: Figures) -> Seen:
    arms = list(figures.conditions)
    for name in dict.fromkeys(key for arm in arms for key in figures.conditions[arm]):
        values = {arm: figures.conditions[arm].get(name) for arm in arms}
        if len({repr(value) for value in values.values()}) > 1:
            listed = ", ".join(f"{arm}: {value}" for arm, value in values.items())
            return found(f"{name} is not the same for all arms ({listed})", condition=name, values=values)
    return fine(f"{len(arms)} arms were measured under the same conditions")


@rule(
    "above-floors",
    tests="every arm does better than what needs no learning",
    claims="something was learned",
    threshold="the floor itself, measured on the same split; within a hundredth of a per cent counts as met",
)
def above_floors(given: AgainstFloors) -> Seen:
    sign = 1.0 if given.lower_is_better else -1.0
    for arm, value in given.values.items():
        for floor, bound in given.floors.items():
            if not math.isfinite(value):
                return found(f"{arm} has a {given.metric} of {value}", arm=arm)
            if sign * (bound - value) <= 1e-4 * abs(bound):
                return found(
                    f"{arm} has a {given.metric} of {value:.4g}, and {floor} alone gives "
                    f"{bound:.4g}: nothing beyond "
                    "it was learned", arm=arm, floor=floor, value=value, bound=bound,
                )  # fmt: skip
    return fine(f"all arms do better than {', '.join(given.floors)}")


@rule(
    "budgets",
    tests="what the arms were given, side by side",
    claims="every arm had the same tuning; where parameters or operations differ, it is told",
    threshold="5 % of the largest; less is a matter of rounding widths",
)
def budgets(given: Budgets) -> Seen:
    arms = list(given.by_arm)
    uneven: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(key for arm in arms for key in given.by_arm[arm]):
        values = {arm: given.by_arm[arm].get(name, 0.0) for arm in arms}
        largest, smallest = max(values.values()), min(values.values())
        if largest - smallest > given.tolerance * abs(largest):
            uneven[name] = values
    told = "; ".join(
        f"{name}: " + ", ".join(f"{arm} {value:,g}" for arm, value in values.items())
        for name, values in uneven.items()
    )
    if any(name in given.strict for name in uneven):
        return found(f"the arms were not given the same ({told})", uneven=uneven)
    if uneven:
        return skipped(f"arms differ in what they cost ({told})", uneven=uneven)
    return fine(f"{len(arms)} arms had the same budgets")


@rule(
    "repeatable",
    tests="a run repeated measures the same, to the last bit",
    claims="the same declaration and seed give the same figures",
    threshold="exact",
)
def repeatable(given: Repeat) -> Seen:
    for name in dict.fromkeys((*given.first, *given.second)):
        one, two = given.first.get(name), given.second.get(name)
        same_nan = isinstance(one, float) and isinstance(two, float) and math.isnan(one) and math.isnan(two)
        if not (one == two or same_nan):
            return found(f"{name} was {one!r}, and {two!r} when the run was repeated", figure=name)
    return fine(f"{len(given.first)} figures are the same when the run is repeated")


@rule(
    "prefix-only",
    tests="the loss of every token is the same when the tokens after it are really absent",
    claims="the reported perplexity is one that a reader from left to right would have",
    threshold="1e-3 nats per token: sums over other lengths round differently, in fp32 by a "
    "thousandth of that",
)
def prefix_only(given: PrefixOnly) -> Seen:
    if len(given.full) != len(given.prefix):
        return found(
            f"{len(given.full)} losses were given from the full pass, and {len(given.prefix)} from prefixes"
        )
    if not given.full:
        return skipped("no losses were given")
    gaps = [abs(one - two) for one, two in zip(given.full, given.prefix, strict=True)]
    means = [sum(losses) / len(losses) for losses in (given.full, given.prefix)]
    detail = {"loss": means[0], "loss_prefix_only": means[1]}
    moved = [i for i, gap in enumerate(gaps) if not gap <= given.tolerance]
    if moved:
        return found(
            f"the perplexity is {_exp(means[0]):.4g} with the later tokens at hand and {_exp(means[1]):.4g} "
            f"without: the losses of {len(moved)} of {len(gaps)} tokens change, the first at "
            f"position {moved[0]}",
            **detail,
        )
    return fine(f"the perplexity of {_exp(means[0]):.4g} stands when later tokens are absent", **detail)


def _exp(loss: float) -> float:
    return math.exp(loss) if loss < 700 else math.inf


RULES: tuple[Rule[Any], ...] = (
    splits_apart,
    test_once,
    like_with_like,
    above_floors,
    budgets,
    repeatable,
    prefix_only,
)
