"""`make bench`: every benchmark, or those named; prints the table, writes benchmarks/results.json and
docs/performance.md."""

from __future__ import annotations

import importlib
import json
import sys

from rich.console import Console
from rich.table import Table

from attnlab.study.environment import environment
from attnlab.training.precision import multiplies_bfloat16
from benchmarks import performance
from benchmarks.performance import RESULTS

BENCHMARKS = ("training", "generation", "studies", "startup", "growth", "parts", "tuning")


def main(names: list[str]) -> None:
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    machine = _machine()
    table = Table("what", "ratio", "rounds", "peer", "ours", "wanted")
    for name in names or BENCHMARKS:
        measured = importlib.import_module(f"benchmarks.{name}").main()
        rows = [{"benchmark": name, **row, "machine": machine} for row in measured]
        kept = [row for row in kept if row.get("benchmark") != name] + rows
        for row in rows:
            between = " to ".join(map(str, row.get("spread", ())))
            cells = (row["name"], row["ratio"], between, f"{row['peer']:,}", f"{row['ours']:,}")
            table.add_row(*map(str, cells), str(row.get("target", "")))
        RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        performance.write()
    Console(width=200).print(table)


def _machine() -> str:
    here = environment()
    bfloat16 = "with" if multiplies_bfloat16() else "without"
    return (
        f"{here['cpu']}, {here['cores']} cores, {bfloat16} bfloat16 products; Python {here['python']}, "
        f"torch {here['torch']}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
