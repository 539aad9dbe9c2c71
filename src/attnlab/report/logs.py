"""What a run wrote while it trained, as lines of `metrics.jsonl`, and fewer points of it for a picture."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Entry = Mapping[str, Any]
Point = tuple[float, float]


def read_log(path: Path) -> tuple[Entry, ...]:
    """The lines by step; a line that a kill cut off is passed over, and a repeated step replaced."""
    if not path.is_file():
        return ()
    lines: dict[tuple[float, bool], Entry] = {}
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("step"), int | float):
            lines[line["step"], "loss" in line] = line
    return tuple(lines[key] for key in sorted(lines))


def series(log: Sequence[Entry], quantity: str) -> list[Point]:
    """(step, value) wherever the log has a finite value of this quantity."""
    found = [(line["step"], line.get(quantity)) for line in log]
    return [(float(s), float(v)) for s, v in found if isinstance(v, int | float) and math.isfinite(v)]


def thinned(points: Sequence[Point], most: int) -> tuple[list[Point], int]:
    """At most so many points, each the mean of equally many neighbours, and how many those are."""
    each = math.ceil(len(points) / most) if points else 1
    if each <= 1:
        return list(points), 1
    groups = [points[at : at + each] for at in range(0, len(points), each)]
    return [(statistics.fmean(s for s, _ in g), statistics.fmean(v for _, v in g)) for g in groups], each
