"""Verdicts on whatever a kind measures of its items: direction, weights, arms that cannot be compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest

from attnlab.record import Check, Items, RunResult
from attnlab.study.kind import Held
from attnlab.study.results import _finding, _worst, judged
from attnlab.study.study import Arm, Study
from attnlab.verdict import Metric

NAMES = tuple(f"text {i}" for i in range(400))
LOSS = Held("test", "loss", Metric("test_loss"), weight="tokens", unlike="other tokens")


@dataclass(frozen=True)
class Asked:
    """What judging reads of a study."""

    judged_by: Held
    margin: float = 0.0
    baseline: Arm = field(default_factory=lambda: Arm(name="old"))

    def words(self, old: list[Items], new: list[Items]) -> list[str]:
        runs = {
            name: [RunResult(name, seed, "ok", items={"test": items}) for seed, items in enumerate(found)]
            for name, found in (("old", old), ("new", new))
        }
        verdicts = judged(cast(Study, cast(Any, self)), runs, {})
        return [f"{verdict.verdict}: {verdict.reason}" for verdict in verdicts]


def answers(share: float) -> list[Items]:
    """Five seeds that get about this share of the texts right."""
    rng = np.random.default_rng(round(1000 * share))
    return [Items(NAMES, {"correct": tuple((rng.random(400) < share).astype(float))}) for _ in range(5)]


@pytest.mark.parametrize(("direction", "word"), [("higher", "better"), ("lower", "worse")])
def test_the_direction_is_the_metrics(direction: Any, word: str) -> None:
    held = Held("test", "correct", Metric("test_accuracy", direction))
    (said,) = Asked(held).words(answers(0.6), answers(0.8))
    assert said.startswith(f"{word}: the test_accuracy is 0.19")
    assert said.count("higher") == 2


def weighed(shift: float, tokens: tuple[int, ...]) -> list[Items]:
    loss = 5.0 + shift * np.arange(400) / 400
    rows = [loss + 0.001 * np.random.default_rng(seed).normal(size=400) for seed in range(5)]
    return [Items(NAMES, {"loss": tuple(row), "tokens": tokens}) for row in rows]


def test_an_item_counts_as_much_as_it_weighs() -> None:
    """Half of the items weigh nothing, and it is the half that differs."""
    tokens = (10,) * 200 + (0,) * 200
    old = weighed(0.0, tokens)
    new = [Items(NAMES, {**items.values, "loss": (*items["loss"][:200], *[9.0] * 200)}) for items in old]
    (said,) = Asked(LOSS, margin=0.01).words(old, new)
    assert said.startswith("equivalent")
    (said,) = Asked(Held("test", "loss", Metric("test_loss")), margin=0.01).words(old, new)
    assert said.startswith("worse")


def test_arms_of_other_weights_are_refused_where_the_kind_says_so() -> None:
    old, new = weighed(0.0, (10,) * 400), weighed(-1.0, (11,) * 400)
    assert Asked(LOSS).words(old, new) == [
        "invalid: other tokens; its numbers do not mean what the others' mean"
    ]
    (said,) = Asked(Held("test", "loss", Metric("test_loss"), weight="tokens")).words(old, new)
    assert said.startswith("better")


def answering(status: Any, checks: str) -> list[RunResult]:
    """A run per letter: its check passed (p), was skipped (s) or failed (f)."""
    words: dict[str, Any] = {"p": "pass", "s": "skip", "f": "fail"}
    return [
        RunResult("new", seed, status, checks=(Check("one-answer", words[letter], f"seed {seed}"),))
        for seed, letter in enumerate(checks)
    ]


def test_a_check_that_failed_in_some_runs_only_is_told_and_does_not_rule_the_arm_out() -> None:
    assert _finding({}, answering("ok", "pfs")) is None
    assert [check["evidence"] for check in _worst(answering("ok", "psf"))] == ["seed 2"]


@pytest.mark.parametrize(("status", "checks"), [("ok", "ff"), ("invalid", "pf")])
def test_one_that_failed_in_all_does_and_so_does_a_run_that_calls_itself_invalid(
    status: Any, checks: str
) -> None:
    assert (_finding({}, answering(status, checks)) or "").startswith("one-answer: seed")
