"""Accuracies, item by item and by count, against statsmodels and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.proportion import proportion_confint

from attnlab.errors import RequestError
from attnlab.verdict.classification import (
    above_majority,
    accuracy,
    check_answers,
    compare_counts,
    items_needed,
    mcnemar,
)


@pytest.mark.parametrize(("right", "items"), [(9, 10), (0, 7), (7, 7), (2033, 3270)])
def test_the_interval_is_wilsons(right: int, items: int) -> None:
    found = accuracy(right, items)
    expected = proportion_confint(right, items, method="wilson")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


def test_mcnemar_is_exact() -> None:
    rng = np.random.default_rng(0)
    baseline, arm = rng.random((2, 80)) < [[0.6], [0.8]]
    found = mcnemar(baseline, arm)
    table = [[(baseline & arm).sum(), found.lost], [found.gained, (~baseline & ~arm).sum()]]
    assert found.p == pytest.approx(statsmodels_mcnemar(table, exact=True).pvalue)
    assert mcnemar(baseline, baseline).p == 1


def test_nine_of_ten_against_six_of_ten_is_undecided() -> None:
    compared = compare_counts(9, 6, 10)
    assert compared.undecided
    assert compared.p_at_best == pytest.approx(stats.binomtest(0, 3).pvalue)
    assert compared.items_needed is not None
    assert str(compared).startswith("undecided: 0.6 (6 of 10 right")
    assert f"about {compared.items_needed} items would decide" in str(compared)


def test_the_items_needed_decide_four_times_in_five() -> None:
    items = items_needed(0.9, 0.6)
    assert items is not None
    rng = np.random.default_rng(1)
    runs = rng.random((4000, 2, items)) < np.array([0.9, 0.6])[:, None]
    gained, lost = (runs[:, 1] & ~runs[:, 0]).sum(1), (runs[:, 0] & ~runs[:, 1]).sum(1)
    p = 2 * stats.binom.cdf(np.minimum(gained, lost), gained + lost, 0.5)
    assert (p <= 0.05).mean() == pytest.approx(0.8, abs=0.04)
    assert items_needed(0.7, 0.7) is None


def test_counts_that_are_far_apart_tell_the_two_runs_apart_and_no_more() -> None:
    compared = compare_counts(90, 60, 100)
    assert not compared.undecided
    assert "whether other seeds would is not known" in str(compared)
    assert str(compare_counts(88, 80, 100)).startswith("open:")


def test_one_answer_for_all_is_a_collapse() -> None:
    labels = ["yes"] * 62 + ["no"] * 38
    found = check_answers(["yes"] * 100, labels)
    assert found.collapsed
    assert not found.learned
    assert (found.entropy, found.majority_share, found.usual_share) == (0.0, 0.62, 1.0)
    assert found.label_entropy == pytest.approx(stats.entropy([0.62, 0.38], base=2))
    assert str(found).startswith("collapsed: 100.0% of the answers are 'yes'")


def test_guessing_is_not_learning_and_knowing_is() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 200)
    guesses = check_answers(list(rng.integers(0, 2, 200)), list(labels))
    known = check_answers(list(np.where(rng.random(200) < 0.9, labels, 1 - labels)), list(labels))
    assert (guesses.collapsed, guesses.learned) == (False, False)
    assert known.learned


def test_a_majority_baseline_is_beaten_in_one_study_of_twenty_by_luck() -> None:
    rng = np.random.default_rng(3)
    learned = [
        check_answers(list(rng.integers(0, 2, 60)), list(rng.permutation([1] * 30 + [0] * 30))).learned
        for _ in range(1000)
    ]
    assert np.mean(learned) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)


def test_a_count_equal_to_the_majoritys_shows_nothing() -> None:
    assert above_majority(2033, 3270, 2033) == 1.0
    assert above_majority(2100, 3270, 2033) < 0.001


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: accuracy(11, 10), "11 right of 10 items"),
        (lambda: accuracy(0, 0), "at least 1"),
        (lambda: accuracy(0.9, 10), "give how many were right, not their share"),  # type: ignore[arg-type]
        (lambda: mcnemar([0, 1], [0, 1, 1]), "answered 3 items and the baseline 2"),
        (lambda: mcnemar([0, 2], [0, 1]), "the baseline must be one row of 1"),
        (lambda: check_answers([1], [1, 0]), "1 predictions for 2 labels"),
        (lambda: check_answers([], []), "at least one"),
    ],
)
def test_bad_input_is_named(call: object, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        call()  # type: ignore[operator]
