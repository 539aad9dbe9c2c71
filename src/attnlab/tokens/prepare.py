"""From a declared corpus to arrays, once: what was prepared is kept and found again by what it depends on."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.corpus import Corpus, Document, Splits
from attnlab.corpus.overlap import overlaps
from attnlab.errors import CorpusError
from attnlab.spec import fingerprint
from attnlab.tokens import cache as entries
from attnlab.tokens.base import Framing, Tokenizer
from attnlab.tokens.encoded import Encoded
from attnlab.tokens.vocabulary import Vocabulary

CODE_VERSION = 1  # raise it when the same declaration and text would give other arrays or facts


@dataclass(frozen=True, eq=False)
class Prepared:
    """A corpus as a model sees it."""

    vocabulary: Vocabulary
    splits: Mapping[str, Encoded]  # train, dev, test, and the corpus's own
    facts: Mapping[str, Any]  # plain: provenance, counts, what is unknown, what was cut, what overlaps


def prepare(
    corpus: Corpus,
    tokenizer: Tokenizer,
    framing: Framing,
    context: int,
    *,
    cache: Path | None = None,
    base: Path | None = None,
) -> Prepared:
    """Tokenize and frame every split; kept in `cache`, $ATTNLAB_CACHE, or the user's cache folder."""
    key = fingerprint(
        {
            "corpus": corpus.plain(),
            "tokenizer": tokenizer.plain(),
            "framing": framing.plain(),
            "context": context,
            "text": corpus.digest(base),
            "code": CODE_VERSION,
            "tokenizers": importlib.metadata.version("tokenizers"),
        }
    )
    folder = entries.folder(cache)
    kept = entries.read(folder, key)
    if kept is not None:
        return Prepared(*kept)
    made = _prepare(corpus.load(base), tokenizer, framing, context)
    entries.write(folder, key, made.vocabulary, made.splits, made.facts)
    return made


def _prepare(splits: Splits, tokenizer: Tokenizer, framing: Framing, context: int) -> Prepared:
    vocabulary = tokenizer.fit(unit for document in splits.train for unit in document.units)
    encoded = {name: framing.frame(documents, vocabulary, context) for name, documents in splits.items()}
    if encoded["train"].n_targets < context:
        raise CorpusError(
            f"the context of {context} tokens is longer than the whole training split, "
            f"which has {encoded['train'].n_targets} to predict"
        )
    held_out = {name: documents for name, documents in splits.items() if name != "train"}
    facts = {
        "provenance": splits.provenance.plain(),
        "tokenizer": tokenizer.plain(),
        "framing": framing.plain(),
        "context": context,
        "vocabulary": {"size": vocabulary.size, "fingerprint": vocabulary.fingerprint},
        "splits": {name: _facts(encoded[name], documents) for name, documents in splits.items()},
        "overlap": {name: o.plain() for name, o in overlaps(splits.train, held_out).items()},
    }
    return Prepared(vocabulary, encoded, facts)


def _facts(encoded: Encoded, documents: Sequence[Document]) -> dict[str, Any]:
    return {
        "documents": len(documents),
        "units": sum(len(d.units) for d in documents),
        "sequences": encoded.n_sequences,
        "tokens": encoded.n_targets,
        "mean_length": encoded.n_targets / encoded.n_sequences,
        "bytes": int(encoded.bytes.sum()),
        "unknown_rate": encoded.unknown_rate,
        "cut_sequences": encoded.cut_sequences,
        "cut_tokens": encoded.cut_tokens,
    }
