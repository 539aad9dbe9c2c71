"""Labelled documents as a classifier reads them: `<START> text <STOP>`, then perhaps a second text.

The start means nothing else, so it is what a class token stands on; the stop separates two texts. A unit of
a document is one example with the document's label: a whole text, or a sentence of an address.

Shapes: N tokens of a flat stream, B examples of a batch, S examples of a split, D documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attnlab.corpus import Document
from attnlab.errors import CorpusError
from attnlab.spec import Spec
from attnlab.tokens.batches import drawn, similar_together
from attnlab.tokens.vocabulary import Vocabulary

Ids = NDArray[np.int64]


class Reading(Spec):
    """How texts become sequences."""

    start: bool = True  # begin with `<START>`; a class token needs it
    stop: bool = True  # end every text with `<STOP>`; a pair always has one between its texts
    shorten: Literal["longer", "first", "second"] = "longer"  # which text of a pair gives way to the context


@dataclass(frozen=True, eq=False)
class Examples:
    """A split: its sequences one after another, the place of each one's label, and whose they are."""

    ids: NDArray[np.int32]  # N
    starts: Ids  # S + 1
    labels: Ids  # S: places in the classes; -1 where there is none
    document: Ids  # S: places in `names`
    names: tuple[str, ...]  # D
    texts: tuple[str, ...]  # S: as they were before they were cut
    unknown: int | None
    cut_sequences: int = 0
    cut_tokens: int = 0

    @property
    def n_sequences(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> Ids:
        """S."""
        return np.diff(self.starts)

    def sample(self, most: int) -> Examples:
        """So many of the examples, drawn once and for all; all where there are no more."""
        if self.n_sequences <= most:
            return self
        chosen = np.sort(np.random.default_rng([0, self.n_sequences]).permutation(self.n_sequences)[:most])
        pieces = [self.ids[self.starts[i] : self.starts[i + 1]] for i in chosen]
        return replace(
            self,
            ids=np.concatenate(pieces),
            starts=np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])]),
            labels=self.labels[chosen],
            document=self.document[chosen],
            texts=tuple(self.texts[i] for i in chosen),
        )

    @property
    def unknown_rate(self) -> float:
        """The share of all tokens (start and stop aside) that the vocabulary does not know."""
        words = self.ids[self.ids > 1]
        return float(np.mean(words == self.unknown)) if self.unknown is not None and len(words) else 0.0


def classes_of(documents: Iterable[Document], source: str) -> tuple[str, ...]:
    """The labels of the training split, sorted; an error where a document has none, or all have the same."""
    found: set[str] = set()
    for document in documents:
        if document.label is None:
            raise CorpusError(
                f"{source}: {document.name} has no label; a classifier needs a corpus with labels (part "
                '"labelled", or "table" or "hub" with a label column, or "sotu" with label = "president")'
            )
        found.add(document.label)
    if len(found) < 2:
        raise CorpusError(f"{source}: every label is {found.pop()!r}: there is nothing to tell apart")
    return tuple(sorted(found))


def examples_of(
    documents: Sequence[Document],
    vocabulary: Vocabulary,
    classes: Sequence[str],
    reading: Reading,
    context: int,
) -> Examples:
    """A split of labelled documents in sequences of at most `context` tokens."""
    places = {name: place for place, name in enumerate(classes)}
    sequences, labels, owners, texts, cut = [], [], [], [], []
    for owner, document in enumerate(documents):
        if document.label is not None and document.label not in places:
            raise CorpusError(
                f"{document.name} has the label {document.label!r}, which no training document has "
                f"({', '.join(classes)})"
            )
        for unit in document.units:
            pair = (unit,) if document.pair is None else (unit, document.pair)
            sequence, missing = sequence_of(pair, vocabulary, reading, context)
            sequences.append(sequence)
            labels.append(places.get(document.label or "", -1))
            owners.append(owner)
            texts.append(unit if document.pair is None else f"{unit} / {document.pair}")
            cut.append(missing)
    lengths = [len(sequence) for sequence in sequences]
    return Examples(
        ids=np.fromiter((id for sequence in sequences for id in sequence), np.int32, sum(lengths)),
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        labels=np.asarray(labels, dtype=np.int64),
        document=np.asarray(owners, dtype=np.int64),
        names=tuple(document.name for document in documents),
        texts=tuple(texts),
        unknown=vocabulary.unknown,
        cut_sequences=sum(c > 0 for c in cut),
        cut_tokens=sum(cut),
    )


def sequence_of(
    texts: Sequence[str], vocabulary: Vocabulary, reading: Reading, context: int
) -> tuple[list[int], int]:
    """One text or two as the model reads them, and how many tokens there was no room for."""
    whole = [vocabulary.encode(text) for text in texts]
    kept = shortened(whole, context - marks_of(len(whole), reading), reading.shorten)
    return _joined(kept, vocabulary, reading), sum(map(len, whole)) - sum(map(len, kept))


def shortened(texts: list[list[int]], room: int, which: str) -> list[list[int]]:
    """The texts without as much of their ends as there is no room for."""
    if len(texts) == 1:
        return [texts[0][: max(room, 0)]]
    first, second, room = len(texts[0]), len(texts[1]), max(room, 0)
    if which == "first":
        first = min(first, max(0, room - second))
    elif which == "longer":  # until both are equally long; then both
        first = min(first, max(room - second, room - room // 2))
    first = min(first, room)
    return [texts[0][:first], texts[1][: room - first]]


def marks_of(texts: int, reading: Reading) -> int:
    """How many places start, separator and stops take."""
    return reading.start + (texts - 1) + reading.stop


def _joined(texts: list[list[int]], vocabulary: Vocabulary, reading: Reading) -> list[int]:
    joined = [vocabulary.start] if reading.start else []
    for place, text in enumerate(texts):
        last = place == len(texts) - 1
        joined += text + ([vocabulary.stop] if reading.stop or not last else [])
    return joined or [vocabulary.stop]  # a text of nothing is still something to answer


@dataclass(frozen=True)
class ExampleBatch:
    """Examples one after another, without padding, and the label of each."""

    tokens_N: Ids
    lengths_B: Ids
    labels_B: Ids
    sequences_B: Ids  # which examples of the split these are

    @property
    def tokens(self) -> int:
        return len(self.tokens_N)

    @property
    def targets(self) -> int:
        return len(self.labels_B)

    def split(self, pieces: int) -> Iterator[ExampleBatch]:
        """The same examples in at most `pieces` smaller batches."""
        ends_B = np.concatenate([[0], self.lengths_B.cumsum()])
        for rows in np.array_split(np.arange(self.targets), min(pieces, self.targets)):
            tokens = slice(ends_B[rows[0]], ends_B[rows[-1] + 1])
            yield ExampleBatch(
                self.tokens_N[tokens], self.lengths_B[rows], self.labels_B[rows], self.sequences_B[rows]
            )


def take_examples(split: Examples, sequences_B: Ids) -> ExampleBatch:
    """A batch of the given examples."""
    tokens = [split.ids[split.starts[i] : split.starts[i + 1]] for i in sequences_B]
    return ExampleBatch(
        np.concatenate(tokens).astype(np.int64),
        split.lengths[sequences_B],
        split.labels[sequences_B],
        np.asarray(sequences_B),
    )


@dataclass(frozen=True)
class ExampleBatches:
    """Every step's batch; each epoch runs through all examples in a new order."""

    split: Examples
    size: int
    seed: int

    @property
    def per_epoch(self) -> int:
        return -(-self.split.n_sequences // self.size)

    def __getitem__(self, step: int) -> ExampleBatch:
        return take_examples(self.split, drawn(self.split.starts, self.size, self.seed, step))


def examples_by_length(split: Examples, tokens: int) -> Iterator[ExampleBatch]:
    """All examples in batches of about `tokens` tokens, similar lengths together."""
    for chosen in similar_together(split.lengths, tokens):
        yield take_examples(split, chosen)
