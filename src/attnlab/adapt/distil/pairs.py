"""Requests and answers as a student learns them: both are read, and only the answers are to be predicted.

Shapes: B pairs, T places of the longest, N tokens of all answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attnlab.tokens.batches import drawn, similar_together


@dataclass(frozen=True)
class Pair:
    """A request and its answer, as tokens."""

    asked: tuple[int, ...]
    answered: tuple[int, ...]

    def __len__(self) -> int:
        """How many tokens are read: the last one is only predicted."""
        return len(self.asked) + len(self.answered) - 1


@dataclass(frozen=True)
class PairBatch:
    """Pairs that are worked on together."""

    pairs: tuple[Pair, ...]

    @property
    def tokens(self) -> int:
        return sum(map(len, self.pairs))

    @property
    def targets(self) -> int:
        return sum(len(pair.answered) for pair in self.pairs)

    def split(self, pieces: int) -> Iterator[PairBatch]:
        """The same pairs in at most `pieces` smaller batches; neighbours, which are of similar length, stay
        together."""
        for rows in np.array_split(np.arange(len(self.pairs)), min(pieces, len(self.pairs))):
            yield PairBatch(tuple(self.pairs[row] for row in rows))

    def read(self, device: torch.device) -> Read:
        """As tensors, padded on the right."""
        B, T = len(self.pairs), max(map(len, self.pairs))
        tokens_BT = torch.zeros(B, T, dtype=torch.long)
        seen_BT = torch.zeros(B, T, dtype=torch.long)
        places: list[int] = []
        for row, pair in enumerate(self.pairs):
            whole = [*pair.asked, *pair.answered][:-1]
            tokens_BT[row, : len(whole)] = torch.tensor(whole)
            seen_BT[row, : len(whole)] = 1
            # The last token of a request is where its answer's first is predicted.
            places += range(row * T + len(pair.asked) - 1, row * T + len(whole))
        targets = [token for pair in self.pairs for token in pair.answered]
        made = (tokens_BT, seen_BT, torch.tensor(places), torch.tensor(targets))
        return Read(*(tensor.to(device) for tensor in made))


@dataclass(frozen=True)
class Read:
    """A batch as a model takes it."""

    tokens_BT: Tensor
    seen_BT: Tensor  # 1 where a token is; 0 where padding is
    places_N: Tensor  # of B·T places, those after which a token of an answer comes
    targets_N: Tensor


@dataclass(frozen=True)
class PairBatches:
    """Every step's batch; each epoch runs through all pairs in a new order."""

    pairs: Sequence[Pair]
    size: int
    seed: int

    @property
    def per_epoch(self) -> int:
        return math.ceil(len(self.pairs) / self.size)

    def __getitem__(self, step: int) -> PairBatch:
        starts = np.cumsum([0, *map(len, self.pairs)])
        return PairBatch(tuple(self.pairs[i] for i in drawn(starts, self.size, self.seed, step)))


def by_length(pairs: Sequence[Pair], tokens: int) -> Iterator[PairBatch]:
    """All pairs in batches of about so many tokens, similar lengths together: for evaluation."""
    for places in similar_together(np.array([len(pair) for pair in pairs]), tokens):
        yield PairBatch(tuple(pairs[place] for place in places))
