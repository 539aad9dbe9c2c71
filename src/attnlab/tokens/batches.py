"""Sequences into batches: the same ones in the same order for every arm of a seed.

Which sequences make up step n follows from the seed and n alone, so a run can go on from any step without
remembering anything.

Shapes: N tokens of a flat stream, B sequences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from attnlab.tokens.encoded import Encoded

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Sequences one after another, without padding: what goes in, and what should come out at each place."""

    inputs_N: Ids
    targets_N: Ids
    lengths_B: Ids
    sequences_B: Ids  # which sequences of the split these are

    @property
    def tokens(self) -> int:
        return len(self.inputs_N)

    @property
    def targets(self) -> int:
        return len(self.targets_N)

    def split(self, pieces: int) -> Iterator[Batch]:
        """The same sequences in at most `pieces` smaller batches."""
        ends_B = np.concatenate([[0], self.lengths_B.cumsum()])
        for rows in np.array_split(np.arange(len(self.lengths_B)), min(pieces, len(self.lengths_B))):
            tokens = slice(ends_B[rows[0]], ends_B[rows[-1] + 1])
            yield Batch(
                self.inputs_N[tokens], self.targets_N[tokens], self.lengths_B[rows], self.sequences_B[rows]
            )


def take(split: Encoded, sequences_B: Ids) -> Batch:
    """A batch of the given sequences: every token but the last goes in, every one but the first comes out."""
    lengths_B = split.starts[sequences_B + 1] - split.starts[sequences_B] - 1
    first_N = np.repeat(split.starts[sequences_B] - np.concatenate([[0], lengths_B.cumsum()[:-1]]), lengths_B)
    places_N = first_N + np.arange(lengths_B.sum())
    ids = split.ids
    return Batch(
        ids[places_N].astype(np.int64), ids[places_N + 1].astype(np.int64), lengths_B, np.asarray(sequences_B)
    )


@dataclass(frozen=True)
class Batches:
    """Every step's batch of a training split; each epoch runs through all sequences in a new order."""

    split: Encoded
    size: int
    seed: int

    @property
    def per_epoch(self) -> int:
        return math.ceil((len(self.split.starts) - 1) / self.size)

    def __getitem__(self, step: int) -> Batch:
        return take(self.split, drawn(self.split.starts, self.size, self.seed, step))


def drawn(starts: NDArray[np.int64], size: int, seed: int, step: int) -> Ids:
    """Which sequences make up a step, of those that begin at `starts` (and end where the next begins)."""
    sequences = len(starts) - 1
    epoch, index = divmod(step, math.ceil(sequences / size))
    chosen = _order(sequences, seed, epoch)[index * size : (index + 1) * size]
    # A batch is a set: in order of length, its sequences can be worked on in stretches of similar ones.
    lengths = starts[chosen + 1] - starts[chosen]
    return chosen[np.argsort(lengths, kind="stable")]


@lru_cache(maxsize=2)
def _order(sequences: int, seed: int, epoch: int) -> Ids:
    return np.random.default_rng([seed, epoch]).permutation(sequences)


def in_order_of_length(split: Encoded, tokens: int, sequences: Ids | None = None) -> Iterator[Batch]:
    """All (or the given) sequences in batches of about `tokens` tokens, similar lengths together: for
    evaluation, where the order does not matter."""
    chosen = np.arange(len(split.starts) - 1) if sequences is None else np.asarray(sequences)
    lengths = split.starts[chosen + 1] - split.starts[chosen] - 1
    for places in similar_together(lengths, tokens):
        yield take(split, chosen[places])


def similar_together(lengths: Ids, tokens: int) -> Iterator[Ids]:
    """The places of sequences of these lengths, in batches of about `tokens` tokens with padding."""
    places = np.argsort(lengths, kind="stable")
    sizes = lengths[places]
    start = 0
    while start < len(places):
        # Sorted upwards: the last of a batch is its longest, so this bounds the padded size too.
        stop = start + 1
        while stop < len(places) and sizes[stop] * (stop + 1 - start) <= tokens:
            stop += 1
        yield places[start:stop]
        start = stop
