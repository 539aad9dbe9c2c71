"""The families of tokenizers and framings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from attnlab.corpus import Document
from attnlab.spec import Part
from attnlab.tokens.encoded import Encoded
from attnlab.tokens.vocabulary import Vocabulary


class Tokenizer(Part, ABC, family="tokenizer"):
    """A rule that makes a vocabulary from the training split, and from nothing else."""

    @abstractmethod
    def fit(self, units: Iterable[str]) -> Vocabulary:
        """The vocabulary of these texts."""


class Framing(Part, ABC, family="framing"):
    """How documents become the sequences a model sees."""

    @abstractmethod
    def frame(self, documents: Sequence[Document], vocabulary: Vocabulary, context: int) -> Encoded:
        """Sequences of at most `context` inputs."""
