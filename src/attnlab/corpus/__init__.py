"""Where text and tasks come from: documents, splits, provenance."""

from attnlab.corpus.base import Corpus
from attnlab.corpus.document import Document, Provenance, Splits
from attnlab.corpus.hub import Hub
from attnlab.corpus.labelled import Labelled
from attnlab.corpus.repeats import Repeats
from attnlab.corpus.sotu import Sotu
from attnlab.corpus.table import Table
from attnlab.corpus.text import Text
from attnlab.corpus.tokens import Tokens

__all__ = [
    "Corpus",
    "Document",
    "Hub",
    "Labelled",
    "Provenance",
    "Repeats",
    "Sotu",
    "Splits",
    "Table",
    "Text",
    "Tokens",
]
