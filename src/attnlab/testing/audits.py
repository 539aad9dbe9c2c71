"""The audit as one assertion, for the tests of whoever writes attention."""

from __future__ import annotations

from typing import Any


def assert_sound(*targets: Any, against: Any = None, except_for: tuple[str, ...] = ()) -> None:
    """Fails, with the evidence, when the audit of any target finds something.

    Targets are what `attnlab.audit` takes: functions, modules, parts, or targets as strings. `except_for`
    names checks whose findings are accepted, such as `("length",)` for a scale that is meant to follow the
    length. A name in it that no audit knows, or that found nothing, fails too: an exception that is no longer
    needed should not stay.
    """
    from attnlab.audit.render import render
    from attnlab.audit.run import run_audit
    from attnlab.errors import RequestError, unknown

    audits = run_audit(*targets, against=against)
    checks = [check for audit in audits for check in audit.checks]
    found = {check.name for check in checks if check.status in ("fail", "error")}
    for name in except_for:
        if name not in {check.name for check in checks}:
            raise RequestError(unknown("check", name, {check.name for check in checks}))
        assert name in found, f"{name} is excepted and found nothing: take the exception out"
    left = found - set(except_for)
    assert not left, f"the audit found {', '.join(sorted(left))}\n\n{render(audits)}"
