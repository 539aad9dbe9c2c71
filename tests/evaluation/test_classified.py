"""Answers of a classifier against scikit-learn's metrics; a classifier that says one thing is found."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import metrics

from attnlab.evaluation.classified import Classified, confusions, likely_cause

CLASSES = ("yes", "no", "maybe", "never")  # the last one is neither true nor answered


def answered(items: int = 300, pull: float = 1.5, seed: int = 0) -> Classified:
    """Logits that lean towards the truth; three classes of unequal size."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, size=items, p=[0.5, 0.3, 0.2])
    logits = rng.normal(size=(items, 4))
    logits[:, 3] = -30.0
    logits[np.arange(items), truth] += pull
    return Classified.of([f"text {i}" for i in range(items)], CLASSES, truth, logits=logits)


def test_every_metric_is_scikit_learns() -> None:
    found = answered()
    truth, predicted = found.truth_B, found.predicted_B
    ours = found.metrics("test")
    assert ours["test_accuracy"] == pytest.approx(metrics.accuracy_score(truth, predicted), abs=1e-15)
    assert ours["test_macro_f1"] == pytest.approx(
        metrics.f1_score(truth, predicted, average="macro", labels=[0, 1, 2]), abs=1e-15
    )
    probabilities = np.exp(found.logs_BC)
    assert ours["test_loss"] == pytest.approx(metrics.log_loss(truth, probabilities, labels=range(4)))
    assert (found.counts_CC == metrics.confusion_matrix(truth, predicted, labels=range(4))).all()
    shares = np.bincount(predicted, minlength=4)[:3] / len(predicted)
    assert ours["test_answer_entropy"] == pytest.approx(-(shares * np.log2(shares)).sum())
    assert ours["test_majority_share"] == pytest.approx(np.bincount(truth).max() / len(truth))


def test_items_hold_what_a_verdict_and_a_table_need() -> None:
    found = answered()
    items = found.items
    assert items["correct"] == tuple((found.truth_B == found.predicted_B).astype(int))
    assert np.allclose(items["loss"], -found.logs_BC[np.arange(300), found.truth_B])
    probabilities = np.exp(found.logs_BC)
    assert np.allclose(items["entropy"], -(probabilities * np.log(probabilities)).sum(1))
    assert set(items["label"]) == {0, 1, 2}
    json.dumps(items.values, allow_nan=False)


def test_labels_may_be_named_and_probabilities_given() -> None:
    found = Classified.of(["a", "b"], ("x", "y"), ["y", "x"], [[0.0, 1.0], [0.25, 0.75]])
    assert found.items["correct"] == (1, 0)
    assert found.items["loss"] == pytest.approx((0.0, np.log(4)))
    with_nothing = Classified.of(["a"], ("x", "y"), ["x"], [[0.0, 1.0]])
    assert np.isfinite(with_nothing.items["loss"]).all()  # sure, and wrong


def test_mistakes_of_the_caller_are_told() -> None:
    with pytest.raises(ValueError, match="either probabilities or logits"):
        Classified.of(["a"], ("x", "y"), ["x"])
    with pytest.raises(ValueError, match="2 items and 2 classes"):
        Classified.of(["a", "b"], ("x", "y"), ["x", "y"], [[0.5, 0.5]])


def test_one_answer_for_all_is_found_and_its_cause_told() -> None:
    """BoolQ's trap: 62 % on dev at every setting, which is the share of one label."""
    truth = ["true"] * 62 + ["false"] * 38
    stuck = Classified.of(list(map(str, range(100))), ("false", "true"), truth, logits=[[0.0, 0.5]] * 100)
    check = stuck.check(train_loss=0.664, train_shares=(0.62, 0.38))
    assert (check.name, check.status) == ("one-answer", "fail")
    assert "100.0% of the answers are 'true'" in check.evidence
    assert "always answering 'true' gives 0.62" in check.evidence
    assert "nothing was learned from the texts" in check.evidence
    assert check.detail["majority_share"] == pytest.approx(0.62)


def test_what_answers_by_the_text_passes_and_luck_is_not_told_as_learning() -> None:
    assert answered().check().status == "pass"
    lucky = answered(pull=0.0).check()
    assert lucky.status == "skip"
    assert "not shown to have learned" in lucky.evidence


@pytest.mark.parametrize(
    ("share", "loss", "cause"),
    [
        (0.95, 0.1, "nearly always right"),
        (0.5, None, "was not kept"),
        (0.5, 0.69, "nothing was learned from the texts"),
        (0.5, 0.2, "unlike those trained on"),
    ],
)
def test_causes_are_told_apart(share: float, loss: float | None, cause: str) -> None:
    assert cause in likely_cause(share, loss, (0.5, 0.5, 0.0))


def test_confusions_are_plain() -> None:
    found = answered()
    plain = json.loads(json.dumps(confusions({"dev": found, "test": found})))
    assert plain["classes"] == list(CLASSES)
    assert plain["splits"]["test"] == found.counts_CC.tolist()
    assert sum(map(sum, plain["splits"]["dev"])) == 300
