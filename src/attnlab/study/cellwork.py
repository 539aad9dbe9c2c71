"""The work on one cell, wherever it happens: in this process, in a worker, on another machine."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

from attnlab.errors import AttnlabError
from attnlab.record import RunResult
from attnlab.spec import fingerprint
from attnlab.study.curve import Curve
from attnlab.study.kind import Bench
from attnlab.study.store import Cell, Store, describe
from attnlab.study.study import Study
from attnlab.training import Interrupted
from attnlab.wholefile import write_json

Tell = Callable[[str, Mapping[str, Any]], None]  # (event, what about it)
Outcome = Literal["done", "busy", "interrupted"]


class Watcher:
    """Observes a run for its store: keeps the curve, tells of progress, passes on the wish to stop."""

    def __init__(self, curve: Curve, tell: Tell, stop: threading.Event) -> None:
        self.curve, self.tell, self.stop = curve, tell, stop
        self._parent = os.getppid()

    def begin(self, step: int) -> None:
        self.curve.begin(step)

    def row(self, row: Mapping[str, Any]) -> None:
        self.curve.add(row)
        self.tell("row", row)

    def note(self, text: str) -> None:
        self.tell("note", {"text": text})

    def should_stop(self) -> bool:
        # A worker whose parent is gone must not go on writing where a new one may already be at work.
        return self.stop.is_set() or os.getppid() != self._parent


class Workplace:
    """One study's benches, each prepared when first needed and kept."""

    def __init__(self, store: Store, study: Study) -> None:
        self.store, self.study = store, study

    @lru_cache(maxsize=4)  # noqa: B019 - a workplace lives as long as its process works on the study
    def bench(self, arm: str) -> Bench:
        return self.study.setup_of(arm).prepare(self.study.base)

    def work_on(self, cell: Cell, tell: Tell, stop: threading.Event) -> Outcome:
        """Run a cell to its end, unless it is done, another process has it, or we are asked to stop.

        Whatever goes wrong with the run becomes its result: the study goes on without it.
        """
        with self.store.claimed(cell) as ours:
            if not ours:
                return "busy"
            if self.store.result(cell) is not None:
                return "done"
            folder = self.store.folder(cell)
            setup = self.study.setup_of(cell.arm)
            spec = {
                "arm": cell.arm,
                "seed": cell.seed,
                "setup": setup.plain(),
                "fingerprint": fingerprint(setup.plain()),
            }
            write_json(folder / "spec.json", spec)
            watcher = Watcher(Curve(folder / "metrics.jsonl"), tell, stop)
            try:
                result = self.bench(cell.arm).run(cell.arm, cell.seed, folder, watcher)
            except Interrupted:
                return "interrupted"
            except (AttnlabError, ArithmeticError, MemoryError, RuntimeError, TypeError, ValueError) as error:
                result = RunResult(cell.arm, cell.seed, "failed", reason=describe(error))
            self.store.write_result(result)
            return "done"


def stop_on_signals() -> threading.Event:
    """An event that Ctrl-C or a request to terminate sets, so that a run can leave a checkpoint first."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop
