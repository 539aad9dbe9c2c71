"""Keys and values from a file or from the command line.

A JSON or TOML file holds `keys` and `values`, rows of numbers each, and may hold `scale`. A CSV file has a
column for every number of a key, named k…, and of a value, named v…, and a row for each key. On the command
line rows are parted by semicolons: `1,0; 0,1`.
"""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.craft.scene import FOUR, Scene
from attnlab.errors import RequestError, unknown

_FIELDS = ("keys", "values", "scale")
_LARGEST = 1_000_000  # bytes; what is done by hand is smaller


def scene_from(
    file: Path | None = None, keys: str | None = None, values: str | None = None, scale: float | None = None
) -> Scene:
    """The scene of a file, of rows, or the built-in one; keys alone get values that show their weights."""
    given: dict[str, Any] = dict(_read(file)) if file is not None else {}
    if keys is not None:
        given["keys"] = rows(keys)
        if file is None and values is None:
            n = len(given["keys"])
            given["values"] = [[float(i == j) for j in range(n)] for i in range(n)]
    if values is not None:
        given["values"] = rows(values)
    if not given:
        given = {"keys": FOUR.keys, "values": FOUR.values}
    if scale is not None:
        given["scale"] = scale
    given.setdefault("keys", FOUR.keys)
    missing = [name for name in ("keys", "values") if name not in given]
    if missing:
        raise RequestError(f"{file}: {missing[0]} are missing")
    return Scene(**given)


def rows(text: str) -> list[list[float]]:
    """`1,0; 0,1` as numbers, or the file of that name: JSON rows, or a CSV file of bare numbers."""
    path = Path(text)
    if not any(mark in text for mark in ",;") and path.suffix in (".json", ".csv"):
        content = _text(path)
        if path.suffix == ".json":
            found = _parsed(path, content)
            return found if isinstance(found, list) else [found]
        text = content.strip().replace("\n", ";")
    return [numbers(row) for row in text.strip().strip(";").split(";")]


def numbers(text: str) -> list[float]:
    """`1, 0, -2` as numbers."""
    try:
        return [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise RequestError(f"{text.strip()!r} is not a row of numbers: write 0.5, 1, -2") from None


def _read(path: Path) -> Mapping[str, Any]:
    text = _text(path)
    if path.suffix == ".csv":
        return _table(path, text)
    found = _parsed(path, text)
    if not isinstance(found, dict):
        raise RequestError(f"{path}: a table with `keys` and `values` is wanted, not {type(found).__name__}")
    for name in found:
        if name not in _FIELDS:
            raise RequestError(f"{path}: {unknown('field', name, _FIELDS)}")
    if not isinstance(found.get("scale", 1.0), int | float):
        raise RequestError(f"{path}: the scale is {found['scale']!r}: a number is wanted")
    for name in ("keys", "values"):
        if not isinstance(found.get(name, []), list):
            raise RequestError(f"{path}: {name} is {found[name]!r}: rows of numbers are wanted")
    return found


def _text(path: Path) -> str:
    if path.suffix not in (".json", ".toml", ".csv"):
        raise RequestError(f"{path}: {unknown('kind of file', path.suffix, ('.csv', '.json', '.toml'))}")
    try:
        if path.stat().st_size > _LARGEST:
            raise RequestError(f"{path}: larger than {_LARGEST:,} bytes; keys for the hand are fewer")
        return path.read_text("utf-8")
    except OSError as error:
        raise RequestError(f"{path}: cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError as error:
        raise RequestError(f"{path}: not a text file (byte {error.start} is no UTF-8)") from None


def _parsed(path: Path, text: str) -> Any:
    try:
        return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{path}: not readable as {path.suffix[1:].upper()}: {error}") from None


def _table(path: Path, text: str) -> Mapping[str, Any]:
    reader = csv.DictReader(text.splitlines())
    names = [name.strip() for name in reader.fieldnames or ()]
    columns = {kind: [i for i, name in enumerate(names) if name.lower().startswith(kind)] for kind in "kv"}
    other = [n for i, n in enumerate(names) if i not in (*columns["k"], *columns["v"])]
    if other or not columns["k"] or not columns["v"]:
        raise RequestError(
            f"{path}: its first line names the columns, k0, k1, … for keys and v0, v1, … for values"
            + (f"; {other[0]!r} is neither" if other else "")
        )
    lines = [list(line) for line in csv.reader(text.splitlines()[1:]) if line]
    short = next((i for i, line in enumerate(lines) if len(line) != len(names)), None)
    if short is not None:
        raise RequestError(f"{path}: line {short + 2} has {len(lines[short])} columns, not {len(names)}")
    return {
        "keys": [numbers(",".join(line[i] for i in columns["k"])) for line in lines],
        "values": [numbers(",".join(line[i] for i in columns["v"])) for line in lines],
    }
