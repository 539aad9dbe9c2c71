"""A labelled corpus as a checkpoint reads it: every split tokenised, and what the report tells of it.

A unit of a document is one text with the document's label: a whole row of a table, a sentence of an address.
A verdict pairs on documents, since the sentences of one address are no independent evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.adapt.texts import Example, Texts, encode, example, labels_of
from attnlab.corpus import Corpus, Document
from attnlab.corpus.overlap import overlaps
from attnlab.evaluation.text_floors import LabelledTexts
from attnlab.record import Items


@dataclass(frozen=True)
class LabelledSplit:
    """The texts of a split, each with the document it is of, as the model reads them and as people do."""

    documents: tuple[Document, ...]  # one for every text
    owners: tuple[str, ...]  # of every text, the document it came from
    texts: Texts

    def by_document(self, items: Items) -> Items:
        """Means over the texts of each document, and how many `texts` that were."""
        places = {name: place for place, name in enumerate(dict.fromkeys(self.owners))}
        owner = np.array([places[name] for name in self.owners])
        counts = np.bincount(owner)
        values = {what: np.bincount(owner, found) / counts for what, found in items.values.items()}
        values["texts"] = counts.astype(float)
        return Items(tuple(places), {what: tuple(found.tolist()) for what, found in values.items()})

    @property
    def plain_texts(self) -> LabelledTexts:
        """For whoever only counts words."""
        words = [" ".join([*d.units, d.pair or ""]).strip() for d in self.documents]
        return LabelledTexts([d.name for d in self.documents], words, [str(d.label) for d in self.documents])

    def facts(self) -> dict[str, Any]:
        return {
            "documents": len(set(self.owners)),
            "texts": len(self.texts),
            "tokens": self.texts.tokens,
            "mean_length": self.texts.tokens / len(self.texts),
            "cut_texts": self.texts.cut_texts,
            "cut_tokens": self.texts.cut_tokens,
        }


@dataclass(frozen=True)
class LabelledCorpus:
    """Every split, the labels, and an example of what the model is given."""

    classes: tuple[str, ...]
    splits: Mapping[str, LabelledSplit]
    example: Example
    facts: Mapping[str, Any]


def read_labelled(corpus: Corpus, tokenizer: Any, longest: int, base: Path | None) -> LabelledCorpus:
    """Load a corpus and put it through a checkpoint's tokenizer."""
    splits = corpus.load(base)
    classes = labels_of(splits.train)
    read = {name: _read(documents, tokenizer, classes, longest) for name, documents in splits.items()}
    held_out = {name: documents for name, documents in splits.items() if name != "train"}
    train = read["train"]
    shown = example(tokenizer, train.documents[_telling(train.texts)], longest)
    facts = {
        "provenance": splits.provenance.plain(),
        "labels": ", ".join(classes),
        "as the model reads it": str(shown),
        "splits": {name: split.facts() for name, split in read.items()},
        "overlap": {name: o.plain() for name, o in overlaps(splits.train, held_out).items()},
    }
    return LabelledCorpus(classes, read, shown, facts)


def _read(
    documents: Sequence[Document], tokenizer: Any, classes: Sequence[str], longest: int
) -> LabelledSplit:
    texts, owners = [], []
    for document in documents:
        for number, unit in enumerate(document.units, 1):
            name = document.name if len(document.units) == 1 else f"{document.name} · {number}"
            texts.append(replace(document, name=name, units=(unit,)))
            owners.append(document.name)
    return LabelledSplit(tuple(texts), tuple(owners), encode(tokenizer, texts, classes, longest))


def _telling(texts: Texts) -> int:
    """Which text to show: one that is cut, if any is, since that is what a reader has to know."""
    lengths = texts.lengths
    return int(lengths.argmax()) if texts.cut_texts else int(np.argsort(lengths)[len(lengths) // 2])
