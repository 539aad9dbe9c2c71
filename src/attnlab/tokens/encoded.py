"""A split as numbers: all its sequences one after another, without padding.

Shapes: N ids, S sequences, D documents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Longs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Encoded:
    """The inputs of a sequence are `ids[s:e-1]`, its targets `ids[s+1:e]`, with s and e from `starts`."""

    ids: Ids  # N
    starts: Longs  # S + 1: where each sequence begins, and the end of the last
    document: Ids  # S: which document a sequence belongs to, as an index into `names`
    names: tuple[str, ...]  # D
    bytes: Longs  # S: UTF-8 bytes of the text that the targets of a sequence stand for
    size: int  # of the vocabulary: ids are below it
    start: int
    stop: int
    unknown: int | None
    cut_sequences: int = 0  # sequences that lost their end to the length limit
    cut_tokens: int = 0  # targets lost with it

    @property
    def n_sequences(self) -> int:
        return len(self.document)

    @property
    def n_targets(self) -> int:
        """How many predictions a model makes: every token but the first of each sequence."""
        return len(self.ids) - self.n_sequences

    @property
    def targets_per_sequence(self) -> Longs:
        """S."""
        counts: Longs = np.diff(self.starts) - 1
        return counts

    @property
    def is_target(self) -> NDArray[np.bool_]:
        """N: false for the first token of each sequence, which only ever is context."""
        mask = np.ones(len(self.ids), dtype=np.bool_)
        mask[self.starts[:-1]] = False
        return mask

    @property
    def targets(self) -> Ids:
        """All targets, in order."""
        return self.ids[self.is_target]

    @property
    def unknown_rate(self) -> float:
        """The share of the predicted text (stops aside) that the vocabulary does not know."""
        words = self.targets[self.targets != self.stop]
        if self.unknown is None or not len(words):
            return 0.0
        return float(np.mean(words == self.unknown))
