"""A labelled corpus as a classifier reads it: classes, vocabulary, the examples of every split, and what is
known about them.

Texts of a held-out split that stand in train word for word can be answered from memory. Where there are some
and not all are, those that do not are a split of their own beside it: `test` and `test-unseen`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attnlab.corpus import Corpus, Document, Splits
from attnlab.corpus.overlap import overlaps, seen_in
from attnlab.errors import CorpusError, RequestError
from attnlab.tokens.base import Tokenizer
from attnlab.tokens.examples import Examples, Reading, classes_of, examples_of, marks_of
from attnlab.tokens.vocabulary import Vocabulary

UNSEEN = "-unseen"
_MOST_CLASSES = 12  # of which the counts are told per split


@dataclass(frozen=True, eq=False)
class PreparedExamples:
    """A labelled corpus as a model sees it."""

    vocabulary: Vocabulary
    classes: tuple[str, ...]
    splits: Mapping[str, Examples]  # train, dev, test, the corpus's own, and those of unseen texts
    text: Examples  # what may be learned from without labels: train, and the unlabelled text
    facts: Mapping[str, Any]


def prepare_examples(
    corpus: Corpus,
    tokenizer: Tokenizer,
    reading: Reading,
    context: int,
    *,
    unlabelled: Corpus | None = None,
    vocabulary: Vocabulary | None = None,
    base: Path | None = None,
) -> PreparedExamples:
    """Classes, examples and facts. The vocabulary is made from train and the unlabelled text, unless one is
    given, as with a checkpoint that has its own."""
    labelled = corpus.load(base)
    marks = marks_of(2 if any(document.pair is not None for document in labelled.train) else 1, reading)
    if context <= marks:
        raise RequestError(
            f"a context of {context} has no room for a word: start, separator and stop take {marks} of it"
        )
    classes = classes_of(labelled.train, labelled.provenance.source)
    more, facts = _unlabelled(unlabelled, labelled, base)
    read = (*labelled.train, *more)
    if vocabulary is None:
        vocabulary = tokenizer.fit(text for document in read for text in _texts(document))
    documents = _with_unseen(labelled)
    splits = {
        name: examples_of(group, vocabulary, classes, reading, context) for name, group in documents.items()
    }
    held_out = {name: group for name, group in labelled.items() if name != "train"}
    provenance = labelled.provenance.plain()
    if facts:
        both = provenance["sha256"] + facts["unlabelled"]["sha256"]
        provenance["sha256"] = hashlib.sha256(both.encode()).hexdigest()
    facts = {
        "provenance": provenance,
        "tokenizer": tokenizer.plain(),
        "context": context,
        "classes": list(classes),
        "vocabulary": {"size": vocabulary.size, "fingerprint": vocabulary.fingerprint},
        "splits": {name: _facts(splits[name], group) for name, group in documents.items()},
        "labels": _label_counts(splits, classes),
        "overlap": {name: found.plain() for name, found in overlaps(labelled.train, held_out).items()},
        **facts,
    }
    text = examples_of([replace(one, label=None) for one in read], vocabulary, classes, reading, context)
    return PreparedExamples(vocabulary, classes, splits, text, facts)


def _texts(document: Document) -> tuple[str, ...]:
    return document.units if document.pair is None else (*document.units, document.pair)


def _unlabelled(
    corpus: Corpus | None, labelled: Splits, base: Path | None
) -> tuple[tuple[Document, ...], dict[str, Any]]:
    """The unlabelled text without what stands in a held-out split of the labelled one, and what it is."""
    if corpus is None:
        return (), {}
    loaded = corpus.load(base)
    held_out = [document for name, group in labelled.items() if name != "train" for document in group]
    documents = (*loaded.train, *loaded.dev, *loaded.test)
    known = seen_in(held_out, (unit for document in documents for unit in document.units))
    told = iter(known)
    kept = [
        Document(document.name, units)
        for document in documents
        if (units := tuple(unit for unit in document.units if not next(told)))
    ]
    if not kept:
        raise CorpusError(
            f"{loaded.provenance.source}: all of it is held out for dev or test of the labelled corpus"
        )
    facts = {
        "source": loaded.provenance.source,
        "licence": loaded.provenance.licence,
        "sha256": loaded.provenance.sha256,
        "units": sum(len(document.units) for document in kept),
        "left out, as held-out texts": sum(known),
    }
    return tuple(kept), {"unlabelled": facts}


def _with_unseen(splits: Splits) -> dict[str, tuple[Document, ...]]:
    """Every split, and beside those that hold both seen and unseen texts the unseen ones."""
    found: dict[str, tuple[Document, ...]] = {}
    for name, documents in splits.items():
        found[name] = documents
        if name in ("train", "dev"):
            continue
        unseen = _unseen(splits.train, documents)
        if unseen and sum(len(d.units) for d in unseen) < sum(len(d.units) for d in documents):
            found[name + UNSEEN] = unseen
    return found


def _unseen(train: Sequence[Document], documents: Sequence[Document]) -> tuple[Document, ...]:
    """What is left of documents without the texts that stand in train; of a pair both must."""
    kept = []
    texts = iter(seen_in(train, (text for document in documents for text in _texts(document))))
    for document in documents:
        seen = [next(texts) for _ in document.units]
        if document.pair is not None and not next(texts):
            seen = [False] * len(seen)
        units = tuple(unit for unit, known in zip(document.units, seen, strict=True) if not known)
        if units:
            kept.append(replace(document, units=units))
    return tuple(kept)


def _facts(examples: Examples, documents: Sequence[Document]) -> dict[str, Any]:
    return {
        "documents": len(documents),
        "examples": examples.n_sequences,
        "mean_length": len(examples.ids) / examples.n_sequences,
        "unknown_rate": examples.unknown_rate,
        "cut_sequences": examples.cut_sequences,
        "cut_tokens": examples.cut_tokens,
    }


def _label_counts(splits: Mapping[str, Examples], classes: Sequence[str]) -> dict[str, dict[str, int]]:
    if len(classes) > _MOST_CLASSES:
        return {}
    counted = {name: Counter(split.labels.tolist()) for name, split in splits.items()}
    return {
        name: {f"labelled {label}": counts[place] for place, label in enumerate(classes)}
        for name, counts in counted.items()
    }
