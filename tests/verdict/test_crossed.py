"""The crossed error against scipy and statsmodels, and against what it claims to estimate."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from attnlab.verdict.crossed import crossed_error


def test_mean_squares_are_those_of_a_two_way_analysis_of_variance() -> None:
    rng = np.random.default_rng(0)
    seeds, documents = 5, 12
    table_SN = (
        rng.normal(size=(seeds, 1)) + rng.normal(size=(1, documents)) + rng.normal(size=(seeds, documents))
    )
    crossed = crossed_error(table_SN, np.full(documents, 1 / documents))
    seed, document = np.indices(table_SN.shape)
    frame = pd.DataFrame({"d": table_SN.ravel(), "seed": seed.ravel(), "document": document.ravel()})
    squares = anova_lm(ols("d ~ C(seed) + C(document)", frame).fit())["mean_sq"] / table_SN.size
    assert crossed.effect == pytest.approx(table_SN.mean())
    assert crossed.seed_variance == pytest.approx(squares["C(seed)"])
    assert crossed.document_variance == pytest.approx(squares["C(document)"])
    assert crossed.rest_variance == pytest.approx(squares["Residual"])


def test_one_document_is_a_paired_t_test() -> None:
    rng = np.random.default_rng(1)
    baseline, arm = rng.normal(size=(2, 8, 1))
    crossed = crossed_error(arm - baseline, np.ones(1))
    expected = stats.ttest_rel(arm[:, 0], baseline[:, 0])
    assert crossed.effect / np.sqrt(crossed.variance) == pytest.approx(expected.statistic)
    assert crossed.dof == pytest.approx(expected.df)


def test_degrees_of_freedom_run_from_those_of_seeds_to_those_of_documents() -> None:
    rng = np.random.default_rng(2)
    equal = np.full(50, 1 / 50)
    by_seed = crossed_error(rng.normal(size=(5, 1)) + 1e-6 * rng.normal(size=(5, 50)), equal)
    by_document = crossed_error(rng.normal(size=(1, 50)) + 1e-6 * rng.normal(size=(5, 50)), equal)
    both = crossed_error(rng.normal(size=(5, 1)) + rng.normal(0, 3, size=(1, 50)), equal)
    assert by_seed.dof == pytest.approx(4, rel=1e-3)
    assert by_document.dof == pytest.approx(49, rel=1e-3)
    assert 4 < both.dof < 49


def test_few_documents_never_lend_degrees_of_freedom() -> None:
    rng = np.random.default_rng(3)
    many_2SN = rng.normal(size=(100, 12, 2))
    assert (crossed_error(many_2SN, np.full(2, 0.5)).dof == 1).all()


@pytest.mark.parametrize("unequal", [False, True])
def test_the_variance_is_that_of_the_effect(unequal: bool) -> None:
    rng = np.random.default_rng(4)
    trials, seeds, documents = 20_000, 4, 12
    weights_N = rng.lognormal(0, 0.8, documents) if unequal else np.ones(documents)
    weights_N = weights_N / weights_N.sum()
    table_TSN = (
        0.5 * rng.normal(size=(trials, seeds, 1))
        + rng.normal(size=(trials, 1, documents))
        + rng.normal(size=(trials, seeds, documents))
    )
    crossed = crossed_error(table_TSN, weights_N)
    estimate = crossed.seed_variance + crossed.document_variance - crossed.rest_variance
    error = 3 * estimate.std() / np.sqrt(trials) + 3 * crossed.effect.var() * np.sqrt(2 / trials)
    assert abs(estimate.mean() - crossed.effect.var()) < error


def test_repeating_a_document_counts_as_doubling_its_weight_in_the_effect() -> None:
    rng = np.random.default_rng(5)
    table_SN = rng.normal(size=(5, 3))
    weighted = crossed_error(table_SN, np.array([0.5, 0.25, 0.25]))
    repeated = crossed_error(table_SN[:, [0, 0, 1, 2]], np.full(4, 0.25))
    assert weighted.effect == pytest.approx(repeated.effect)
    assert weighted.seed_variance == pytest.approx(repeated.seed_variance)
    assert weighted.document_dof < 2  # one of three that counts half is worth less than three
