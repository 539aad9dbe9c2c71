"""The baseline against itself."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnlab.errors import RequestError
from attnlab.verdict import Plan, judge, noise_floor


def test_gaps_are_those_between_runs() -> None:
    rng = np.random.default_rng(0)
    runs = rng.normal(5, 0.1, size=(2000, 1)) + rng.normal(size=(1, 30))
    floor = noise_floor(runs, margin=0.01)
    mean = runs.mean(axis=1)
    assert floor.seed_deviation == pytest.approx(mean.std(ddof=1))
    assert floor.typical_gap == pytest.approx(np.abs(mean[:1000] - mean[1000:]).mean(), rel=0.08)
    assert floor.widest_gap == pytest.approx(mean.max() - mean.min())


def test_one_half_of_the_seeds_is_judged_against_the_other_as_a_single_look() -> None:
    rng = np.random.default_rng(1)
    runs = rng.normal(5, 0.1, size=(10, 1)) + rng.normal(size=(1, 20)) + rng.normal(0, 0.1, size=(10, 20))
    again = noise_floor(runs, margin=0.1).against_itself
    alone = judge(runs[:5], runs[5:], margin=0.1, plan=Plan((5,)))
    assert again is not None
    assert (again.effect, again.ci, again.p) == (alone.effect, alone.ci, alone.p)
    assert again.arm == "the baseline with other seeds"


def test_it_reads_aloud_and_fits_json() -> None:
    rng = np.random.default_rng(2)
    floor = noise_floor(rng.normal(5, 0.02, size=(3, 40)), margin=0.01)
    assert floor.against_itself is None
    assert "two runs that differ in nothing but the seed" in str(floor)
    assert json.loads(json.dumps(floor.plain()))["seeds"] == 3


def test_diverged_runs_are_left_out_and_two_must_remain() -> None:
    runs = np.random.default_rng(3).normal(5, 0.02, size=(3, 4))
    runs[1] = np.nan
    assert noise_floor(runs, margin=0.01).seeds == 2
    runs[2] = np.nan
    with pytest.raises(RequestError, match="two runs of plain that finished, not 1"):
        noise_floor(runs, margin=0.01, baseline_name="plain")
