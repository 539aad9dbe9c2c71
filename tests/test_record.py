"""Records: what is written is what is read, and the sums they offer are right."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

from attnlab.record import SCHEMA, Audit, Check, Items, RunResult, bits_per_byte

LOSSES = Items(("a", "b"), {"loss": (2.0, 5.0), "tokens": (30, 10)})


def test_a_result_survives_json() -> None:
    result = RunResult(
        "dot",
        3,
        "invalid",
        metrics={"test_loss": 2.5},
        items={"test": LOSSES, "dev": LOSSES},
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


@pytest.mark.parametrize("missing", ["arm", "items", "checks", "sentences", "samples"])
def test_a_result_that_lacks_something_is_not_taken_for_one(missing: str) -> None:
    plain = RunResult("dot", 0, "ok").plain()
    del plain[missing]
    with pytest.raises((KeyError, TypeError)):
        RunResult.from_plain(plain)


def test_a_mean_is_over_items_or_over_what_they_weigh() -> None:
    assert LOSSES.mean("loss") == pytest.approx(3.5)
    assert LOSSES.mean("loss", "tokens") == pytest.approx((2.0 * 30 + 5.0 * 10) / 40)


def test_every_item_has_a_value_of_every_measure() -> None:
    with pytest.raises(ValueError, match="1 values of 'loss' for 2 items"):
        Items(("a", "b"), {"loss": (1.0,)})


def test_bits_per_byte() -> None:
    assert bits_per_byte(2.0, 30, 100) == pytest.approx(2.0 * math.log2(math.e) * 30 / 100)


def test_a_result_of_the_first_version_is_read_as_items() -> None:
    plain = RunResult("dot", 0, "ok", metrics={"test_loss": 2.75}).plain()
    del plain["items"]
    plain["documents"] = {
        "test": {"names": ["a", "b"], "loss": [2.0, 5.0], "tokens": [30, 10], "bytes": [100, 45]}
    }
    items = RunResult.from_plain(plain).items["test"]
    assert items.names == ("a", "b")
    assert items.mean("loss", "tokens") == pytest.approx(2.75)
    bits = 2.75 * 40 * math.log2(math.e) / 145
    assert items.mean("bits_per_byte", "bytes") == pytest.approx(bits)


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
