"""The figures in a verdict's reason: readable however large or small, and no smaller than the data show."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnlab.verdict import judge
from attnlab.verdict.wording import number


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (0.01234, "0.0123"),
        (0.0001, "0.0001"),
        (0.00009996, "0.0001"),
        (8.9e-8, "8.9 × 10⁻⁸"),
        (-4.173e-5, "-4.17 × 10⁻⁵"),
        (999.4, "999"),
        (999.6, "1,000"),
        (1234.0, "1,230"),
        (5.45e5, "545,000"),
        (6.02e23, "6.02 × 10²³"),
        (math.inf, "inf"),
    ],
)
def test_figures_are_in_a_form_anyone_reads(value: float, shown: str) -> None:
    assert number(value) == shown


def measured(spread: float, effect: float, seeds: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """A baseline and an arm whose mean difference is exactly the effect."""
    rng = np.random.default_rng(3)
    baseline = 5 + rng.normal(size=(seeds, 120))
    shake = spread * rng.normal(size=baseline.shape)
    return baseline, baseline + effect + shake - shake.mean()


def test_practically_no_difference_is_said_where_equivalence_is_shown() -> None:
    baseline, arm = measured(1e-3, 2e-5)
    verdict = judge(baseline, arm, margin=0.01)
    assert verdict.verdict == "equivalent"
    assert "practically no difference in the loss (2 × 10⁻⁵ higher), and by 5 seeds" in verdict.reason
    assert (
        "practically no difference in the loss (2 × 10⁻⁵ lower)" in judge(arm, baseline, margin=0.01).reason
    )


def test_a_small_difference_that_is_seen_by_chance_is_not_called_none() -> None:
    """Two seeds that scatter much: as small an effect, and nothing shown."""
    baseline, arm = measured(1.0, 2e-5, seeds=2)
    verdict = judge(baseline, arm, margin=0.01)
    assert verdict.verdict == "undecided"
    assert "the loss is 2 × 10⁻⁵ higher, but" in verdict.reason
    assert "practically" not in verdict.reason


def test_what_is_small_is_measured_by_the_measure_itself() -> None:
    """The same figures in other units have the same words."""
    for unit in (1e-6, 1.0, 1e6):
        near, far = ([unit * array for array in measured(1e-2, effect)] for effect in (4e-4, 6e-4))
        assert "practically" in judge(*near, margin=0.01 * unit).reason
        assert "practically" not in judge(*far, margin=0.01 * unit).reason


def test_equivalence_of_a_larger_difference_gives_the_difference() -> None:
    baseline, arm = measured(5e-2, 3e-3)
    verdict = judge(baseline, arm, margin=0.05)
    assert verdict.verdict == "equivalent"
    assert verdict.reason.startswith("the loss is 0.003 higher, and by")


def test_what_rounding_left_of_no_difference_is_called_none() -> None:
    """Shares of right answers that come out even over the seeds: their mean is not always 0.0."""
    baseline = np.array([[0.1, 0.2, 0.4], [0.3, 0.7, 0.1], [0.6, 0.2, 0.9]])
    arm = baseline + np.array([[0.1, 0.0, -0.3], [0.2, -0.1, 0.3], [-0.2, 0.3, -0.3]])
    assert 0 < abs((arm - baseline).mean()) < 1e-12
    reason = judge(baseline, arm, margin=0.01).reason
    assert "the loss is the same, but by 3 seeds" in reason
