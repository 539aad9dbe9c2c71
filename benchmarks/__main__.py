"""`make bench`: every benchmark, or those named; prints the table and writes benchmarks/results.json."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

BENCHMARKS = ("training", "parts")
RESULTS = Path(__file__).with_name("results.json")


def main(names: list[str]) -> None:
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    table = Table("what", "ratio", "peer", "ours")
    for name in names or BENCHMARKS:
        rows = [{"benchmark": name, **row} for row in importlib.import_module(f"benchmarks.{name}").main()]
        kept = [row for row in kept if row.get("benchmark") != name] + rows
        for row in rows:
            table.add_row(str(row["name"]), str(row["ratio"]), f"{row['peer']:,}", f"{row['ours']:,}")
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    Console(width=160).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
