"""The page of real runs: its counts are those of the verdicts, and it would show verdicts that err."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.same_and_different import PLAN, falsely_called, page, words_of
from numpy.typing import NDArray

Array = NDArray[np.float64]
DOCS = Path(__file__).parents[2] / "docs"
DIFFERENT = {
    "arms": [{"parameters": 1234}],
    "verdicts": [
        {"arm": "one head", "verdict": "worse", "effect": 0.02, "ci": [0.01, 0.03], "p": 0.001},
    ],
}
REMOVED = {
    "verdicts": [
        {"arm": "none", "verdict": "undecided", "effect": -0.1, "ci": [-0.3, 0.1], "p": 0.5},
    ],
}


@pytest.fixture
def losses() -> Array:
    rng = np.random.default_rng(0)
    of_runs = rng.normal(0, 0.02, size=(300, 1)) + rng.normal(0, 0.05, size=(300, 16))
    return rng.normal(5, 1, size=(1, 16)) + of_runs


@pytest.fixture
def tokens() -> list[int]:
    return list(range(100, 116))


def test_the_page_counts_what_the_verdicts_say(losses: Array, tokens: list[int]) -> None:
    words = words_of(losses, tokens)
    false = words["better"] + words["worse"]
    assert words.total() == 30
    text = page(losses, tokens, DIFFERENT, REMOVED)
    assert f"**{false} of 30**" in text
    assert "| one head | worse | +0.0200 | +0.0100 to +0.0300 | 0.001 |" in text
    assert "| none | undecided | -0.1000 | -0.3000 to +0.1000 | 0.5 |" in text


def test_sides_that_differ_are_counted(losses: Array, tokens: list[int]) -> None:
    moved = losses.reshape(30, 2, 5, 16).copy()
    moved[:, 1] += 0.2
    words = words_of(moved.reshape(300, 16), tokens)
    assert words["worse"] == 30


def test_runs_drawn_anew_err_as_rarely_as_they_should(losses: Array, tokens: list[int]) -> None:
    draws = 2000
    allowed = PLAN.alpha + 3 * np.sqrt(PLAN.alpha * (1 - PLAN.alpha) / draws)
    assert 0 < falsely_called(losses, tokens, draws) <= allowed


def test_the_kept_page_adds_up_and_its_real_differences_were_found() -> None:
    text = (DOCS / "real-runs.md").read_text("utf-8")
    counts = {word: int(number) for word, number in re.findall(r"^\| (\w+) \| (\d+) \|$", text, re.MULTILINE)}
    kept = re.search(r"\*\*(\d+) of (\d+)\*\*", text)
    assert kept is not None
    false, studies = map(int, kept.groups())
    assert counts.get("better", 0) + counts.get("worse", 0) == false
    assert sum(counts.values()) == studies == 30
    found = dict(re.findall(r"^\| ([A-Za-z ]+) \| (\w+) \| [+-]\d", text, re.MULTILINE))
    assert found["learning rate halved"] == found["ALiBi removed"] == "worse"
