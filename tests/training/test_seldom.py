"""Checkpoints at most so often, and everything else as it comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def test_a_checkpoint_comes_every_so_many_times_that_one_is_wanted() -> None:
    wanted = iter([True, False, True, True, True, False, True, True])
    eager = _Eager()
    eager.should_save = lambda: next(wanted)  # type: ignore[method-assign]
    seldom = Seldom(eager, every=3)
    assert [seldom.should_save() for _ in range(8)] == [False, False, False, True, False, False, False, True]


def test_the_observer_has_the_last_word_and_hears_everything() -> None:
    eager = _Eager()
    seldom = Seldom(eager, every=1)
    assert seldom.should_save()
    assert seldom.should_stop()
    eager.should_save = lambda: False  # type: ignore[method-assign]
    assert not seldom.should_save()
    seldom.begin(3)
    seldom.row({"step": 4})
    seldom.note("so")
    assert eager.told == [3, {"step": 4}, "so"]
