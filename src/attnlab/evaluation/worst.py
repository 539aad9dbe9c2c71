"""Which texts a model finds hardest, with the texts themselves: what a mean over a split hides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.evaluation.classified import Classified
from attnlab.evaluation.losses import Losses
from attnlab.tokens import Encoded, Examples, Vocabulary

_FEWEST = 5  # tokens: a mean over fewer says little of a text


def worst_read(split: Encoded, sums: Losses, vocabulary: Vocabulary, count: int) -> list[dict[str, Any]]:
    """The sequences of a split with the highest loss per token, as the model reads them; `sums` are the
    summed losses of all of them."""
    sizes = split.targets_per_sequence
    means = np.where(sizes >= min(_FEWEST, sizes.max()), sums / np.maximum(sizes, 1), -np.inf)
    found = []
    for place in np.argsort(-means, kind="stable")[:count]:
        if np.isfinite(means[place]):
            ids = split.ids[split.starts[place] : split.starts[place + 1]].tolist()
            found.append(
                {
                    "document": split.names[split.document[place]],
                    "text": vocabulary.decode(ids),
                    "loss": float(means[place]),
                    "tokens": int(sizes[place]),
                    "unknown": 0 if split.unknown is None else ids[1:].count(split.unknown),
                }
            )
    return found


def worst_answered(found: Classified, split: Examples, count: int) -> list[dict[str, Any]]:
    """The texts that were answered wrong, the surest of these answers first."""
    chances_B = np.exp(found.logs_BC.max(axis=1))
    wrong: Sequence[int] = np.flatnonzero(found.predicted_B != found.truth_B).tolist()
    surest = sorted(wrong, key=lambda place: -chances_B[place])[:count]
    return [
        {
            "document": split.names[split.document[place]],
            "text": split.texts[place],
            "label": found.classes[found.truth_B[place]],
            "answer": found.classes[found.predicted_B[place]],
            "chance": float(chances_B[place]),
        }
        for place in surest
    ]
