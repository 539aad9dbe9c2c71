"""Documents, and the splits a corpus falls into."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from attnlab.errors import CorpusError

CORE = ("train", "dev", "test")  # every corpus has these; further held-out splits are named by the corpus


@dataclass(frozen=True)
class Document:
    """What is held out as a whole, and what a verdict pairs on: an address, an article, a labelled sentence.

    Its units are the sentences or lines a model sees one at a time.
    """

    name: str
    units: tuple[str, ...]
    label: str | None = None
    pair: str | None = None  # the second text of a labelled pair, such as the passage of a question
    references: tuple[str, ...] = ()  # texts to produce from this one, such as summaries


@dataclass(frozen=True)
class Provenance:
    """Where the text came from and what was done with it, for the report."""

    source: str
    version: str | None
    licence: str  # the terms that were seen, in words; "none seen" where there were none
    sha256: str  # of everything that was read
    split: str  # how the documents were divided, in a sentence
    citation: str | None = None
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # of documents and units, per split

    def plain(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Splits:
    """A corpus, divided. No document is in two of train, dev and test."""

    train: tuple[Document, ...]
    dev: tuple[Document, ...]
    test: tuple[Document, ...]
    provenance: Provenance
    extra: Mapping[str, tuple[Document, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, documents in self.items():
            if not any(document.units for document in documents):
                raise CorpusError(f"{self.provenance.source}: the {name} split holds no text")
            repeated = [n for n, count in Counter(d.name for d in documents).items() if count > 1]
            if repeated:
                raise CorpusError(
                    f"{self.provenance.source}: the {name} split has {len(repeated)} document names that "
                    f"occur more than once, such as {repeated[0]!r}; a verdict pairs documents by name"
                )

    def items(self) -> Iterator[tuple[str, tuple[Document, ...]]]:
        """Every split with its name: train, dev, test, then the corpus's own."""
        yield "train", self.train
        yield "dev", self.dev
        yield "test", self.test
        yield from self.extra.items()


def digest_of_documents(**splits: Sequence[Document]) -> str:
    """The sha256 of documents, for a `Provenance` whose source has no files to take it of."""
    plain = {name: [asdict(document) for document in documents] for name, documents in splits.items()}
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()


def counts(**splits: Sequence[Document]) -> dict[str, dict[str, int]]:
    """Documents and units of each split, for a `Provenance`."""
    return {
        name: {"documents": len(documents), "units": sum(len(d.units) for d in documents)}
        for name, documents in splits.items()
    }
