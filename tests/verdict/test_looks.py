"""Levels of a plan against published ones, against exact integrals, and against plain simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from attnlab.errors import RequestError
from attnlab.verdict import Plan


def test_a_single_look_spends_all() -> None:
    plan = Plan((10,))
    assert plan.level(10) == 0.05
    assert plan.sequential_p(np.array([0.03]), 10) == pytest.approx([0.03])


def test_many_seeds_give_the_level_of_the_multivariate_normal() -> None:
    looks = (500, 1000, 1500)

    def error(level: float) -> float:
        bound = stats.norm.isf(level / 2)
        covariance = [[np.sqrt(min(a, b) / max(a, b)) for a in looks] for b in looks]
        normal = stats.multivariate_normal(np.zeros(3), covariance)
        inside = normal.cdf(np.full(3, bound), lower_limit=np.full(3, -bound), rng=np.random.default_rng(0))
        return float(1 - inside - 0.05)

    exact = optimize.brentq(error, 0.01, 0.05, xtol=1e-6)
    assert exact == pytest.approx(0.0221, abs=1e-4)  # Pocock's table, three looks
    assert Plan(looks).level(500) == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("looks", [(5, 8, 12), (3, 6), (4, 5, 6, 7)])
@pytest.mark.parametrize("sides", [1, 2])
def test_plain_t_tests_at_the_level_err_as_often_as_promised(looks: tuple[int, ...], sides: int) -> None:
    trials = 40_000
    seeds = np.random.default_rng(7).normal(size=(looks[-1], trials))
    level = Plan(looks).level(looks[0], sides=sides)
    side = "two-sided" if sides == 2 else "greater"
    p = np.array([stats.ttest_1samp(seeds[:look], 0, alternative=side).pvalue for look in looks])
    wrong = float((p.min(axis=0) <= level).mean())
    assert wrong == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / trials))


def test_the_level_of_the_usual_plan() -> None:
    assert Plan().level(5) == pytest.approx(0.0213, abs=2e-4)
    assert Plan().level(5) == Plan().level(8) == Plan().level(12)


@pytest.mark.parametrize("look", [3, 5, 20])
@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 4, 0.0005])
def test_a_p_within_the_level_is_one_whose_sequential_p_is_within_alpha(
    look: int, sides: int, alpha: float
) -> None:
    plan = Plan()
    level = plan.level(look, alpha=alpha, sides=sides)
    p = np.sort(np.concatenate([np.geomspace(1e-9, 1, 400), level * np.array([1 - 1e-9, 1 + 1e-9])]))
    total = plan.sequential_p(p, look, sides=sides)
    assert ((total <= alpha) == (p <= level)).all()
    assert (np.diff(total) >= 0).all()
    assert (total >= p).all()


def test_looks_outside_the_plan_are_stricter() -> None:
    plan = Plan()
    assert plan.level(3) == plan.level(20) == pytest.approx(plan.level(5) / 10)


@pytest.mark.parametrize(
    ("looks", "alpha", "says"),
    [
        ((), 0.05, "each at least 2"),
        ((1, 5), 0.05, "each at least 2"),
        ((8, 5), 0.05, "must rise"),
        ((5, 5), 0.05, "must rise"),
        ((2.5,), 0.05, "whole numbers"),
        ((5,), 0.0, "between 0 and 0.5"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(looks: tuple[int, ...], alpha: float, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        Plan(looks, alpha)
