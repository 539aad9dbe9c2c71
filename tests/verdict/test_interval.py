"""The interval of one arm's mean, against scipy's and against how often it is right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from attnlab.errors import RequestError
from attnlab.verdict import mean_interval


def test_a_single_seed_leaves_students_interval_over_documents() -> None:
    values = np.random.default_rng(0).normal(0.3, 0.1, 40)
    found = mean_interval([values], level=0.9)
    low, high = stats.t.interval(0.9, 39, values.mean(), stats.sem(values))
    assert (found.mean, found.low, found.high) == pytest.approx((values.mean(), low, high))


def test_seeds_that_do_nothing_change_nothing() -> None:
    values = np.random.default_rng(1).normal(0.3, 0.1, 40)
    one, three = mean_interval([values]), mean_interval([values] * 3)
    assert (one.mean, one.low, one.high) == pytest.approx((three.mean, three.low, three.high))


def test_it_holds_the_truth_as_often_as_it_says() -> None:
    """Documents, seeds and rest each with a share in the noise; the truth is 0."""
    draw, held, wrong, times = np.random.default_rng(2), 0, 0, 600
    for _ in range(times):
        documents, seeds = draw.normal(0, 1.0, 30), draw.normal(0, 0.2, (3, 1))
        values = documents + seeds + draw.normal(0, 0.5, (3, 30))
        found = mean_interval(values)
        held += found.low <= 0 <= found.high
        # The broken twin: all values as if each were a document of its own.
        low, high = stats.t.interval(0.95, values.size - 1, values.mean(), stats.sem(values.ravel()))
        wrong += low <= 0 <= high
    assert 0.93 <= held / times <= 0.99
    assert wrong / times < 0.85


def test_one_document_says_nothing_about_others() -> None:
    found = mean_interval([[0.2], [0.4]])
    assert (found.mean, found.low, found.high) == (pytest.approx(0.3), -math.inf, math.inf)
    assert mean_interval([[0.5, 0.5]]).low == 0.5


def test_a_level_beyond_one_is_refused() -> None:
    with pytest.raises(RequestError, match=r"between 0 and 1, such as 0.95, not 95"):
        mean_interval([[1.0, 2.0]], level=95)
