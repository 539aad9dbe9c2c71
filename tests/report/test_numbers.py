"""Numbers in front of readers: no more digits than the error allows, and none that deny a difference."""

from __future__ import annotations

import math

import pytest

from attnlab.report import numbers


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([5.7213, 5.7213 + 0.0042 * math.sqrt(2)], "5.7243 ± 0.0042"),
        ([300.0, 310.0], "305.0 ± 7.1"),
        ([12_000.0, 12_400.0], "12,200 ± 283"),
        ([5.5], "5.500"),
        ([2.0, 2.0], "2 ± 0"),
        ([math.nan, 1.25], "1.250"),
    ],
)
def test_as_many_digits_as_the_error_allows(values: list[float], shown: str) -> None:
    assert numbers.with_error(numbers.spread(values)) == shown


def test_nothing_finite_is_nothing() -> None:
    assert numbers.spread([math.nan, None, math.inf]) is None
    assert numbers.with_error(None) == "–"


@pytest.mark.parametrize(
    ("effect", "ci", "shown"),
    [
        (-0.0212, (-0.0313, -0.0111), "−0.021 [−0.031, −0.011]"),
        (0.0001, (-0.04, 0.04), "0.000 [−0.040, +0.040]"),
        (0.01, (None, None), "+0.010 [not bounded]"),
        (None, (None, None), "–"),
        (0.0, (0.0, 0.0), "0 [0, 0]"),
        (8.9e-8, (-5.4e5, 5.4e5), "+8.9 × 10⁻⁸ [−540,000, +540,000]"),
    ],
)
def test_intervals(effect: float | None, ci: tuple[float | None, float | None], shown: str) -> None:
    assert numbers.interval(effect, ci) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(-8.91e-8, "−8.91 × 10⁻⁸"), (2.5e9 + 0.5, "2.5 × 10⁹"), (0.0, "0"), (1234.5, "1,234")],
)
def test_extreme_figures_are_readable(value: float, shown: str) -> None:
    assert numbers.plain(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.84, "0.8 s"),
        (41.2, "41 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (3599.7, "1 h"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    assert numbers.duration(seconds) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.0, "the same"), (1.005, "1.005×"), (5.73, "5.73×"), (0.5, "0.500×"), (1e9, "1,000,000,000×")],
)
def test_ratios_do_not_deny_a_difference(value: float, shown: str) -> None:
    assert numbers.ratio(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0 %"), (0.004, "0.4 %"), (0.0312, "3.12 %"), (1e-6, "under 0.01 %"), (1.0, "100 %")],
)
def test_shares_are_nothing_only_when_they_are(value: float, shown: str) -> None:
    assert numbers.share(value) == shown
