"""A declaration as TOML, to be read and to be run again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SHORT = 72  # a table that fits in so many characters stands on one line


def as_toml(plain: Mapping[str, Any]) -> str:
    """The declaration, values first, then its tables; what is None is left out, as TOML has no such value."""
    return "\n".join(_section(plain, ())).strip() + "\n"


def compact(value: Any) -> str:
    """A value on one line; a part is its name with what was set of it."""
    if isinstance(value, Mapping) and isinstance(value.get("part"), str):
        fields = ", ".join(f"{k} {compact(v)}" for k, v in value.items() if k != "part" and v is not None)
        return f"{value['part']} ({fields})" if fields else value["part"]
    if isinstance(value, str):
        return value
    return "none" if value is None else _value(value)


def _section(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    simple, tables, lists = [], [], []
    for key, value in table.items():
        if value is None:
            continue
        if isinstance(value, Mapping) and not _fits(key, value):
            tables.append((key, value))
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            lists.append((key, value))
        else:
            simple.append(f"{_key(key)} = {_value(value)}")
    lines = list(simple)
    for key, value in tables:
        inner = _section(value, (*path, key))
        # A table that holds nothing but tables needs no heading of its own.
        heading = [f"[{_dotted((*path, key))}]"] if not inner or inner[0] else []
        lines += ["", *heading, *inner] if heading else inner
    for key, items in lists:
        for item in items:
            lines += ["", f"[[{_dotted((*path, key))}]]", *_section(item, (*path, key))]
    return lines


def _fits(key: str, table: Mapping[str, Any]) -> bool:
    flat = not any(isinstance(v, Mapping) and "part" not in v for v in table.values())
    return "part" in table and flat and len(key) + len(_value(table)) < _SHORT


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(map(_key, path))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items() if v is not None)}}}"
    if isinstance(value, list | tuple):
        shown = [_value(item) for item in value if item is not None]
        line = f"[{', '.join(shown)}]"
        return line if len(line) <= _SHORT else "[\n" + "".join(f"    {item},\n" for item in shown) + "]"
    return str(value)


def _string(text: str) -> str:
    """JSON's escapes are TOML's too, but for the delete character, which JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
