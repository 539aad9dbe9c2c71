"""The ways two arms are compared in practice, to measure beside the verdicts of this package.

Each takes runs (T, 2, S, N), a baseline and one arm, and says of every study whether it calls the two
different.

Shapes: T studies (trials), A the baseline and the arm, S seeds, N documents, B resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from attnlab.verdict import distributions as stats
from attnlab.verdict.looks import Plan
from attnlab.verdict.simulation import Studies

Array = NDArray[np.float64]
Hits = NDArray[np.bool_]

PLAN = Plan()
ALLOWED = 0.05


def single_run(runs_TASN: Array) -> Hits:
    """One run of each, and a paired t test over the documents."""
    return paired_t(runs_TASN[:, 1, 0] - runs_TASN[:, 0, 0]) <= ALLOWED


def paired_t(difference: Array) -> Array:
    """Two-sided p of a t test of the last axis against zero."""
    n = difference.shape[-1]
    t = difference.mean(-1) / (difference.std(-1, ddof=1) / np.sqrt(n))
    return np.asarray(2 * stats.t.sf(np.abs(t), n - 1))


def welch(seeds: int) -> Callable[[Array], Hits]:
    """Welch's t over the means of runs, unpaired, at a fixed number of seeds."""

    def called(runs_TASN: Array) -> Hits:
        mean_TAS = runs_TASN[:, :, :seeds].mean(-1)
        p = stats.ttest_ind(mean_TAS[:, 0], mean_TAS[:, 1], axis=-1, equal_var=False).pvalue
        return np.asarray(p <= ALLOWED)

    return called


def bootstrap(runs_TASN: Array, *, seeds: int = 5, resamples: int = 1000) -> Hits:
    """The percentile interval of five paired run means, resampled."""
    difference_TS = (runs_TASN[:, 1, :seeds] - runs_TASN[:, 0, :seeds]).mean(-1)
    counts_BS = np.random.default_rng(0).multinomial(seeds, np.full(seeds, 1 / seeds), size=resamples)
    low_T, high_T = np.quantile(difference_TS @ counts_BS.T / seeds, (0.025, 0.975), axis=1)
    return np.asarray((low_T > 0) | (high_T < 0))


def peeking(runs_TASN: Array) -> Hits:
    """A paired t over seeds at 5 % after every seed from the third on."""
    difference_TS = (runs_TASN[:, 1] - runs_TASN[:, 0]).mean(-1)
    looks = range(3, difference_TS.shape[1] + 1)
    p = np.stack([paired_t(difference_TS[:, :look]) for look in looks])
    return np.asarray(p.min(axis=0) <= ALLOWED)


def seeds_alone(runs_TASN: Array) -> Hits:
    """The planned looks at their level, with a paired t over seeds: documents are taken as given."""
    difference_TS = (runs_TASN[:, 1] - runs_TASN[:, 0]).mean(-1)
    p = np.stack([paired_t(difference_TS[:, :look]) for look in PLAN.looks])
    return np.asarray(p.min(axis=0) <= PLAN.level(PLAN.looks[0]))


def attnlab_at(looks: tuple[int, ...]) -> Callable[[Array], Hits]:
    def called(runs_TASN: Array) -> Hits:
        judged = Studies.read(runs_TASN[:, 1:] - runs_TASN[:, :1], looks).judged(PLAN)
        return np.asarray((judged.codes != 0).any(axis=(0, 2)))

    return called


WAYS: Mapping[str, Callable[[Array], Hits]] = {
    "attnlab, to 12 seeds": attnlab_at(PLAN.looks),
    "attnlab, first look (5)": attnlab_at(PLAN.looks[:1]),
    "Welch, 5 seeds": welch(5),
    "Welch, 12 seeds": welch(12),
    "bootstrap, 5 seeds": bootstrap,
    "single run": single_run,
    "t over seeds, same looks": seeds_alone,
    "t after every seed": peeking,
}
