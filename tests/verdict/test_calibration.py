"""A small calibration: the words err as rarely as they should. benchmarks/calibrate.py does it at length."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.verdict import Plan
from attnlab.verdict.simulation import SHAPES, Studies, World, measure

TRIALS = 1500
ALLOWED = 0.05 + 3 * np.sqrt(0.05 * 0.95 / TRIALS)
PLAN = Plan()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("correlation", "document_effect"), [(0.0, 2.0), (0.8, 1.0), (0.8, 6.0)])
def test_no_more_than_five_percent_of_tables_hold_a_wrong_word(
    shape: str, correlation: float, document_effect: float
) -> None:
    world = World(shape=shape, correlation=correlation, document_effect=document_effect)
    cell = measure(world, PLAN, trials=TRIALS, arms=[1, 3], seed=0)
    assert max(cell.shares) <= ALLOWED
    assert min(cell.shares) > 0


def test_a_check_that_can_fail_every_look_at_the_full_level_errs_too_often() -> None:
    studies = World().differences(np.random.default_rng(0), TRIALS, 1, 12)
    wrong = np.zeros(TRIALS, dtype=bool)
    for look in PLAN.looks:
        codes = Studies.read(studies, [look]).judged(Plan((look,))).codes
        wrong |= (codes != 0).any(axis=(0, 2))
    assert wrong.mean() > ALLOWED


def test_pairing_finds_what_it_should() -> None:
    studies = World(correlation=0.8).differences(np.random.default_rng(0), TRIALS, 1, 12)
    assert Studies.read(studies, [5]).judged(PLAN, effect=-2).lower > 0.8
