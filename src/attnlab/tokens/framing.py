"""Documents into sequences: one per sentence, or a stream cut into blocks.

A stop stands for the gap after a unit, a space or a line break, and counts as one byte, so that the bytes of
a document are the same for every tokenizer and framing that keeps all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from attnlab.corpus import Document
from attnlab.errors import RequestError
from attnlab.spec import Positive
from attnlab.tokens.base import Framing
from attnlab.tokens.encoded import Encoded, Ids
from attnlab.tokens.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class Sentences(Framing):
    """Every unit by itself, `<START> … <STOP>`; what goes beyond the limit is cut and counted."""

    limit: Positive | None = (
        None  # tokens to predict in a sequence, the stop among them; the context if not given
    )

    def frame(self, documents: Sequence[Document], vocabulary: Vocabulary, context: int) -> Encoded:
        limit = self.limit or context
        if limit > context:
            raise RequestError(
                f"sentences are to be cut at {limit} tokens, but the model reads only {context}; "
                f"give a limit up to {context}, or a longer context"
            )
        units = [unit for document in documents for unit in document.units]
        encoded = [vocabulary.encode(unit) for unit in units]
        lengths = np.fromiter((len(ids) for ids in encoded), np.int64, len(encoded))
        sizes = np.fromiter((len(unit.encode()) for unit in units), np.int64, len(units)) + 1
        too_long = np.flatnonzero(lengths + 1 > limit)
        for i in too_long:
            sizes[i] = vocabulary.ends(units[i])[limit - 1]
        start, stop = vocabulary.start, vocabulary.stop
        sequences = (([start, *ids, stop])[: limit + 1] for ids in encoded)
        kept = np.minimum(lengths + 1, limit)
        return Encoded(
            ids=np.fromiter(chain.from_iterable(sequences), np.int32, int(kept.sum()) + len(units)),
            starts=np.concatenate([[0], np.cumsum(kept + 1)]),
            document=np.repeat(np.arange(len(documents), dtype=np.int32), [len(d.units) for d in documents]),
            names=tuple(d.name for d in documents),
            bytes=sizes,
            size=vocabulary.size,
            start=start,
            stop=stop,
            unknown=vocabulary.unknown,
            cut_sequences=len(too_long),
            cut_tokens=int((lengths + 1 - kept).sum()),
        )


@dataclass(frozen=True, kw_only=True)
class Blocks(Framing):
    """A document as one stream, cut into blocks of `context` inputs, so that every token is predicted once.

    Neighbouring blocks share one token: the last target of one is the first input of the next.
    """

    def frame(self, documents: Sequence[Document], vocabulary: Vocabulary, context: int) -> Encoded:
        streams, starts, owner, blocks = [], [0], [], []
        for index, document in enumerate(documents):
            ids, ends = _stream(document, vocabulary)
            for first in range(0, len(ids) - 1, context):
                last = min(first + context, len(ids) - 1)
                streams.append(ids[first : last + 1])
                starts.append(starts[-1] + last + 1 - first)
                blocks.append(ends[last] - ends[first])
                owner.append(index)
        return Encoded(
            ids=np.concatenate(streams),
            starts=np.asarray(starts, dtype=np.int64),
            document=np.asarray(owner, dtype=np.int32),
            names=tuple(d.name for d in documents),
            bytes=np.asarray(blocks, dtype=np.int64),
            size=vocabulary.size,
            start=vocabulary.start,
            stop=vocabulary.stop,
            unknown=vocabulary.unknown,
        )


def _stream(document: Document, vocabulary: Vocabulary) -> tuple[Ids, list[int]]:
    """The ids of a document, and how many of its bytes end with each."""
    ids, ends, done = [vocabulary.start], [0], 0
    for unit in document.units:
        ids += [*vocabulary.encode(unit), vocabulary.stop]
        ends += [done + end for end in vocabulary.ends(unit)]
        done += len(unit.encode()) + 1
        ends.append(done)
    return np.asarray(ids, dtype=np.int32), ends
