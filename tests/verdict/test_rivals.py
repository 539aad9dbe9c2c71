"""The other ways of comparing are what scipy says they are, and err as they are known to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from attnlab.verdict.rivals import WAYS, paired_t
from attnlab.verdict.simulation import World


def test_paired_t_is_scipys() -> None:
    difference = np.random.default_rng(0).normal(size=(20, 7))
    assert paired_t(difference) == pytest.approx(stats.ttest_1samp(difference, 0, axis=-1).pvalue)


def test_welch_is_scipys_at_its_number_of_seeds() -> None:
    runs = World().runs(np.random.default_rng(1), 200, 1, 12)
    p = [stats.ttest_ind(a[:5].mean(-1), b[:5].mean(-1), equal_var=False).pvalue for a, b in runs]
    assert (WAYS["Welch, 5 seeds"](runs) == (np.array(p) <= 0.05)).all()


def test_the_tempting_ways_err_far_more_often_than_five_percent() -> None:
    runs = World(correlation=0.5).runs(np.random.default_rng(2), 600, 1, 12)
    false = {name: way(runs).mean() for name, way in WAYS.items()}
    assert false["single run"] > 0.3
    assert false["bootstrap, 5 seeds"] > 0.1
    assert false["t after every seed"] > 0.12
    assert false["attnlab, to 12 seeds"] < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 600)


def test_seeds_alone_err_when_documents_differ_by_arm() -> None:
    runs = World(correlation=0.8, document_effect=6).runs(np.random.default_rng(3), 1000, 1, 12)
    assert WAYS["t over seeds, same looks"](runs).mean() > 0.3
    assert WAYS["attnlab, to 12 seeds"](runs).mean() < 0.05


def test_the_bootstrap_is_scipys_percentile_interval() -> None:
    runs = World(correlation=0.5).runs(np.random.default_rng(4), 60, 1, 5)
    called = WAYS["bootstrap, 5 seeds"](runs)
    agree = 0
    for (baseline, arm), call in zip(runs.mean(-1), called, strict=True):
        interval = stats.bootstrap(
            (arm - baseline,), np.mean, method="percentile", n_resamples=2000, rng=np.random.default_rng(0)
        ).confidence_interval
        agree += call == (interval.low > 0 or interval.high < 0)
    assert agree >= 58  # the few left stand at the edge of an interval that is itself drawn by lot
