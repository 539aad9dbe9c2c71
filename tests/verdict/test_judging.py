"""What `judge` says of arrays whose truth is known, and of arrays that are hard to judge."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from attnlab.errors import RequestError
from attnlab.verdict import ACCURACY, Metric, Plan, Verdict, judge, judge_many

Array = NDArray[np.float64]


def runs(rng: np.random.Generator, seeds: int = 5, documents: int = 60) -> Array:
    """A baseline as studies have it: documents differ much, seeds a little."""
    return 5 + rng.normal(size=(seeds, 1)) * 0.02 + rng.normal(size=(1, documents))


def shaken(rng: np.random.Generator, baseline: Array, effect: float = 0.0, noise: float = 0.005) -> Array:
    seeds, documents = baseline.shape
    shake = rng.normal(size=(seeds, 1)) + rng.normal(size=(1, documents)) + rng.normal(size=baseline.shape)
    return baseline + effect + noise * shake


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_a_clear_gain_a_clear_loss_and_a_difference_that_does_not_matter(rng: np.random.Generator) -> None:
    baseline = runs(rng)
    better = judge(baseline, shaken(rng, baseline, -0.1), margin=0.02)
    worse = judge(baseline, shaken(rng, baseline, 0.1), margin=0.02)
    same = judge(baseline, shaken(rng, baseline), margin=0.05)
    assert (better.verdict, worse.verdict, same.verdict) == ("better", "worse", "equivalent")
    assert better.ci[0] < better.effect < better.ci[1] < 0 < worse.ci[0]
    assert better.p < 0.05 > worse.p
    assert same.p_equivalent < 0.05 < same.p
    assert -0.05 < same.ci[0] < same.ci[1] < 0.05
    assert better.seeds_needed is None


def test_higher_is_better_turns_the_word_and_not_the_effect(rng: np.random.Generator) -> None:
    baseline = runs(rng)
    arm = shaken(rng, baseline, 0.1)
    as_loss = judge(baseline, arm, margin=0.02)
    as_score = judge(baseline, arm, margin=0.02, metric=Metric("score", better="higher"))
    assert (as_loss.verdict, as_score.verdict) == ("worse", "better")
    assert as_loss.effect == as_score.effect > 0
    assert as_score.metric == "score"


def test_a_difference_below_the_margin_says_so(rng: np.random.Generator) -> None:
    baseline = runs(rng)
    verdict = judge(baseline, shaken(rng, baseline, -0.1), margin=0.5)
    assert verdict.verdict == "better"
    assert "smaller than the margin of 0.5" in str(verdict)


@pytest.mark.parametrize("margin", [0, 0.01])
def test_identical_arms_are_equivalent_and_asked_about(rng: np.random.Generator, margin: float) -> None:
    baseline = runs(rng)
    verdict = judge(baseline, baseline.copy(), margin=margin)
    assert (verdict.verdict, verdict.effect, verdict.ci, verdict.p) == ("equivalent", 0.0, (0.0, 0.0), 1.0)
    assert "not one value differs" in verdict.reason


def test_a_constant_shift_has_no_spread_and_is_called(rng: np.random.Generator) -> None:
    baseline = runs(rng)
    verdict = judge(baseline, baseline + 0.1, margin=0.01)
    assert verdict.verdict == "worse"
    assert verdict.effect == pytest.approx(0.1)
    assert all(map(math.isfinite, verdict.ci))


def test_rounding_of_32_bits_is_no_difference(rng: np.random.Generator) -> None:
    baseline = runs(rng)
    verdict = judge(baseline, baseline * (1 + 1e-8), margin=0.01)
    assert verdict.verdict == "equivalent"


def test_one_seed_is_never_better_or_worse(rng: np.random.Generator) -> None:
    baseline = runs(rng, seeds=1)
    verdict = judge(baseline, baseline - 3, margin=0.01)
    assert (verdict.verdict, verdict.p, verdict.seeds) == ("undecided", 1.0, 1)
    assert verdict.ci == (-math.inf, math.inf)
    assert verdict.preliminary
    assert verdict.seeds_needed == 5


def test_the_same_run_five_times_counts_as_one_seed(rng: np.random.Generator) -> None:
    baseline = np.repeat(runs(rng, seeds=1), 5, axis=0)
    arm = np.repeat(shaken(rng, baseline[:1], -0.1), 5, axis=0)
    verdict = judge(baseline, arm, margin=0.01)
    assert verdict.verdict == "undecided"
    assert "the very same numbers" in verdict.reason


def test_one_document_is_judged_over_seeds_and_says_that_it_is_one(rng: np.random.Generator) -> None:
    baseline = rng.normal(5, 0.02, size=(5, 1))
    verdict = judge(baseline, baseline - 0.1 + rng.normal(0, 0.01, size=(5, 1)), margin=0.01)
    assert verdict.verdict == "better"
    assert "nothing about other documents" in verdict.reason


def test_weights_that_leave_few_documents_are_told(rng: np.random.Generator) -> None:
    baseline = runs(rng)
    arm = shaken(rng, baseline)
    one = judge(baseline, arm, margin=0.01, weights=np.eye(60)[0])
    assert "nothing about other documents" in one.reason
    unequal = judge(baseline, arm, margin=0.01, weights=[1.0] * 10 + [0.0] * 50)
    assert "only 10 documents' worth" in unequal.reason


def test_diverged_runs_leave_the_pair_and_are_reported(rng: np.random.Generator) -> None:
    baseline = runs(rng)
    arm = shaken(rng, baseline, -0.1)
    whole = judge(np.delete(baseline, 2, 0), np.delete(arm, 2, 0), margin=0.02, look=5)
    broken = arm.copy()
    broken[2] = np.nan
    verdict = judge(baseline, broken, margin=0.02)
    assert (verdict.verdict, verdict.seeds, verdict.diverged) == ("better", 4, 1)
    assert (verdict.effect, verdict.ci) == (whole.effect, whole.ci)
    assert "1 run of the arm diverged" in str(verdict)
    marked = judge(baseline, arm, margin=0.02, diverged=np.arange(5) == 2)
    assert (marked.effect, marked.diverged) == (whole.effect, 1)
    burst = arm.copy()
    burst[2, 7] = np.inf
    assert judge(baseline, burst, margin=0.02).effect == whole.effect


def test_an_arm_of_which_no_run_finished_is_invalid(rng: np.random.Generator) -> None:
    baseline = runs(rng)
    verdict = judge(baseline, np.full_like(baseline, np.nan), margin=0.02)
    assert (verdict.verdict, verdict.seeds) == ("invalid", 0)
    assert "5 runs of the arm diverged" in verdict.reason


def test_a_failed_audit_makes_the_arm_invalid_whatever_its_numbers(rng: np.random.Generator) -> None:
    baseline = runs(rng)
    arms = {"masked late": baseline - 1, "other": shaken(rng, baseline, -0.1)}
    verdicts = judge_many(baseline, arms, margin=0.02, findings={"masked late": "it sees the future"})
    alone = judge(baseline, arms["other"], margin=0.02)
    assert verdicts["masked late"].verdict == "invalid"
    assert "it sees the future" in str(verdicts["masked late"])
    assert verdicts["other"].p == alone.p  # an arm that is out takes no share of the error


def test_three_seeds_are_preliminary_and_held_to_more(rng: np.random.Generator) -> None:
    baseline = runs(rng, seeds=3)
    arm = shaken(rng, baseline, -0.1)
    verdict = judge(baseline, arm, margin=0.02)
    assert verdict.preliminary
    assert "preliminary: 3 seeds" in str(verdict)
    declared = judge(baseline, arm, margin=0.02, plan=Plan((3,)))
    assert not declared.preliminary
    assert declared.p < verdict.p


def test_ten_items_on_which_nobody_differs_do_not_show_equivalence() -> None:
    right = np.ones((5, 10))
    verdict = judge(right, right, margin=0.05, metric=ACCURACY)
    assert verdict.verdict == "undecided"
    assert verdict.documents_needed is not None
    assert verdict.documents_needed > 100
    many = np.ones((5, 2000))
    assert judge(many, many, margin=0.05, metric=ACCURACY).verdict == "equivalent"


def test_json_form_is_that_of_results_json(rng: np.random.Generator) -> None:
    baseline = runs(rng, seeds=1)
    plain = json.loads(json.dumps(judge(baseline, baseline + 1, margin=0.1).plain(), allow_nan=False))
    agreed = {"arm", "baseline", "metric", "effect", "ci", "p", "verdict", "seeds", "seeds_needed"}
    assert agreed <= set(plain)
    assert plain["ci"] == [None, None]


def test_verdicts_are_frozen(rng: np.random.Generator) -> None:
    verdict = judge(runs(rng), runs(rng), margin=0.1)
    assert isinstance(verdict, Verdict)
    with pytest.raises(AttributeError):
        verdict.verdict = "better"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"margin": -1}, "margin must be a number, 0 or above, not -1"),
        ({"margin": math.nan}, "margin must be a number"),
        ({"arm": np.ones((4, 60))}, "4 seeds × 60 documents and the baseline 5 seeds × 60 documents"),
        ({"arm": np.ones(60)}, r"must have the shape \(seeds, documents\).*\(60,\).*reshape"),
        ({"arm": np.ones((5, 0))}, "at least one of each"),
        ({"arm": [["a"]]}, "must be numbers"),
        ({"weights": np.ones(3)}, "one number a document, 60 in all"),
        ({"weights": -np.ones(60)}, "weight 0 is -1.0"),
        ({"weights": np.zeros(60)}, "all weights are 0"),
        ({"look": 0}, "look must be a number of seeds"),
        ({"metric": "accuracy"}, r"metric must be a Metric, such as Metric\(.*not 'accuracy'"),
        ({"plan": (5, 8)}, r"plan must be a Plan, such as Plan\("),
        ({"look": 3}, "look is 3, but there are 5 rows"),
        ({"diverged": [1, 0, 0, 0, 0]}, "diverged must be 5 of True or False"),
    ],
)
def test_bad_input_is_named(rng: np.random.Generator, change: dict[str, object], says: str) -> None:
    baseline = runs(rng)
    arguments: dict[str, object] = {"baseline": baseline, "arm": baseline, "margin": 0.1} | change
    with pytest.raises(RequestError, match=says):
        judge(**arguments)  # type: ignore[arg-type]


def test_an_unknown_arm_among_the_findings_is_named(rng: np.random.Generator) -> None:
    baseline = runs(rng)
    with pytest.raises(RequestError, match="did you mean 'additive'"):
        judge_many(baseline, {"additive": baseline}, margin=0.1, findings={"aditive": "?"})
    with pytest.raises(RequestError, match="no direction is called 'up'"):
        Metric("accuracy", better="up")  # type: ignore[arg-type]


def test_judging_is_the_same_whichever_way_the_table_is_turned(rng: np.random.Generator) -> None:
    baseline = runs(rng)
    arm = shaken(rng, baseline, -0.01)
    weights = rng.lognormal(size=60)
    verdict = judge(baseline, arm, margin=0.02, weights=weights)
    swapped = judge(arm, baseline, margin=0.02, weights=weights)
    assert swapped.effect == pytest.approx(-verdict.effect)
    assert swapped.ci == pytest.approx((-verdict.ci[1], -verdict.ci[0]))
    assert {verdict.verdict, swapped.verdict} in ({"better", "worse"}, {"undecided"}, {"equivalent"})
    s, n = rng.permutation(5), rng.permutation(60)
    turned = judge(baseline[s][:, n], arm[s][:, n], margin=0.02, weights=weights[n] * 7)
    assert turned.ci == pytest.approx(verdict.ci)
    lifted = judge(baseline + 3, arm + 3, margin=0.02, weights=weights)
    assert lifted.p == pytest.approx(verdict.p)


def test_two_seeds_are_judged_and_held_to_much(rng: np.random.Generator) -> None:
    baseline = runs(rng, seeds=2)
    verdict = judge(baseline, shaken(rng, baseline, -0.1), margin=0.01)
    assert (verdict.verdict, verdict.preliminary) == ("undecided", True)
    assert verdict.seeds_needed == 5


def test_a_runner_asks_the_plan_for_the_next_look_until_all_is_decided(rng: np.random.Generator) -> None:
    plan = Plan()
    assert [plan.after(seeds) for seeds in (0, 3, 5, 8, 12)] == [5, 5, 8, 12, None]
    baseline = runs(rng)
    assert judge(baseline, shaken(rng, baseline, -0.1), margin=0.02).decided
    assert not judge(baseline[:1], baseline[:1], margin=0.02).decided


def test_verdict_loads_no_torch() -> None:
    code = "import sys, attnlab.verdict; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
