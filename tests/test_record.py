"""Records: what is written is what is read, and the sums they offer are right."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

from attnlab.record import SCHEMA, Audit, Check, DocumentLosses, RunResult

LOSSES = DocumentLosses(("a", "b"), (2.0, 5.0), (30, 10), (100, 45))


def test_a_result_survives_json() -> None:
    result = RunResult(
        "dot",
        3,
        "invalid",
        metrics={"test_loss": 2.5},
        documents={"test": LOSSES, "dev": LOSSES},
        checks=(Check("prefix-only", "fail", "it saw ahead", {"n": 3}),),
        sentences=({"text": "x", "loss": 1.0},),
        samples=("one", "two"),
        seconds=1.5,
        tokens_per_second=20.0,
        steps=7,
        reason="it saw ahead",
    )
    plain = json.loads(json.dumps(result.plain()))
    assert plain["schema"] == SCHEMA
    assert RunResult.from_plain(plain) == result


@pytest.mark.parametrize("missing", ["arm", "documents", "checks", "sentences", "samples"])
def test_a_result_that_lacks_something_is_not_taken_for_one(missing: str) -> None:
    plain = RunResult("dot", 0, "ok").plain()
    del plain[missing]
    with pytest.raises((KeyError, TypeError)):
        RunResult.from_plain(plain)


def test_the_mean_is_over_tokens_and_not_over_documents() -> None:
    assert LOSSES.total_tokens == 40
    assert LOSSES.mean == pytest.approx((2.0 * 30 + 5.0 * 10) / 40)


def test_bits_per_byte() -> None:
    first, second = LOSSES.bits_per_byte
    assert first == pytest.approx(2.0 * math.log2(math.e) * 30 / 100)
    assert second == pytest.approx(5.0 * math.log2(math.e) * 10 / 45)


@pytest.mark.parametrize(
    ("statuses", "passed"),
    [(["pass", "skip"], True), ([], True), (["pass", "fail"], False), (["error"], False)],
)
def test_an_audit_passes_when_nothing_failed_or_broke_down(statuses: list[str], passed: bool) -> None:
    audit = Audit("x", tuple(Check(str(i), s, "") for i, s in enumerate(statuses)))  # type: ignore[arg-type]
    assert audit.passed is passed
    assert audit.plain()["passed"] is passed
    assert json.loads(json.dumps(audit.plain()))["target"] == "x"


def test_records_need_no_torch() -> None:
    script = "import sys, attnlab.record; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
