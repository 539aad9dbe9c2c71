"""What audits and runs leave behind: plain records, without torch, that verdicts and reports read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

SCHEMA = 1  # of every JSON file in a study's directory

CheckStatus = Literal["pass", "fail", "skip", "error"]
RunStatus = Literal["ok", "invalid", "diverged", "failed"]


@dataclass(frozen=True)
class Check:
    """What one check of an audit saw: a word, a line of evidence a person can act on, and the numbers."""

    name: str
    status: CheckStatus
    evidence: str
    detail: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Audit:
    """All checks of one target. It passed when none failed and none broke down."""

    target: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.status in ("pass", "skip") for check in self.checks)

    def plain(self) -> dict[str, Any]:
        checks = [check.plain() for check in self.checks]
        return {"target": self.target, "passed": self.passed, "checks": checks}


@dataclass(frozen=True)
class Items:
    """What was measured of every item of a split, a value of each measure per item.

    An item is what a verdict pairs on: a document, a labelled text, a prompt. What an item weighs (its
    tokens, its bytes) is a measure like any other.
    """

    names: tuple[str, ...]
    values: Mapping[str, tuple[float, ...]]

    def __post_init__(self) -> None:
        for measure, values in self.values.items():
            if len(values) != len(self.names):
                raise ValueError(f"{len(values)} values of {measure!r} for {len(self.names)} items")

    def __getitem__(self, measure: str) -> tuple[float, ...]:
        return self.values[measure]

    def mean(self, measure: str, weight: str | None = None) -> float:
        """Over the items, each counting as much as its `weight` says; all alike without one."""
        values = self[measure]
        weights = self[weight] if weight else (1.0,) * len(values)
        return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Items:
        return cls(tuple(plain["names"]), {what: tuple(values) for what, values in plain["values"].items()})


@dataclass(frozen=True)
class RunResult:
    """What one run, an arm with a seed, measured: the content of its `result.json`."""

    arm: str
    seed: int
    status: RunStatus
    metrics: Mapping[str, float] = field(default_factory=dict)
    items: Mapping[str, Items] = field(default_factory=dict)  # by split
    checks: tuple[Check, ...] = ()
    sentences: tuple[Mapping[str, Any], ...] = ()
    samples: tuple[str, ...] = ()
    # What only its kind of study has to show, by name: plain data, each drawn by a file of report/exhibits.
    exhibits: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0  # of training
    evaluation_seconds: float = 0.0  # of everything measured, on the way and at the end
    tokens_per_second: float = 0.0
    steps: int = 0
    reason: str | None = None

    def plain(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> RunResult:
        fields = {k: v for k, v in plain.items() if k not in ("schema", "documents")}
        fields["items"] = items_in(plain)
        fields["checks"] = tuple(Check(**check) for check in fields["checks"])
        return cls(**{**fields, "sentences": tuple(fields["sentences"]), "samples": tuple(fields["samples"])})


def bits_per_byte(loss: float, tokens: float, size: float) -> float:
    """A mean loss in nats over tokens that stand for so many bytes, so that it does not depend on the
    tokenizer."""
    return loss * tokens / (math.log(2) * size)


def items_in(plain: Mapping[str, Any]) -> dict[str, Items]:
    """The items of every split that a `result.json` holds."""
    if "documents" in plain:  # as the first version wrote them
        return {split: Items.from_plain(_as_items(losses)) for split, losses in plain["documents"].items()}
    return {split: Items.from_plain(items) for split, items in plain["items"].items()}


def _as_items(losses: Mapping[str, Any]) -> dict[str, Any]:
    """The losses of documents, which were once all that a run kept, as items."""
    values = {measure: losses[measure] for measure in ("loss", "tokens", "bytes")}
    values["bits_per_byte"] = [bits_per_byte(*row) for row in zip(*values.values(), strict=True)]
    return {"names": losses["names"], "values": values}
