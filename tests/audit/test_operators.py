"""Every check of operators: it catches its broken twins and leaves the right ones in peace."""

from __future__ import annotations

import pytest

import attnlab.audit as audit
from attnlab.audit.operators import operator_from

from . import operators_elsewhere, operators_leaking, operators_right

RIGHT = {**operators_right.RIGHT, **operators_elsewhere.RIGHT}
LEAKS = {**operators_leaking.LEAKS, **operators_elsewhere.LEAKS}


def outcome(target) -> dict[str, str]:
    (result,) = audit.run_audit(target)
    return {check.name: f"{check.status}: {check.evidence}" for check in result.checks}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_mechanism_is_not_accused(name):
    (result,) = audit.run_audit(RIGHT[name])
    assert result.passed, [check for check in result.checks if check.status in ("fail", "error")]
    causality = {check.name: check for check in result.checks}["causality"]
    assert causality.status == "pass"
    assert causality.detail["probes"] > 20


@pytest.mark.parametrize("name", LEAKS)
def test_a_planted_leak_is_found(name):
    seen = outcome(LEAKS[name])
    assert seen["causality"].startswith("fail"), seen


@pytest.mark.parametrize("name", operators_leaking.FAULTS)
def test_another_fault_is_found_and_not_called_a_leak(name):
    check, function = operators_leaking.FAULTS[name]
    seen = outcome(function)
    assert seen[check].startswith("fail"), seen


def test_a_cast_inside_is_measured():
    """A softmax in fp32 inside fp64 sets how far outputs may be apart; without it, rounding is no excuse."""
    inside = operator_from(operators_elsewhere.softmax_in_single_precision, "inside")
    outside = operator_from(operators_right.softmax, "outside")
    assert 1e-7 < inside.tolerance <= 1e-4
    assert outside.tolerance == 1e-9


def test_state_while_training_is_told_and_is_no_leak():
    seen = outcome(operators_elsewhere.SpectralNorm)
    assert "as between calls on the same inputs" in seen["causality"]
    assert outcome(operators_elsewhere.SpectralNormAndOpenWhileTraining)["causality"].startswith("fail")
