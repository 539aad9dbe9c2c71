"""Targets, exit codes, JSON and text."""

from __future__ import annotations

import json
import time

import pytest
import torch

import attnlab
import attnlab.audit as audit
from attnlab.attention import Causal, Sigmoid
from attnlab.errors import RequestError
from attnlab.record import Audit, Check

from .operators_leaking import mask_after_softmax
from .operators_right import softmax

GOOD = """
import torch.nn.functional as F

def attention(q, k, v, *, causal=True):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

def leaky(q, k, v, *, causal=True):
    return F.scaled_dot_product_attention(q, k, v)

def raises(q, k, v):
    raise KeyError("no")

number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(GOOD)
    return path


def test_exit_codes(file):
    assert audit.exit_code(audit.run_audit(f"{file}:attention")) == 0
    assert audit.exit_code(audit.run_audit(f"{file}:leaky")) == 1
    for wrong in ("raises", "number", "nothing"):
        assert audit.exit_code(audit.run_audit(f"{file}:{wrong}")) == 2
    assert audit.exit_code(audit.run_audit("sofmax")) == 2


def test_one_target_that_does_not_load_leaves_the_others(file):
    first, second = audit.run_audit("nowhere.py:f", f"{file}:leaky")
    assert [check.status for check in first.checks] == ["error"]
    assert "causality" in {check.name for check in second.checks if check.status == "fail"}


def test_a_wrong_name_brings_the_nearest():
    (result,) = audit.run_audit("sofmax")
    assert "did you mean 'softmax'" in result.checks[0].evidence
    with pytest.raises(RequestError, match="name at least one"):
        audit.run_audit()


def test_json_is_the_contract():
    (entry,) = json.loads(audit.as_json(audit.run_audit(mask_after_softmax)))
    assert set(entry) == {"target", "passed", "checks"}
    assert entry["passed"] is False
    for check in entry["checks"]:
        assert set(check) == {"name", "status", "evidence", "detail"}
        assert check["status"] in {"pass", "fail", "skip", "error"}
    causality = {check["name"]: check for check in entry["checks"]}["causality"]
    assert causality["status"] == "fail"
    assert causality["detail"]["position"] < causality["detail"]["token"]


def test_json_holds_no_number_that_json_does_not_have():
    odd = Audit("x", (Check("a", "fail", "b", {"by": float("inf"), "list": [float("nan")]}),))
    assert json.loads(audit.as_json([odd]))[0]["checks"][0]["detail"] == {"by": "inf", "list": ["nan"]}


def test_text_names_the_target_and_its_findings():
    text = audit.as_text(audit.run_audit(mask_after_softmax))
    assert text.startswith("mask_after_softmax: found: causality")
    assert "✗ causality" in text
    assert "token" in text


def test_the_package_can_be_called():
    (result,) = attnlab.audit(softmax)
    assert result.passed


def test_parts_by_name_and_by_hand():
    for target in ("softmax", "weigh:sigmoid", Sigmoid(), "rotary", "aft-simple", "dot"):
        (result,) = audit.run_audit(target)
        assert result.passed, audit.as_text([result])
    (after,) = audit.run_audit(Causal(where="after"))
    assert "causality" in {check.name for check in after.checks if check.status == "fail"}


def test_what_is_declared_to_see_the_future_is_not_accused_of_it():
    (result,) = audit.run_audit("everything")
    causality = {check.name: check for check in result.checks}["causality"]
    assert (result.passed, causality.status) == (True, "skip")


def test_the_random_state_and_the_threads_are_given_back():
    torch.manual_seed(5)
    wanted, threads = torch.rand(1), torch.get_num_threads()
    torch.manual_seed(5)
    audit.run_audit(softmax)
    assert torch.equal(torch.rand(1), wanted)
    assert torch.get_num_threads() == threads


def test_one_operator_takes_about_a_second_of_work():
    audit.run_audit(softmax)
    start = time.process_time()
    audit.run_audit(softmax)
    assert time.process_time() - start < 2.0  # twice the promise, for machines that are slower than ours


def test_every_rule_says_what_it_claims_and_where_its_threshold_comes_from():
    for kind, rules in audit.all_rules().items():
        names = [rule.name for rule in rules]
        assert len(names) == len(set(names)), kind
        for rule in rules:
            assert rule.tests
            assert rule.claims
            assert rule.threshold
