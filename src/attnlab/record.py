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
class DocumentLosses:
    """The loss of every document of a split: the mean over its tokens, in nats, how many those are, and how
    many bytes of text they stand for."""

    names: tuple[str, ...]
    loss: tuple[float, ...]
    tokens: tuple[int, ...]
    bytes: tuple[int, ...]

    @property
    def total_tokens(self) -> int:
        return sum(self.tokens)

    @property
    def mean(self) -> float:
        """The mean over all tokens, in nats."""
        weighted = sum(loss * n for loss, n in zip(self.loss, self.tokens, strict=True))
        return weighted / self.total_tokens

    @property
    def bits_per_byte(self) -> tuple[float, ...]:
        """Of every document: a loss that does not depend on the tokenizer."""
        rows = zip(self.loss, self.tokens, self.bytes, strict=True)
        return tuple(loss * tokens / (math.log(2) * size) for loss, tokens, size in rows)


@dataclass(frozen=True)
class RunResult:
    """What one run, an arm with a seed, measured: the content of its `result.json`."""

    arm: str
    seed: int
    status: RunStatus
    metrics: Mapping[str, float] = field(default_factory=dict)
    documents: Mapping[str, DocumentLosses] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    sentences: tuple[Mapping[str, Any], ...] = ()
    samples: tuple[str, ...] = ()
    seconds: float = 0.0
    tokens_per_second: float = 0.0
    steps: int = 0
    reason: str | None = None

    def plain(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> RunResult:
        fields = {k: v for k, v in plain.items() if k != "schema"}
        fields["documents"] = {
            split: DocumentLosses(*(tuple(d[key]) for key in ("names", "loss", "tokens", "bytes")))
            for split, d in fields["documents"].items()
        }
        fields["checks"] = tuple(Check(**check) for check in fields["checks"])
        return cls(**{**fields, "sentences": tuple(fields["sentences"]), "samples": tuple(fields["samples"])})
