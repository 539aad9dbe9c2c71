"""How much of a corpus is used: teachers write slowly."""

from __future__ import annotations

from attnlab.corpus import Document, Splits
from attnlab.corpus.split import spread
from attnlab.errors import CorpusError
from attnlab.spec import Positive, Spec


class Take(Spec):
    """How many documents of each split are used, spread evenly over it; all unless given."""

    train: Positive | None = None
    dev: Positive | None = 100
    test: Positive | None = None

    def of(self, whole: Splits) -> dict[str, tuple[Document, ...]]:
        """Train, dev and test; every document with a text that people wrote from it."""
        sides = (
            ("train", whole.train, self.train),
            ("dev", whole.dev, self.dev),
            ("test", whole.test, self.test),
        )
        return {name: _with_references(_thinned(documents, wanted)) for name, documents, wanted in sides}


def _thinned(documents: tuple[Document, ...], wanted: int | None) -> tuple[Document, ...]:
    if wanted is None or wanted >= len(documents):
        return documents
    return tuple(documents[place] for place in spread(len(documents), wanted))


def _with_references(documents: tuple[Document, ...]) -> tuple[Document, ...]:
    without = next((d.name for d in documents if not any(text.strip() for text in d.references)), None)
    if without is not None:
        raise CorpusError(
            f"{without}: there is no text to learn from or to score by; say which columns hold what people "
            "wrote under corpus.references"
        )
    return documents
