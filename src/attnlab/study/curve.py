"""`metrics.jsonl`: the curve of a run, a line at a time."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.errors import StoreError
from attnlab.wholefile import write_whole


class Curve:
    """Appends rows as they come; when a run goes on from step n, what lay beyond n is dropped first."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, step: int) -> None:
        kept = [row for row in read_curve(self.path) if row["step"] <= step]
        write_whole(self.path, "".join(_line(row) for row in kept))

    def add(self, row: Mapping[str, Any]) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(row))
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be written ({error.strerror})") from None


def _line(row: Mapping[str, Any]) -> str:
    """A row in JSON, which has no word for a number that is none."""
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
    return json.dumps(finite, allow_nan=False) + "\n"


def read_curve(path: Path) -> list[Mapping[str, Any]]:
    """The rows of a curve. A line that was cut off when its process died ends it."""
    rows: list[Mapping[str, Any]] = []
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError:
        return rows
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            break
        if not isinstance(row, dict) or "step" not in row:
            break
        rows.append(row)
    return rows
