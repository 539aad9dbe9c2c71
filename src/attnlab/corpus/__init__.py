"""Where text and tasks come from: documents, splits, provenance."""

from attnlab.corpus.base import Corpus
from attnlab.corpus.document import Document, Provenance, Splits
from attnlab.corpus.sotu import Sotu
from attnlab.corpus.text import Text

__all__ = ["Corpus", "Document", "Provenance", "Sotu", "Splits", "Text"]
