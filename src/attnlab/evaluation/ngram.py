"""N-gram models on the very tokens a model is scored on, as a floor for it: numpy, no torch.

Interpolated Kneser–Ney with the three discounts of Chen and Goodman at each order, down to the uniform
distribution. The start of a sequence is context and never a target, so it has probability 0 and every
distribution sums to one over the rest. A target whose sequence offers less context than the order asks for
is scored with what there is, like the models: nothing is seen across the edge of a sequence.

Shapes: N targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import RequestError
from attnlab.tokens.encoded import Encoded

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Discounts = tuple[float, float, float]  # taken from counts of one, two, and three or more

_LARGEST = 2_000_000  # ids of which three fit into one 64-bit key


@dataclass(frozen=True, eq=False)
class Events:
    """Every target of a split with the one and two tokens before it."""

    target: Ints  # N
    previous: Ints  # N: always there
    earlier: Ints  # N: -1 where the sequence begins with `previous`
    size: int
    start: int

    @classmethod
    def of(cls, encoded: Encoded) -> Events:
        if encoded.size > _LARGEST:
            raise RequestError(
                f"a vocabulary of {encoded.size:,} is too large for n-grams ({_LARGEST:,} at most)"
            )
        ids = encoded.ids.astype(np.int64)
        places = np.flatnonzero(encoded.is_target)
        second = np.zeros(len(ids) + 1, dtype=np.bool_)
        second[encoded.starts[:-1] + 1] = True
        earlier = np.where(second[places], -1, ids[places - 2])
        return cls(ids[places], ids[places - 1], earlier, encoded.size, encoded.start)


@dataclass(frozen=True, eq=False)
class Unigram:
    """How often each token is a target, plus one."""

    probability_V: Floats

    @classmethod
    def fit(cls, train: Encoded) -> Unigram:
        counts = np.bincount(train.targets, minlength=train.size) + 1.0
        counts[train.start] = 0.0
        return cls(counts / counts.sum())

    def losses(self, held_out: Encoded) -> Floats:
        """The loss of every target, in nats."""
        return -np.log(self.probability_V[held_out.targets])


@dataclass(frozen=True, eq=False)
class _Level:
    """Counts of one order: n-grams as keys `context * size + target`, and what each context gives away."""

    size: int
    keys: Ints  # sorted
    kept: Floats  # of each key: its discounted share of its context
    contexts: Ints  # sorted
    given: Floats  # of each context: the share that goes to the lower order

    @classmethod
    def of(cls, keys: Ints, counts: Ints, size: int, discounts: Discounts | None) -> _Level:
        discount = np.array([0.0, *(discounts or estimate(counts))])[np.minimum(counts, 3)]
        contexts, member = np.unique(keys // size, return_inverse=True)
        total = np.bincount(member, weights=counts)
        given = np.bincount(member, weights=discount) / total
        return cls(size, keys, (counts - discount) / total[member], contexts, given)

    def over(self, lower: Floats, context: Ints, target: Ints) -> Floats:
        """The probability at this order, given that of the order below."""
        kept = _look_up(self.keys, self.kept, context * self.size + target, 0.0)
        return kept + _look_up(self.contexts, self.given, context, 1.0) * lower


@dataclass(frozen=True, eq=False)
class KneserNey:
    """A bigram (order 2) or trigram (order 3) model."""

    size: int
    start: int
    unigram: _Level
    bigram: _Level
    trigram: _Level | None

    @classmethod
    def fit(cls, train: Encoded, order: int, discounts: Sequence[Discounts] | None = None) -> KneserNey:
        """Counts of `train`; `discounts`, the lowest order first, are estimated from them if not given."""
        if order not in (2, 3):
            raise RequestError(f"Kneser–Ney is here of order 2 or 3, not {order}")
        events, v = Events.of(train), train.size
        d1, d2, d3 = (*discounts, None, None, None)[:3] if discounts is not None else (None, None, None)
        pairs = events.previous * v + events.target
        trigram = None
        if order == 3:
            full = events.earlier >= 0
            triples = events.earlier[full] * v * v + pairs[full]
            trigram = _Level.of(*np.unique(triples, return_counts=True), v, d3)
            # A lower order counts in how many contexts an n-gram stands. What follows a start has only one.
            # A sequence that begins in the middle of a text is a context of its own.
            distinct = np.unique((events.earlier + 1) * v * v + pairs) % (v * v)
            first = pairs[events.previous == events.start]
            pairs = np.concatenate([distinct[distinct // v != events.start], first])
        keys, counts = np.unique(pairs, return_counts=True)
        bigram = _Level.of(keys, counts, v, d2)
        unigram = _Level.of(*np.unique(keys % v, return_counts=True), v, d1)
        return cls(v, train.start, unigram, bigram, trigram)

    def losses(self, held_out: Encoded) -> Floats:
        """The loss of every target, in nats."""
        events = Events.of(held_out)
        return -np.log(self.probability(events.earlier, events.previous, events.target))

    def probability(self, earlier: Ints, previous: Ints, target: Ints) -> Floats:
        """Of each target after its two tokens of context; an `earlier` of -1 is none."""
        uniform = np.where(target == self.start, 0.0, 1.0 / (self.size - 1))
        p = self.unigram.over(uniform, np.zeros_like(target), target)
        p = self.bigram.over(p, previous, target)
        if self.trigram is None:
            return p
        return np.where(earlier < 0, p, self.trigram.over(p, earlier * self.size + previous, target))


def estimate(counts: Ints) -> Discounts:
    """Chen and Goodman's discounts from how many n-grams occur once, twice, three and four times.

    Where the text is too small for them (no n-gram of some count, or a discount outside of its range), one
    discount for all counts, from the first two, or a half.
    """
    n1, n2, n3, n4 = (int((counts == k).sum()) for k in (1, 2, 3, 4))
    if not (n1 and n2):
        return (0.5, 0.5, 0.5)
    y = n1 / (n1 + 2 * n2)
    if n3 and n4:
        found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
        if all(0 < d < k for k, d in enumerate(found, 1)):
            return found
    return (y, y, y)


def _look_up(keys: Ints, values: Floats, wanted: Ints, otherwise: float) -> Floats:
    if not len(keys):
        return np.full(len(wanted), otherwise)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], otherwise)
