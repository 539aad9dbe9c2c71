"""What a model must beat to have learned anything: n-gram models on the same target tokens."""

from __future__ import annotations

import math

from attnlab.evaluation.ngram import KneserNey, Unigram
from attnlab.tokens.encoded import Encoded


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
