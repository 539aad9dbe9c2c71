"""Random words, said twice: a text in which nothing can be known the first time, and everything the second.

Which word follows can only be found out by looking back to where the same word stood before: what induction
heads do (Olsson et al. 2022, https://arxiv.org/abs/2209.11895). How long a passage is differs from sequence
to sequence, so that no fixed distance tells.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from attnlab.corpus.base import Corpus
from attnlab.corpus.document import Document, Provenance, Splits, counts, digest_of_documents
from attnlab.spec import Count, Positive

_CONSONANTS, _VOWELS = "bdfghklmnprstvwz", "aeiou"
_SYLLABLES = [consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS]


@dataclass(frozen=True, kw_only=True)
class Repeats(Corpus):
    """Sequences of random words and then the same words again; a document is one sequence."""

    words: Annotated[int, Field(ge=2)] = 64  # how many different ones there are
    shortest: Positive = 8  # words in the passage that is repeated
    longest: Positive = 24
    train: Positive = 10_000  # sequences
    held_out: Positive = 200  # sequences, in each of dev and test
    seed: Count = 0

    def __post_init__(self) -> None:
        if self.shortest > self.longest:
            raise ValueError(f"shortest ({self.shortest}) is longer than longest ({self.longest})")
        if self.longest > self.words:
            raise ValueError(
                f"a passage of {self.longest} different words cannot be made of {self.words}; "
                "raise `words`, or lower `longest`"
            )

    def load(self, base: Path | None = None) -> Splits:
        train, dev, test = self._documents()
        provenance = Provenance(
            source=f"random sequences of {self.words} words, each passage said twice, made here",
            version=None,
            licence="none needed",
            sha256=digest_of_documents(train=train, dev=dev, test=test),
            split=f"drawn independently for train, dev and test (seed {self.seed})",
            counts=counts(train=train, dev=dev, test=test),
        )
        return Splits(train, dev, test, provenance)

    def _documents(self) -> tuple[tuple[Document, ...], ...]:
        sizes = {"train": self.train, "dev": self.held_out, "test": self.held_out}
        return tuple(self._sequences(split, size) for split, size in sizes.items())

    def _sequences(self, split: str, size: int) -> tuple[Document, ...]:
        draw = random.Random(f"attnlab repeats {self.seed} {split}")
        spelled = [spelling(number, self.words) for number in range(self.words)]
        documents = []
        for number in range(size):
            # No word twice in a passage, so that the second time every next word is certain.
            passage = " ".join(draw.sample(spelled, draw.randint(self.shortest, self.longest)))
            documents.append(Document(f"{split}:{number + 1}", (f"{passage} {passage}",)))
        return tuple(documents)


def spelling(number: int, words: int) -> str:
    """A word that can be read and told apart: as many syllables as it takes to have so many words."""
    syllables = 1
    while len(_SYLLABLES) ** syllables < words:
        syllables += 1
    text = ""
    for _ in range(syllables):
        number, place = divmod(number, len(_SYLLABLES))
        text = _SYLLABLES[place] + text
    return text
