"""Checkpoints of large models, less often: a gigabyte every twenty seconds would be most of the work."""

from __future__ import annotations

from attnlab.training.loop import Observer, Row

EVERY = (
    6  # of the times that an observer asks, in turn: every two minutes, where it asks every twenty seconds
)


class Seldom:
    """An observer who is told everything, and gets a checkpoint only every so many times that it asks."""

    def __init__(self, observer: Observer, every: int = EVERY) -> None:
        self.observer, self.every = observer, every
        self._asked = 0

    def begin(self, step: int) -> None:
        self.observer.begin(step)

    def row(self, row: Row) -> None:
        self.observer.row(row)

    def note(self, text: str) -> None:
        self.observer.note(text)

    def should_save(self) -> bool:
        self._asked += self.observer.should_save()
        if self._asked < self.every:
            return False
        self._asked = 0
        return True

    def should_stop(self) -> bool:
        return self.observer.should_stop()
