"""Auditing: every target is resolved, every rule of its kind looks at it, and what it saw is kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attnlab.audit.randomness import borrowed
from attnlab.audit.rule import Rule
from attnlab.audit.target import audits_of
from attnlab.errors import RequestError
from attnlab.record import Audit, Check

NOT_LOADED = "load"  # the one check of a target that never came to be looked at


def run_audit(*targets: Any, against: Any = None, trust_remote_code: bool = False) -> list[Audit]:
    """One audit per target: a Python object (function, part, module, model) or a target as a string.

    A string is `file.py:name`, a built-in's name, `transformers:ClassName`, `transformers:all` or
    `hf:directory-or-name`. `against` names a built-in (or is a function) to compare an operator with.
    A target that cannot be loaded is reported as such, beside the audits of the others.
    """
    if not targets:
        raise RequestError("nothing to audit: name at least one target")
    audits: list[Audit] = []
    for target in targets:
        with borrowed():
            try:
                audits += audits_of(target, against=against, trust_remote_code=trust_remote_code)
            except RequestError as error:
                name = (
                    target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
                )
                audits.append(Audit(str(name), (Check(NOT_LOADED, "error", str(error)),)))
    return audits


def exit_code(audits: Iterable[Audit]) -> int:
    """0: nothing found; 1: something was; 2: a target could not be loaded or called."""
    audits = list(audits)
    if any(
        check.name == NOT_LOADED and check.status == "error" for audit in audits for check in audit.checks
    ):
        return 2
    return 0 if all(audit.passed for audit in audits) else 1


def all_rules() -> dict[str, tuple[Rule[Any], ...]]:
    """Every rule, by what it looks at."""
    from attnlab.audit import classifiers, models, operators, study

    return {
        "operator": (*operators.RULES, operators.against),
        "model": models.RULES,
        "classifier": classifiers.RULES,
        "loss": models.LOSS_RULES,
        "study": study.RULES,
    }
