"""A study of ten thousand cells, without the training: what planning, keeping and reporting so many costs.

    python -m benchmarks.many_cells [ARMS] [SEEDS]

The executor writes results that are made up, of the size that real ones have; everything else is the
product's own: the plan, the store, results.json, the report. It is overhead that is measured, without a peer.
"""

from __future__ import annotations

import gc
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnlab import report
from attnlab.record import Items, RunResult
from attnlab.study import Arm, LanguageModel, Study, run
from attnlab.study.executors import Listener
from attnlab.study.store import Cell, Store
from attnlab.training import Training

DOCUMENTS = 60


class Pretending:
    """Writes a result for every cell it is given, at once."""

    def __init__(self) -> None:
        self.given = time.perf_counter()
        self.cells = 0
        self.memory = (0.0, 0.0)  # of this process, before the first cell and after the last

    def plan(self, cells: int, threads: int | None = None) -> dict[str, Any]:
        return {"executor": "pretending", "threads": 1}

    def run(self, store: Store, cells: Sequence[Cell], plan: Mapping[str, Any], listener: Listener) -> None:
        self.given, self.cells = time.perf_counter(), len(cells)
        gc.collect()
        before = _megabytes()
        for cell in cells:
            store.write_result(_made_up(cell))
            listener.ended(cell)
        gc.collect()
        self.memory = before, _megabytes()


def _made_up(cell: Cell) -> RunResult:
    draw = np.random.default_rng([cell.seed, len(cell.arm)])
    losses = 5 + draw.normal(0, 0.02) + draw.normal(0, 0.05, DOCUMENTS)
    items = Items(
        tuple(f"document {k}" for k in range(DOCUMENTS)),
        {
            "loss": tuple(losses.tolist()),
            "tokens": (100.0,) * DOCUMENTS,
            "bytes": (500.0,) * DOCUMENTS,
            "bits_per_byte": tuple((losses / 5).tolist()),
        },
    )
    metrics = {"test_loss": float(losses.mean()), "train_loss": float(losses.mean()) - 0.1}
    return RunResult(
        cell.arm, cell.seed, "ok", metrics, {"test": items}, seconds=60.0, tokens_per_second=2e4, steps=200
    )


def _megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main(arms: int = 10, seeds: int = 1000) -> None:
    study = Study(
        name="many-cells",
        question="What does it cost to keep ten thousand runs?",
        setup=LanguageModel(training=Training(steps=200)),
        arms=[Arm(name=f"arm {k}", training={"steps": 200 + k}) for k in range(arms)],
        seeds=seeds,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study"
        run(study.with_seeds(1), out=path, on=Pretending())  # the audits, made once for a declaration
        pretending = Pretending()
        began = time.perf_counter()
        run(study, out=path, on=pretending)
        planned = pretending.given - began
        print(f"{pretending.cells:,} cells of {arms * seeds:,} planned in {planned:.1f} s")
        before, after = pretending.memory
        print(f"memory: {before:,.0f} MB before the first of them, {after:,.0f} MB after the last")
        began = time.perf_counter()
        pretending = Pretending()
        run(study, out=path, on=pretending)
        print(f"all done: seen in {pretending.given - began:.1f} s", end=", ")
        print(f"judged in {time.perf_counter() - pretending.given:.1f} s", flush=True)
        began = time.perf_counter()
        page = report.write(path)
        print(f"the report: {time.perf_counter() - began:.1f} s, {page.stat().st_size / 1e6:.1f} MB")
        print(f"peak memory: {_peak():,.0f} MB")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:]))
