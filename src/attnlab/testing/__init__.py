"""Checks we ship: what our own parts are tested with, to be filled with a part of yours."""

from __future__ import annotations

from importlib import import_module

_WHERE = {"Case": "parts", "cases_for": "parts", "assert_sound": "audits"}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
