"""Holm, intervals and equivalence against statsmodels and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from attnlab.verdict import Plan, judge, judge_many
from attnlab.verdict.decision import UNDECIDED, decide


def test_p_is_holms_over_the_arms() -> None:
    plan = Plan()
    t = np.array([0.5, -4.2, 3.3, 2.9, -3.0])
    dof = np.full(5, 20.0)
    decision = decide(t, np.ones(5), dof, margin=0.1, look=5, plan=plan)
    sequential = plan.sequential_p(2 * stats.t.sf(np.abs(t), dof), 5)
    rejected, adjusted, _, _ = multipletests(sequential, 0.05, method="holm")
    assert decision.p == pytest.approx(adjusted)
    assert ((decision.code != UNDECIDED) == rejected).all()


def test_an_interval_leaves_zero_out_exactly_when_the_arm_differs() -> None:
    rng = np.random.default_rng(0)
    effect = rng.normal(0, 3, size=(5000, 4))
    decision = decide(
        effect, np.ones_like(effect), np.full_like(effect, 6.0), margin=1e-9, look=8, plan=Plan()
    )
    differs = (decision.low > 0) | (decision.high < 0)
    assert (differs == (decision.code != UNDECIDED)).all()
    assert (differs == (decision.p <= 0.05)).all()
    assert 0.1 < differs.mean() < 0.9


def test_one_look_one_arm_one_number_a_run_is_the_paired_t_test() -> None:
    rng = np.random.default_rng(1)
    baseline = rng.normal(5, 0.1, size=(9, 1))
    arm = baseline + rng.normal(0.05, 0.05, size=(9, 1))
    verdict = judge(baseline, arm, margin=0.12, plan=Plan((9,)))
    test = stats.ttest_rel(arm[:, 0], baseline[:, 0])
    assert verdict.p == pytest.approx(test.pvalue)
    assert verdict.ci == pytest.approx(tuple(test.confidence_interval(0.95)))
    two_one_sided = ttost_paired(arm[:, 0], baseline[:, 0], -0.12, 0.12)
    assert verdict.p_equivalent == pytest.approx(two_one_sided[0])


def test_more_arms_ask_more_of_each() -> None:
    rng = np.random.default_rng(2)
    baseline = rng.normal(5, 1, size=(5, 50))
    arm = baseline + rng.normal(0, 0.01, size=(5, 50)) + rng.normal(0.02, 0.01, size=(5, 1))
    others = {f"other {i}": baseline + rng.normal(0, 0.01, size=(5, 50)) for i in range(3)}
    alone = judge(baseline, arm, margin=0.001)
    among = judge_many(baseline, {"arm": arm, **others}, margin=0.001)["arm"]
    assert among.effect == alone.effect
    assert among.p > alone.p
    assert among.ci[0] < alone.ci[0]
