"""Masked tokens: what is hidden in an epoch, what stands there instead, and what is to be said there.

A function of the seed and the epoch alone: every epoch hides other places, and a run that goes on hides the
same ones. Held-out text is always hidden in one way, so that losses on it can be compared.

Shapes: N tokens of a flat stream, M masked places, B sequences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from attnlab.spec import Spec
from attnlab.tokens.batches import drawn, similar_together

Ids = NDArray[np.int64]
Bools = NDArray[np.bool_]

_SPECIAL = 2  # ids below: start and stop
_HELD_OUT = 1 << 32  # the seed of the masks that never change; a run's own seeds are smaller

Part = Annotated[float, Field(ge=0.0, le=1.0)]


class Masking(Spec):
    """How much is hidden, and how: 80/10/10 as in BERT (Devlin et al. 2019, https://arxiv.org/abs/1810.04805);
    `masked = 1` and `random = 0` put the mask everywhere."""

    rate: float = Field(default=0.15, gt=0.0, lt=1.0)  # of the words; of each sequence at least one
    masked: Part = 0.8  # of the hidden words, those that become the mask
    random: Part = 0.1  # those that become any other word; the rest stay as they are

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.masked + self.random > 1 + 1e-9:
            raise ValueError(
                f"masked {self.masked:g} and random {self.random:g} are shares of the hidden words: "
                "together no more than 1"
            )
        return self


class Stream(Protocol):
    """Sequences one after another."""

    @property
    def ids(self) -> NDArray[np.int32]: ...

    @property
    def starts(self) -> Ids: ...

    @property
    def unknown(self) -> int | None: ...


@dataclass(frozen=True)
class MaskedBatch:
    """What goes in, the places where something is to be said, and what was there."""

    inputs_N: Ids
    lengths_B: Ids
    places_M: Ids  # in the stream, upwards
    targets_M: Ids

    @property
    def tokens(self) -> int:
        return len(self.inputs_N)

    @property
    def targets(self) -> int:
        return len(self.targets_M)

    def split(self, pieces: int) -> Iterator[MaskedBatch]:
        """The same sequences in at most `pieces` smaller batches."""
        ends_B = np.concatenate([[0], self.lengths_B.cumsum()])
        for rows in np.array_split(np.arange(len(self.lengths_B)), min(pieces, len(self.lengths_B))):
            first, last = ends_B[rows[0]], ends_B[rows[-1] + 1]
            ours = (self.places_M >= first) & (self.places_M < last)
            yield MaskedBatch(
                self.inputs_N[first:last],
                self.lengths_B[rows],
                self.places_M[ours] - first,
                self.targets_M[ours],
            )


@dataclass(frozen=True, eq=False)
class MaskedSplit:
    """Sequences and the rule by which their words are hidden. Sequences without a word are left out."""

    stream: Stream
    masking: Masking
    mask: int  # the id of the mask, one above the vocabulary's

    @cached_property
    def is_word_N(self) -> Bools:
        """Where something can be hidden: neither start nor stop, nor what the vocabulary does not know."""
        ids = self.stream.ids
        words: Bools = ids >= _SPECIAL
        return words if self.stream.unknown is None else words & (ids != self.stream.unknown)

    @cached_property
    def kept(self) -> Ids:
        """The sequences in which something can be."""
        return np.flatnonzero(np.add.reduceat(self.is_word_N.astype(np.int64), self.stream.starts[:-1]))

    def take(self, sequences: Ids, seed: int, epoch: int = 0) -> MaskedBatch:
        """The given sequences as they are hidden in an epoch of a seed."""
        hidden_N, inputs_N = _hidden(self, seed, epoch)
        starts = self.stream.starts
        lengths_B = starts[sequences + 1] - starts[sequences]
        places_N = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in sequences])
        places_M = np.flatnonzero(hidden_N[places_N])
        targets_M = self.stream.ids[places_N[places_M]].astype(np.int64)
        return MaskedBatch(inputs_N[places_N], lengths_B, places_M, targets_M)

    def held_out(self, tokens: int) -> Iterator[MaskedBatch]:
        """Everything, hidden in the one way that never changes, in batches of about `tokens` tokens."""
        for chosen in similar_together(np.diff(self.stream.starts)[self.kept], tokens):
            yield self.take(self.kept[chosen], _HELD_OUT)


@lru_cache(maxsize=4)
def _hidden(split: MaskedSplit, seed: int, epoch: int) -> tuple[Bools, Ids]:
    """(N,) where words are hidden, and the stream with what stands there instead."""
    ids, starts, rule = split.stream.ids.astype(np.int64), split.stream.starts, split.masking
    rng = np.random.default_rng([seed, epoch, 1])
    luck_N = np.where(split.is_word_N, rng.random(len(ids)), np.inf)
    # The luckiest word of every sequence is hidden in any case, so that none is read for nothing.
    least_N = np.repeat(np.minimum.reduceat(luck_N, starts[:-1]), np.diff(starts))
    hidden_N = (luck_N < rule.rate) | ((luck_N == least_N) & np.isfinite(luck_N))
    fate_N = rng.random(len(ids))
    first_word = _SPECIAL if split.stream.unknown is None else split.stream.unknown + 1
    others_N = rng.integers(first_word, split.mask, len(ids))
    inputs_N = np.where(hidden_N & (fate_N < rule.masked), split.mask, ids)
    swapped_N = hidden_N & (fate_N >= rule.masked) & (fate_N < rule.masked + rule.random)
    return hidden_N, np.where(swapped_N, others_N, inputs_N)


@dataclass(frozen=True)
class MaskedBatches:
    """Every step's batch of a training split, each epoch in a new order and hidden anew."""

    split: MaskedSplit
    size: int
    seed: int

    @property
    def per_epoch(self) -> int:
        return math.ceil(len(self.split.kept) / self.size)

    def __getitem__(self, step: int) -> MaskedBatch:
        kept, starts = self.split.kept, self.split.stream.starts
        ends = (starts[kept + 1] - starts[kept]).cumsum()
        chosen = kept[drawn(np.concatenate([[0], ends]), self.size, self.seed, step)]
        return self.split.take(chosen, self.seed, step // self.per_epoch)
