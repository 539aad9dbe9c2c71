"""A study of ten thousand cells, without the training: what planning, keeping and reporting so many costs.

    python -m benchmarks.many_cells [ARMS] [SEEDS] [DIRECTORY]

The executor writes results and curves that are made up, of the size that real ones have; everything else is
the product's own: the plan, the store, results.json, the report, the page's list. It is overhead that is
measured, without a peer. In a DIRECTORY the study is kept, to look at.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnlab import report
from attnlab.record import Check, Items, RunResult
from attnlab.study import Arm, LanguageModel, Study, run
from attnlab.study.executors import Listener
from attnlab.study.store import Cell, Store
from attnlab.training import Training
from attnlab.web.progress import progress
from attnlab.web.shelf import Shelf

DOCUMENTS, STEPS = 60, 200
TEXT = "We have to see to it that what the people of this country have begun is carried on . " * 3


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
            folder, result = store.folder(cell), _made_up(cell)
            store.write_result(result)
            (folder / "spec.json").write_text(json.dumps({"arm": cell.arm, "seed": cell.seed, "setup": {}}))
            (folder / "metrics.jsonl").write_text(_curve(result.metrics["test_loss"]))
            listener.ended(cell)
        gc.collect()
        self.memory = before, _megabytes()


def _made_up(cell: Cell) -> RunResult:
    draw = np.random.default_rng([cell.seed, *cell.arm.encode()])
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
    loss = float(losses.mean())
    metrics = {"test_loss": loss, "test_perplexity": float(np.exp(loss)), "train_loss": loss - 0.1}
    said = f"fed only the prefix, the perplexity is {np.exp(loss):.2f} as well"
    return RunResult(
        cell.arm,
        cell.seed,
        "ok",
        metrics,
        {"test": items},
        checks=(Check("prefix-only", "pass", said),),
        sentences=({"text": TEXT, "tokens": 60, "unknown": 1, "loss": loss, "perplexity": np.exp(loss)},),
        samples=(TEXT,) * 3,
        exhibits={"made up": {"texts": [TEXT] * 30}},  # about as much as a real run has to show
        seconds=60.0 + loss,
        tokens_per_second=2e4,
        steps=STEPS,
    )


def _curve(end: float) -> str:
    """The rows of a run that is logged at every step, each as long as a real one."""
    rows = []
    for step in range(1, STEPS + 1):
        loss = f"{end + 3.9 * np.exp(-step / 40):.12f}"
        rows.append(
            f'{{"step": {step}, "loss": {loss}, "learning_rate": 0.00014285714285714284, "of": {STEPS}, '
            f'"tokens": {step * 900}, "seconds": {step * 0.31:.12f}}}'
        )
        if step % 20 == 0:
            rows.append(f'{{"step": {step}, "train_loss": {loss}, "dev_loss": {loss}}}')
    return "\n".join(rows) + "\n"


def _megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main(arms: int = 10, seeds: int = 1000, directory: str | None = None) -> None:
    study = Study(
        name="many-cells",
        question="What does it cost to keep ten thousand runs?",
        setup=LanguageModel(training=Training(steps=STEPS)),
        arms=[Arm(name=f"arm {k}", training={"steps": STEPS + k}) for k in range(arms)],
        seeds=seeds,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(directory or folder) / "study"
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
        print(f"peak memory: {_peak():,.0f} MB")
        with _Timed("the report") as timed:
            page = report.write(path)
        print(f"{timed}, {page.stat().st_size / 1e6:.1f} MB; peak memory: {_peak():,.0f} MB")
        with _Timed("the study in the page's list") as timed:
            card = Shelf(path.parent).card(path.name)
        print(timed)
        with _Timed("its runs on its page") as timed:
            progress(path, card.arms, card.seeds)
        print(timed)


class _Timed:
    """Seconds of the clock and of the processor, where other work may be going on."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> _Timed:
        self.clock, self.processor = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.clock, self.processor = time.perf_counter() - self.clock, time.process_time() - self.processor

    def __str__(self) -> str:
        return f"{self.what}: {self.clock:.1f} s ({self.processor:.1f} s of the processor)"


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:3]), *sys.argv[3:4])
