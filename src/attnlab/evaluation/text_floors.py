"""What a classifier of texts must beat to have learned anything that counting words does not show.

Both floors are fitted to the training split alone and answer the very items a model is scored on, so that a
model can be paired with them item by item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnlab.evaluation.classified import Classified

MAJORITY, COUNTING = "majority", "TF-IDF, logistic regression"

_REGULARISATION = (
    10.0  # scikit-learn's C: texts of one sentence have few words, and 1 lets too little be learned
)
_STEPS = 2000


@dataclass(frozen=True)
class LabelledTexts:
    """Items of one split: a name, a text and a label each. A pair is one text here, its parts in a row."""

    names: Sequence[str]
    texts: Sequence[str]
    labels: Sequence[str]


def text_floors(
    train: LabelledTexts, held_out: LabelledTexts, classes: Sequence[str]
) -> dict[str, Classified]:
    """The answers of both floors on the held-out items, by the floor's name."""
    answers = {MAJORITY: _majority(train, held_out, classes), COUNTING: _counting(train, held_out, classes)}
    return {
        name: Classified.of(held_out.names, classes, held_out.labels, probabilities)
        for name, probabilities in answers.items()
    }


def figures(found: Classified) -> dict[str, float]:
    """What a floor reached, under the names by which a run keeps the same."""
    return {
        "accuracy": found.items.mean("correct"),
        "loss": found.items.mean("loss"),
        "macro_f1": found.macro_f1,
    }


def _majority(train: LabelledTexts, held_out: LabelledTexts, classes: Sequence[str]) -> np.ndarray:
    """Each label as probable as it is frequent in training, whatever the text says."""
    counts = np.array([train.labels.count(name) for name in classes]) + 1.0
    return np.tile(counts / counts.sum(), (len(held_out.names), 1))


def _counting(train: LabelledTexts, held_out: LabelledTexts, classes: Sequence[str]) -> np.ndarray:
    """A logistic regression on the words and pairs of words of a text, the rare ones weighing more."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b|[^\w\s]")
    model = LogisticRegression(C=_REGULARISATION, max_iter=_STEPS)
    model.fit(words.fit_transform(train.texts), train.labels)
    found = np.zeros((len(held_out.names), len(classes)))
    places = [list(classes).index(name) for name in model.classes_]
    found[:, places] = model.predict_proba(words.transform(held_out.texts))
    return found
