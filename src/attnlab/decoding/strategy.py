"""What a decoding strategy is: filters that change the distribution of the next token, one after another,
and at the end a search that chooses by what is left.

Shapes: B continuations, T tokens written so far (the prompt among them), V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.decoding.writer import Writer
from attnlab.spec import Part


class Strategy(Part, ABC, family="strategy"):
    """One idea about how a distribution becomes a text."""

    @abstractmethod
    def __str__(self) -> str:
        """What it does, in a few words."""


class Filter(Strategy):
    """Changes the logits before a token is chosen."""

    @abstractmethod
    def __call__(self, logits_BV: Tensor, written_BT: Tensor) -> Tensor:
        """The logits to choose by, from those before (which stay as they are) and what is written."""


class Search(Strategy):
    """Chooses the tokens."""

    draws: ClassVar[bool] = False  # whether chance has a part in it; without, every continuation is the same

    @abstractmethod
    def run(self, task: Task) -> list[Continuation]:
        """A continuation for every row of the task's prompt."""


@dataclass(frozen=True)
class Continuation:
    """What was written after a prompt."""

    tokens: tuple[int, ...]
    ended: bool  # by a stop, which is not among the tokens; otherwise because there was no more room


@dataclass(frozen=True)
class Task:
    """What a search is given: where to begin, how far to go, and the filters on the way."""

    writer: Writer
    prompt_BT: Tensor
    filters: tuple[Filter, ...]
    longest: int  # new tokens at most
    seeds_B: Sequence[int]  # of the random numbers of every row

    def filtered(self, logits_BV: Tensor, written_BT: Tensor) -> Tensor:
        """What is left of a distribution, in fp64: neither a low temperature nor a long sum loses a token."""
        logits_BV = self.allowed(logits_BV).double()
        for change in self.filters:
            logits_BV = change(logits_BV, written_BT)
        return logits_BV

    def allowed(self, logits_BV: Tensor) -> Tensor:
        """Without what cannot be written."""
        if self.writer.never:
            logits_BV = logits_BV.clone()
            logits_BV[:, list(self.writer.never)] = float("-inf")
        return logits_BV


def only(keep_BV: Tensor, logits_BV: Tensor) -> Tensor:
    """The logits of what is kept; all others have no chance."""
    return logits_BV.masked_fill(~keep_BV, float("-inf"))


def best(logits_BV: Tensor) -> Tensor:
    """(B, V): true for the likeliest token alone, the one with the lowest id where several are."""
    return torch.zeros_like(logits_BV, dtype=torch.bool).scatter_(1, logits_BV.argmax(-1, keepdim=True), True)
