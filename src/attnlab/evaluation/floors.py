"""What a model must beat to have learned anything: n-gram models on the same target tokens."""

from __future__ import annotations

import math

from attnlab.evaluation.ngram import KneserNey, Unigram
from attnlab.spec import fingerprint
from attnlab.tokens import Prepared
from attnlab.tokens.cache import kept_beside
from attnlab.tokens.encoded import Encoded

_VERSION = 1  # raise it when the same corpus would give other floors


def floors_kept(prepared: Prepared) -> dict[str, dict[str, float]]:
    """The floors of the test split, made once for a prepared corpus and kept beside it."""
    key = fingerprint({"facts": prepared.facts, "floors": _VERSION})
    return kept_beside(f"{key}.floors", lambda: floors(prepared.splits["train"], prepared.splits["test"]))


def floors(train: Encoded, held_out: Encoded) -> dict[str, dict[str, float]]:
    """Loss per target (nats) and perplexity of the unigram, and of the Kneser–Ney bigram and trigram."""
    models: dict[str, Unigram | KneserNey] = {
        "unigram": Unigram.fit(train),
        "bigram": KneserNey.fit(train, 2),
        "trigram": KneserNey.fit(train, 3),
    }
    found = {}
    for name, model in models.items():
        loss = float(model.losses(held_out).mean())
        found[name] = {"loss": loss, "perplexity": math.exp(loss)}
    return found
