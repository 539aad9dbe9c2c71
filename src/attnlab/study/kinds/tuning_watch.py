"""Between a training and whoever watches it: what is measured on the way, seen with the answers behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from attnlab.evaluation.classified import Classified
from attnlab.training import Observer


@dataclass(frozen=True)
class Evaluation:
    """What was measured after a step."""

    epochs: float
    seconds: float  # of training, so far
    row: Mapping[str, Any]
    dev: Classified


class Watch:
    """An observer that hands evaluations on, and may end the training by itself."""

    def __init__(
        self,
        observer: Observer,
        each: Callable[[Evaluation], None],
        *,
        curve: bool = True,
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.observer, self.each, self.curve, self.over = observer, each, curve, over
        self.per_epoch = 1
        self._dev: Classified | None = None

    def evaluation(self, train: Classified, dev: Classified) -> dict[str, float]:
        """A row of the curve: both splits by the same function."""
        self._dev = dev
        return {
            f"{name}_{what}": found.items.mean(key)
            for name, found in (("train", train), ("dev", dev))
            for what, key in (("accuracy", "correct"), ("loss", "loss"))
        }

    def begin(self, step: int) -> None:
        if self.curve:
            self.observer.begin(step)

    def row(self, row: Mapping[str, Any]) -> None:
        if self.curve:
            self.observer.row(row)
        if self._dev is not None:
            dev, self._dev = self._dev, None
            self.each(Evaluation(row["step"] / self.per_epoch, row["seconds"], row, dev))

    def note(self, text: str) -> None:
        self.observer.note(text)

    def should_save(self) -> bool:
        return self.observer.should_save()

    def should_stop(self) -> bool:
        return self.over() or self.observer.should_stop()
