"""Checkpoints at most so often, and everything else as it comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from attnlab.training.seldom import Seldom


class _Eager:
    """Wants a checkpoint after every step, and keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def begin(self, step: int) -> None:
        self.told.append(step)

    def row(self, row: Mapping[str, Any]) -> None:
        self.told.append(row)

    def note(self, text: str) -> None:
        self.told.append(text)

    def should_save(self) -> bool:
        return True

    def should_stop(self) -> bool:
        return True


def test_checkpoints_come_as_seldom_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    seldom = Seldom(_Eager(), seconds=60)
    asked = []
    for now in (1001.0, 1059.0, 1061.0, 1062.0, 1120.0, 1122.0):  # noqa: B007 - the clock reads it
        asked.append(seldom.should_save())
    assert asked == [False, False, True, False, False, True]


def test_the_observer_has_the_last_word_and_hears_everything() -> None:
    eager = _Eager()
    seldom = Seldom(eager, seconds=0)
    assert seldom.should_save()
    assert seldom.should_stop()
    eager.should_save = lambda: False  # type: ignore[method-assign]
    assert not seldom.should_save()
    seldom.begin(3)
    seldom.row({"step": 4})
    seldom.note("so")
    assert eager.told == [3, {"step": 4}, "so"]
