"""Schedules: how the learning rate changes over a run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from attnlab.spec import Count, Part, Rate


class Schedule(Part, family="schedule"):
    """The factor on the learning rate at a step of a run of `steps`."""

    def factor(self, step: int, steps: int) -> float:
        raise TypeError(f"the schedule {self.name!r} gives no factor")


@dataclass(frozen=True, kw_only=True)
class Constant(Schedule):
    """The same rate throughout, after a linear warm-up."""

    warmup: Count = 0

    def factor(self, step: int, steps: int) -> float:
        return min(1.0, (step + 1) / (self.warmup + 1))


@dataclass(frozen=True, kw_only=True)
class Cosine(Schedule):
    """A linear warm-up, then half a cosine down to `floor` times the rate."""

    warmup: Count = 0
    floor: Rate = 0.0

    def factor(self, step: int, steps: int) -> float:
        if step < self.warmup:
            return (step + 1) / (self.warmup + 1)
        done = (step - self.warmup) / max(1, steps - self.warmup)
        return self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


@dataclass(frozen=True, kw_only=True)
class Linear(Schedule):
    """A linear warm-up, then straight down to nothing, as fine-tuning is usually done."""

    warmup: Rate = 0.06  # of the run

    def factor(self, step: int, steps: int) -> float:
        warmup = round(self.warmup * steps)
        if step < warmup:
            return (step + 1) / (warmup + 1)
        return max(0.0, (steps - step) / max(1, steps - warmup))
