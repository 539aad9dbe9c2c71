"""The floors of a classifier, against scikit-learn's own pipeline and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from attnlab.evaluation.text_floors import COUNTING, MAJORITY, LabelledTexts, figures, text_floors

CLASSES = ("no", "perhaps", "yes")


def texts(items: int, seed: int) -> LabelledTexts:
    """A label shows in the words of half of the texts."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(CLASSES, size=items, p=[0.5, 0.2, 0.3]).tolist()
    told = [f"indeed {label} it is" if rng.random() < 0.5 else "nobody can say" for label in labels]
    return LabelledTexts([f"{seed}:{i}" for i in range(items)], told, labels)


def test_counting_words_is_scikit_learns_pipeline() -> None:
    train, held_out = texts(200, 0), texts(80, 1)
    theirs = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b|[^\w\s]"),
        LogisticRegression(C=10.0, max_iter=2000),
    ).fit(train.texts, train.labels)
    found = text_floors(train, held_out, CLASSES)[COUNTING]
    assert figures(found)["accuracy"] == pytest.approx(theirs.score(held_out.texts, held_out.labels))
    np.testing.assert_allclose(np.exp(found.logs_BC), theirs.predict_proba(held_out.texts), rtol=1e-6)
    assert found.names == tuple(held_out.names)


def test_the_majority_is_that_of_the_training_split() -> None:
    train, held_out = texts(200, 0), texts(80, 1)
    found = text_floors(train, held_out, CLASSES)[MAJORITY]
    theirs = DummyClassifier(strategy="most_frequent").fit(train.texts, train.labels)
    assert figures(found)["accuracy"] == theirs.score(held_out.texts, held_out.labels)
    turned = LabelledTexts(held_out.names, held_out.texts, ["yes"] * 80)
    assert figures(text_floors(train, turned, CLASSES)[MAJORITY])["accuracy"] == 0.0


def test_a_class_that_training_lacks_is_never_answered() -> None:
    train = LabelledTexts(["a", "b"], ["this is it", "that is not"], ["yes", "no"])
    held_out = LabelledTexts(["c"], ["perhaps this"], ["perhaps"])
    assert figures(text_floors(train, held_out, CLASSES)[COUNTING])["accuracy"] == 0.0


def test_floors_see_no_held_out_label() -> None:
    train, held_out = texts(200, 0), texts(80, 1)
    turned = LabelledTexts(held_out.names, held_out.texts, list(reversed(held_out.labels)))
    for name, found in text_floors(train, held_out, CLASSES).items():
        assert (found.logs_BC == text_floors(train, turned, CLASSES)[name].logs_BC).all()
