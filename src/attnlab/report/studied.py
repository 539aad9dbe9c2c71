"""The records of a study, as the report's tables and pictures ask for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.record import Items
from attnlab.report.logs import Entry
from attnlab.report.names import label, length_of
from attnlab.report.numbers import Spread, spread

# Measures of which more is better; of every other, a loss or a perplexity, less is.
_HIGHER_IS_BETTER = ("accuracy", "f1", "rouge", "bleu", "precision", "recall", "correlation", "coherence")


@dataclass(frozen=True)
class Run:
    """One arm with one seed: what is known of it, done or not."""

    arm: str
    seed: int
    status: str  # ok, invalid, diverged, failed; running or waiting when there is no result yet
    metrics: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None
    tokens_per_second: float | None = None
    steps: int | None = None
    reason: str = ""
    checks: tuple[Mapping[str, Any], ...] = ()
    sentences: tuple[Mapping[str, Any], ...] = ()
    samples: tuple[str, ...] = ()
    log: tuple[Entry, ...] = ()
    items: Mapping[str, Items] = field(default_factory=dict)
    exhibits: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None  # where its files are, once it has begun
    alone: bool = True  # whether it is shown by itself; else only its figures and failed checks were read

    @property
    def done(self) -> bool:
        return self.status not in ("running", "waiting")

    @property
    def counts(self) -> bool:
        """Whether its figures belong in a mean: it finished, and not by diverging."""
        return self.status in ("ok", "invalid")


@dataclass(frozen=True)
class Arm:
    """One variant with its runs, its audit and, once judged, its verdict."""

    name: str
    status: str
    runs: tuple[Run, ...]
    changes: Mapping[str, Any] = field(default_factory=dict)
    parameters: int | None = None
    parameter_rows: tuple[Mapping[str, Any], ...] = ()
    checks: tuple[Mapping[str, Any], ...] = ()
    reason: str = ""
    verdict: Mapping[str, Any] | None = None

    @property
    def word(self) -> str:
        """The one word a reader should see beside this arm's name; none for a baseline that is in order."""
        if self.status in ("invalid", "diverged", "failed"):
            return self.status
        if self.verdict:
            return str(self.verdict.get("verdict"))
        return "" if self.complete else "half done" if any(run.done for run in self.runs) else "waiting"

    @property
    def ranked(self) -> bool:
        """Whether its figures may stand in one scale with the others'."""
        return self.word != "invalid"

    @property
    def complete(self) -> bool:
        return bool(self.runs) and all(run.done for run in self.runs)

    @property
    def alone(self) -> frozenset[int]:
        """The seeds whose runs are shown one by one."""
        return frozenset(run.seed for run in self.runs if run.alone)

    def values(self, key: str) -> Spread | None:
        """A measure over the seeds that count."""
        return spread(run.metrics.get(key) for run in self.runs if run.counts)

    def by_seed(self, key: str) -> dict[int, float]:
        found = {run.seed: run.metrics.get(key) for run in self.runs if run.counts}
        return {seed: value for seed, value in found.items() if value is not None and math.isfinite(value)}

    @property
    def seconds(self) -> Spread | None:
        return spread(run.seconds for run in self.runs if run.counts)

    @property
    def tokens_per_second(self) -> Spread | None:
        return spread(run.tokens_per_second for run in self.runs if run.counts)


@dataclass(frozen=True)
class Metric:
    """What a study is judged by: its name, the key the runs keep it under, and the good direction."""

    name: str
    key: str
    lower_is_better: bool = True

    @classmethod
    def named(cls, name: str, better: str | None, arms: Sequence[Arm]) -> Metric:
        """`better` is what the study says; one that does not say is judged by the name."""
        lower = better == "lower" if better else not any(word in name for word in _HIGHER_IS_BETTER)
        kept = {key for arm in arms for run in arm.runs for key in run.metrics}
        key = next((k for k in (name, f"test_{name}", f"dev_{name}") if k in kept), name)
        return cls(name, key, lower)

    @property
    def title(self) -> str:
        return label(self.name)

    @property
    def in_nats(self) -> bool:
        return self.name == "loss" or self.name.endswith("_loss")


@dataclass(frozen=True)
class Floored:
    """What simple methods reach, in a measure that the arms were measured in too."""

    what: str  # as the floors call it
    key: str  # as the runs do
    values: Mapping[str, float]
    lower_is_better: bool


@dataclass(frozen=True)
class Studied:
    """A whole study as it lies in its directory."""

    directory: Path
    name: str
    question: str
    metric: Metric
    margin: float
    baseline: str
    arms: tuple[Arm, ...]
    declaration: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    corpus: Mapping[str, Any] = field(default_factory=dict)
    floors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    command: str = ""
    noise_floor: Mapping[str, Any] = field(default_factory=dict)  # the baseline against itself, as judged
    floor_verdicts: Sequence[Mapping[str, Any]] = ()  # every arm against every floor

    @property
    def runs(self) -> list[Run]:
        return [run for arm in self.arms for run in arm.runs]

    @property
    def base(self) -> Arm | None:
        return next((arm for arm in self.arms if arm.name == self.baseline), None)

    @property
    def judged(self) -> list[Arm]:
        return [arm for arm in self.arms if arm.verdict]

    @property
    def done(self) -> int:
        return sum(run.done for run in self.runs)

    def has(self, key: str) -> bool:
        return any(arm.values(key) for arm in self.arms)

    def differences(self, arm: Arm) -> dict[int, float]:
        """The arm less the baseline, seed by seed, where both have finished."""
        base = self.base.by_seed(self.metric.key) if self.base else {}
        mine = arm.by_seed(self.metric.key)
        return {seed: mine[seed] - base[seed] for seed in mine if seed in base}

    @property
    def noise(self) -> float | None:
        """How far two runs of the baseline lie apart on average, by their seeds alone (normal noise)."""
        base = self.base.values(self.metric.key) if self.base else None
        if base is None or base.deviation is None:
            return None
        return 2 * base.deviation / math.sqrt(math.pi)

    @property
    def floored(self) -> Floored | None:
        """What the floors and the arms have in common: their perplexity, or else what the study is judged by.
        None where they have nothing."""
        known = {what for facts in self.floors.values() for what in facts}
        _, _, own = self.metric.key.partition("_")
        what = "perplexity" if "perplexity" in known and self.has("test_perplexity") else own
        key = "test_perplexity" if what == "perplexity" else self.metric.key
        values = {name: float(facts[what]) for name, facts in self.floors.items() if facts.get(what)}
        lower = what == "perplexity" or self.metric.lower_is_better
        return Floored(what, key, values, lower) if values and self.has(key) else None

    def metric_keys(self) -> list[str]:
        """Every measure that some run kept, the usual ones first, those by length last and by length."""
        kept = list(dict.fromkeys(key for run in self.runs for key in run.metrics))
        return sorted(kept, key=lambda key: (length_of(key) or 0, _place_of(key), kept.index(key)))

    def by_length(self) -> dict[int, str]:
        """The lengths that the test split was read in, shortest first, each with its key."""
        return {length: key for key in self.metric_keys() if (length := length_of(key)) is not None}

    @property
    def trained_length(self) -> int | None:
        """How many tokens the model is trained on at once."""
        model = self.declaration.get("model")
        context = model.get("context") if isinstance(model, Mapping) else None
        return context if isinstance(context, int) and context > 0 else None


def _place_of(key: str) -> int:
    order = ("test_", "dev_", "train_")
    return next((at for at, prefix in enumerate(order) if key.startswith(prefix)), len(order))
