"""The family of corpora."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from attnlab.corpus.document import Splits
from attnlab.spec import Part


class Corpus(Part, ABC, family="corpus"):
    """Where text comes from, and which of it is held out."""

    @abstractmethod
    def load(self, base: Path | None = None) -> Splits:
        """Read and divide the text; a relative path counts from `base` (or the current directory)."""

    def digest(self, base: Path | None = None) -> str:
        """A fingerprint of what `load` would read. Members that can tell it without parsing do so."""
        return self.load(base).provenance.sha256
