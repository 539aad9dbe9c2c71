"""Every check of operators: it catches its broken twins and leaves the right ones in peace."""

from __future__ import annotations

import pytest

import attnlab.audit as audit

from . import operators_leaking, operators_right


def outcome(target) -> dict[str, str]:
    (result,) = audit.run_audit(target)
    return {check.name: f"{check.status}: {check.evidence}" for check in result.checks}


@pytest.mark.parametrize("name", operators_right.RIGHT)
def test_a_right_mechanism_is_not_accused(name):
    (result,) = audit.run_audit(operators_right.RIGHT[name])
    assert result.passed, [check for check in result.checks if check.status in ("fail", "error")]
    causality = {check.name: check for check in result.checks}["causality"]
    assert causality.status == "pass"
    assert causality.detail["probes"] > 20


@pytest.mark.parametrize("name", operators_leaking.LEAKS)
def test_a_planted_leak_is_found(name):
    seen = outcome(operators_leaking.LEAKS[name])
    assert seen["causality"].startswith("fail"), seen


@pytest.mark.parametrize("name", operators_leaking.FAULTS)
def test_another_fault_is_found_and_not_called_a_leak(name):
    check, function = operators_leaking.FAULTS[name]
    seen = outcome(function)
    assert seen[check].startswith("fail"), seen
