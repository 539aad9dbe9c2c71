"""Changes laid over a set-up: what an arm says, `--set`, and a trial of a search."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from attnlab.errors import DeclarationError, Problem, unknown
from attnlab.spec import Plain, merge, validate
from attnlab.study.kind import Setup

S = TypeVar("S", bound=Setup)

DEEPEST = 20  # levels of tables in a declaration; the deepest part needs five


def changed(setup: S, changes: Mapping[str, Any], base: Path | None) -> S:
    """A set-up with an arm's changes laid over it."""
    plain: Any = setup.plain()
    for key, value in changes.items():
        plain = merge(plain, written_out(type(setup), key, value))
    return validate(type(setup), plain, source="the arm", base=base)


def written_out(kind: type[Setup], key: str, value: Any) -> Plain:
    """`a.b` = value as tables within tables, the first name in full where it is a shorthand."""
    first, *rest = key.split(".")
    valid = [*kind.model_fields, *kind.shorthands]
    if first not in valid:
        raise DeclarationError([Problem("", unknown("section or shorthand", first, valid))])
    if len(rest) > DEEPEST:
        raise DeclarationError([Problem("", f"{first!r} has nothing {len(rest)} levels below it")])
    for place in reversed([*kind.shorthands.get(first, first).split("."), *rest]):
        value = {place: value}
    return value
