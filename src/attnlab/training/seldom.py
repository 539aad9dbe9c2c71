"""Checkpoints of large models, less often: a gigabyte every twenty seconds would be most of the work."""

from __future__ import annotations

import time

from attnlab.training.loop import Observer, Row

SECONDS = 120.0  # between two checkpoints: what a power cut may cost


class Seldom:
    """An observer who is told everything, and asks for a checkpoint at most every two minutes."""

    def __init__(self, observer: Observer, seconds: float = SECONDS) -> None:
        self.observer, self.seconds = observer, seconds
        self._saved = time.monotonic()

    def begin(self, step: int) -> None:
        self.observer.begin(step)

    def row(self, row: Row) -> None:
        self.observer.row(row)

    def note(self, text: str) -> None:
        self.observer.note(text)

    def should_save(self) -> bool:
        if time.monotonic() - self._saved < self.seconds or not self.observer.should_save():
            return False
        self._saved = time.monotonic()
        return True

    def should_stop(self) -> bool:
        return self.observer.should_stop()
