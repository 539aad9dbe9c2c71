"""docs/performance.md from benchmarks/results.json: no figure in it is typed by hand.

python -m benchmarks.performance
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "performance.md"
TITLES = {
    "training": "One training run",
    "studies": "A study",
    "startup": "From a command to its work",
    "growth": "How cost grows",
    "parts": "Parts",
    "generation": "Continuing a text",
    "tuning": "Fine-tuning",
}
HEAD = """# Performance

Written by `make bench`, which measures all of it side by side and puts every figure here. A ratio is the
median over rounds in which both sides take turns; beside it stand the smallest and the largest round. Times
of another machine are other times: what carries over is the ratios, as far as the processors are alike.

Where there is no C++ compiler the head's loss runs in PyTorch: in bfloat16 if the processor has the products
for it, in fp32 elsewhere. Both are measured below. Nothing was measured on a graphics card.
"""
PICTURED = ("tokens", "vocabulary", "width", "length", "seeds")


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """The whole page."""
    parts = [HEAD]
    names = [*TITLES, *sorted({str(row["benchmark"]) for row in rows} - set(TITLES))]
    for name in names:
        own = [row for row in rows if row["benchmark"] == name]
        if not own:
            continue
        parts.append(f"## {TITLES.get(name, name)}\n\nOn {_machines(own)}.\n")
        parts.append(_table(own))
        if name == "growth":
            pictures = [f"![{axis}](performance/{axis}.svg)" for axis in PICTURED]
            parts.append("\n".join(pictures) + "\n")
    return "\n".join(parts)


def _machines(rows: Sequence[Mapping[str, Any]]) -> str:
    return "; ".join(dict.fromkeys(str(row.get("machine", "a machine not noted")) for row in rows))


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| what | ratio | rounds | peer | ours | wanted |", "|---|---|---|---|---|---|"]
    for row in rows:
        slope = f" (slope {row['slope']})" if "slope" in row else ""
        low, high = row.get("spread", (None, None))
        between = f"{low} to {high}" if low is not None else ""
        cells = (row["name"], f"{row['ratio']}{slope}", between, f"{row['peer']:,}", f"{row['ours']:,}")
        lines.append(f"| {' | '.join(map(str, cells))} | {row.get('target', '')} |")
    return "\n".join(lines) + "\n"


def write() -> None:
    PAGE.write_text(page(json.loads(RESULTS.read_text())), encoding="utf-8")


if __name__ == "__main__":
    write()
