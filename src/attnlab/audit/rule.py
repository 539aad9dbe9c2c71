"""A check as a small object: what it tests, what a pass claims, its threshold and where that comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from attnlab.record import Check, CheckStatus

Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Seen:
    """What looking at one subject brought: a word, a line a person can act on, the numbers behind it."""

    status: CheckStatus
    evidence: str
    detail: dict[str, Any]


def fine(evidence: str, **detail: Any) -> Seen:
    """Nothing found."""
    return Seen("pass", evidence, detail)


def found(evidence: str, **detail: Any) -> Seen:
    """Something is wrong, and the evidence says what and where."""
    return Seen("fail", evidence, detail)


def skipped(reason: str, **detail: Any) -> Seen:
    """Not judged, and why."""
    return Seen("skip", reason, detail)


def fragile(evidence: str, **detail: Any) -> Seen:
    """Right in exact arithmetic, but easily broken by rounding or overflow: told, and not held against it."""
    return Seen("skip", f"fragile: {evidence}", {"fragile": True, **detail})


class NotJudged(Exception):
    """What a check needs is not there: the check is skipped, and this is the reason."""


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """One check. Calling it looks at a subject and never raises: what foreign code raises is a finding."""

    name: str
    tests: str
    claims: str
    threshold: str
    look: Callable[[Subject], Seen]

    def __call__(self, subject: Subject) -> Check:
        try:
            seen = self.look(subject)
        except NotJudged as reason:
            seen = skipped(str(reason))
        except Exception as error:  # foreign code is being run: whatever it raises is what was seen
            return Check(self.name, "error", f"{type(error).__name__}: {_first_line(error)}")
        return Check(self.name, seen.status, seen.evidence, seen.detail)


def rule(
    name: str, *, tests: str, claims: str, threshold: str
) -> Callable[[Callable[[Subject], Seen]], Rule[Subject]]:
    """Makes the decorated function a `Rule`."""

    def make(look: Callable[[Subject], Seen]) -> Rule[Subject]:
        return Rule(name, tests, claims, threshold, look)

    return make


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:300] if text else "no message"
