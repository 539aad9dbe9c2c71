"""What is measured of a text that was written from another one: ROUGE against references; and what ROUGE does
not see, its length, how much of it was copied, how much it repeats itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.evaluation.rouge import MEASURES, rouge, words
from attnlab.record import Items

_RUN = 3  # words in a row: shorter runs are shared by any two English texts

# Of every text, in the order in which a table shows them.
ALL = (*MEASURES, "words", "copied", "repeated")


@dataclass(frozen=True)
class Written:
    """A text, what it was written from, and what people wrote from the same."""

    name: str
    source: str
    text: str
    references: tuple[str, ...]

    def measured(self) -> dict[str, float]:
        found = words(self.text)
        return {
            **rouge(self.text, self.references),
            "words": float(len(found)),
            "copied": copied(found, words(self.source)),
            "repeated": repeated(found),
        }


def measure(texts: Sequence[Written]) -> Items:
    """Every measure of every text; a document is an item."""
    rows = [text.measured() for text in texts]
    return Items(tuple(text.name for text in texts), {what: tuple(row[what] for row in rows) for what in ALL})


def copied(text: Sequence[str], source: Sequence[str]) -> float:
    """The share of a text's runs of three words that stand in its source, word for word."""
    runs, known = _runs(text), set(_runs(source))
    return sum(run in known for run in runs) / len(runs) if runs else 0.0


def repeated(text: Sequence[str]) -> float:
    """The share of a text's runs of three words that stood in it before."""
    runs = _runs(text)
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


def opening(source: str, length: int) -> str:
    """The first words of a source, about as many as asked for: what any text must beat."""
    taken: list[str] = []
    for word in source.split():
        if len(words(" ".join(taken))) >= length:
            break
        taken.append(word)
    return " ".join(taken)


def _runs(text: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(text[i : i + _RUN]) for i in range(len(text) - _RUN + 1)]
