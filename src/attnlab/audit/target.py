"""From what a user names to what is audited."""

from __future__ import annotations

import inspect
from typing import Any

from attnlab.audit import operators
from attnlab.errors import TargetError, unknown
from attnlab.record import Audit
from attnlab.userfile import load_from_file, splits_into_file_and_name


def audits_of(target: Any, *, against: Any, trust_remote_code: bool) -> list[Audit]:
    """The audits of one target; usually one."""
    if not isinstance(target, str):
        return [audit_object(target, _name_of(target), against)]
    if splits_into_file_and_name(target):
        return [audit_object(load_from_file(target), target, against)]
    raise TargetError(unknown("target", target, _known_kinds()))


def audit_object(thing: Any, name: str, against: Any = None) -> Audit:
    """The audit of a Python object, by what it is."""
    if isinstance(thing, type):
        thing = _made(thing, name)
    if not callable(thing):
        raise TargetError(f"{name} is a {type(thing).__name__}: a function, a part or a module is audited")
    operator = operators.operator_from(thing, name)
    return Audit(name, tuple(rule(operator) for rule in operators.RULES))


def _made(cls: type, name: str) -> Any:
    try:
        needed = [p for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
    except ValueError:
        needed = []
    needed = [p for p in needed if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if needed:
        wants = ", ".join(p.name for p in needed)
        raise TargetError(
            f"{name} is a class that needs {wants} to be made: give an instance, or a function that makes one"
        )
    return cls()


def _name_of(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", None) or type(thing).__qualname__)


def _known_kinds() -> list[str]:
    return ["file.py:name", "transformers:ClassName", "transformers:all", "hf:directory-or-name"]
