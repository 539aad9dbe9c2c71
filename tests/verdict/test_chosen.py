"""The best of several, corrected for having been chosen: right on average, where the bare figure is not."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.errors import RequestError
from attnlab.verdict.chosen import corrected

STUDIES, CANDIDATES, ITEMS = 60, 20, 200


def alike(seed: int) -> np.ndarray:
    """Candidates that are all right seven times in ten, and differ by luck alone."""
    return (np.random.default_rng(seed).random((CANDIDATES, ITEMS)) < 0.7).astype(float)


def test_of_candidates_that_are_alike_the_best_is_no_better() -> None:
    found = [corrected(alike(seed), draws=200, seed=seed) for seed in range(STUDIES)]
    bare, mended = (np.mean([getattr(one, name) for one in found]) for name in ("value", "corrected"))
    assert bare > 0.75  # what a table without the correction would report
    assert mended == pytest.approx(0.7, abs=0.01)
    assert np.mean([one.low < 0.7 < one.high for one in found]) > 0.9


def test_a_candidate_that_is_better_keeps_its_figure() -> None:
    values = alike(1)
    values[3] = np.random.default_rng(2).random(ITEMS) < 0.95
    found = corrected(values)
    assert found.place == 3
    assert found.corrected == pytest.approx(found.value, abs=0.005)


def test_lower_can_be_better() -> None:
    values = alike(1)
    assert corrected(1 - values, better="lower", draws=100).value == pytest.approx(
        1 - corrected(values, draws=100).value
    )


def test_one_candidate_was_not_chosen() -> None:
    only = alike(5)[:1]
    assert corrected(only).corrected == pytest.approx(only.mean(), abs=0.005)


@pytest.mark.parametrize("values", [np.zeros(4), np.zeros((0, 3)), np.full((2, 9), np.nan), np.ones((2, 3))])
def test_what_cannot_be_corrected_is_refused(values: np.ndarray) -> None:
    with pytest.raises(RequestError):
        corrected(values)
