"""Labelled texts and pairs as a checkpoint reads them: token ids, in the form its tokenizer gives a pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.corpus import Document
from attnlab.errors import CorpusError, RequestError, unknown

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Texts:
    """A split: of every text its ids, the segment of each, and the number of its label."""

    names: tuple[str, ...]
    ids: tuple[Ids, ...]
    segments: tuple[Ids, ...] | None  # where the tokenizer tells the two texts of a pair apart
    labels: Ids
    cut_texts: int  # how many were longer than the model takes here
    cut_tokens: int

    def __len__(self) -> int:
        return len(self.names)

    @property
    def lengths(self) -> Ids:
        return np.array([len(ids) for ids in self.ids])

    @property
    def tokens(self) -> int:
        return int(self.lengths.sum())


def labels_of(documents: Sequence[Document]) -> tuple[str, ...]:
    """The labels of a training split, in order; a text without one is an error."""
    without = next((d.name for d in documents if d.label is None), None)
    if without is not None:
        raise CorpusError(f"{without}: this text has no label; say which column holds it under corpus.label")
    found = tuple(sorted({str(d.label) for d in documents}))
    if len(found) < 2:
        raise CorpusError(
            f"every text of the training split is labelled {found[0]!r}: there is nothing to learn"
        )
    return found


def encode(tokenizer: Any, documents: Sequence[Document], labels: Sequence[str], longest: int) -> Texts:
    """Texts and pairs through a tokenizer, special tokens included, cut at `longest` tokens.

    Of a pair the longer text gives way, token by token, so a short question keeps its words.
    """
    numbers = {label: number for number, label in enumerate(labels)}
    for document in documents:
        if document.label not in numbers:
            raise CorpusError(
                f"{document.name}: {unknown('label in the training split', document.label, labels)}"
            )
    firsts = [" ".join(d.units) for d in documents]
    pairs = [d.pair for d in documents]
    if any(pair is None for pair in pairs) and any(pair is not None for pair in pairs):
        raise CorpusError("some texts have a second one and some have not: they must be pairs all, or none")
    seconds = None if pairs[0] is None else [str(pair) for pair in pairs]
    whole = tokenizer(firsts, seconds, add_special_tokens=True, truncation=False, verbose=False)
    kept = tokenizer(firsts, seconds, truncation="longest_first", max_length=longest)
    before = np.array([len(ids) for ids in whole["input_ids"]])
    after = np.array([len(ids) for ids in kept["input_ids"]])
    segments = kept.get("token_type_ids")
    return Texts(
        names=tuple(d.name for d in documents),
        ids=tuple(np.asarray(ids, dtype=np.int64) for ids in kept["input_ids"]),
        segments=None if segments is None else tuple(np.asarray(s, dtype=np.int64) for s in segments),
        labels=np.array([numbers[str(d.label)] for d in documents], dtype=np.int64),
        cut_texts=int((after < before).sum()),
        cut_tokens=int((before - after).sum()),
    )


def refuse_too_long(longest: int, config: Any) -> None:
    """A text of more tokens than the model has positions would fail somewhere deep inside it."""
    positions = getattr(config, "max_position_embeddings", None)
    # RoBERTa counts its positions from the padding's number on.
    usable = (
        positions - 2
        if positions and config.model_type in ("roberta", "xlm-roberta", "camembert")
        else positions
    )
    if usable is not None and longest > usable:
        raise RequestError(
            f"model.longest is {longest}, and this checkpoint has positions for {usable} tokens"
        )


@dataclass(frozen=True)
class Example:
    """One text as the model will see it, for a person to look at before anything is trained."""

    name: str
    label: str
    shown: str  # decoded, special tokens and all
    kept: int
    cut: int

    def __str__(self) -> str:
        cut = f", {self.cut} cut off" if self.cut else ""
        return f"{self.shown} → {self.label!r} ({self.kept} tokens{cut})"


def example(tokenizer: Any, document: Document, longest: int) -> Example:
    """The form in which a text, or a pair, reaches the model."""
    first = " ".join(document.units)
    whole = tokenizer(first, document.pair, verbose=False)["input_ids"]
    kept = tokenizer(first, document.pair, truncation="longest_first", max_length=longest)["input_ids"]
    shown = tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return Example(document.name, str(document.label), shown, len(kept), len(whole) - len(kept))
