"""Audits as text for a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from attnlab.record import Audit, Check

_MARKS = {"pass": "✓", "fail": "✗", "skip": "·", "error": "!"}


def render(audits: Iterable[Audit]) -> str:
    """One block per target: its verdict, then a line of evidence per check."""
    return "\n\n".join(_block(audit) for audit in audits)


def as_json(audits: Iterable[Audit]) -> str:
    """The audits as the JSON list that `attnlab audit --json` prints."""
    return json.dumps(
        [_clean(audit.plain()) for audit in audits], indent=2, ensure_ascii=False, allow_nan=False
    )


as_text = render


def _block(audit: Audit) -> str:
    bad = [check.name for check in audit.checks if check.status in ("fail", "error")]
    verdict = "nothing found" if audit.passed else f"found: {', '.join(bad)}"
    width = max((len(check.name) for check in audit.checks), default=0)
    return "\n".join([f"{audit.target}: {verdict}", *(_line(check, width) for check in audit.checks)])


def _line(check: Check, width: int) -> str:
    mark = "~" if check.detail.get("fragile") else _MARKS[check.status]
    return f"  {mark} {check.name:<{width}}  {check.evidence}"


def _clean(value: Any) -> Any:
    if isinstance(value, float) and not -float("inf") < value < float("inf"):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return value
