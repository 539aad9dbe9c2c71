"""The work on one cell, wherever it happens: in this process, in a worker, on another machine."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, Protocol

from attnlab.record import RunResult
from attnlab.spec import fingerprint
from attnlab.study.curve import Curve
from attnlab.study.kind import Bench, Setup
from attnlab.study.store import Cell, Store, describe
from attnlab.study.study import Study
from attnlab.training import Interrupted
from attnlab.training.checkpoint import previous
from attnlab.wholefile import write_json

Tell = Callable[[str, Mapping[str, Any]], None]  # (event, what about it)
Outcome = Literal["done", "busy", "interrupted"]
SAVE_SECONDS = 20.0  # between two checkpoints of a run: what a power cut may cost
BEAT_SECONDS = 5.0  # between two signs of life


class Wish(Protocol):
    """Whether someone wishes that the work stops, at a checkpoint."""

    @property
    def to_stop(self) -> bool:
        """Asked after every step."""


class Signals:
    """The wish of a person or a process of this machine: from Ctrl-C or a request to terminate, so that a run
    can leave a checkpoint first; or because the process that gave the work is gone, and a new one may soon be
    at it."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._parent = os.getppid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._asked.set())

    @property
    def to_stop(self) -> bool:
        return self._asked.is_set() or os.getppid() != self._parent


class Watcher:
    """Observes a run for its store: keeps the curve, tells of progress, says when to save and to stop."""

    def __init__(self, curve: Curve, tell: Tell, wish: Wish, save_seconds: float) -> None:
        self.curve, self.tell, self.wish, self.save_seconds = curve, tell, wish, save_seconds
        self._saved = self._told = time.monotonic()

    def begin(self, step: int) -> None:
        self.curve.begin(step)
        self._saved = time.monotonic()

    def row(self, row: Mapping[str, Any]) -> None:
        self.curve.add(row)
        self.tell("row", row)

    def note(self, text: str) -> None:
        self.tell("note", {"text": text})

    def aside(self, name: str) -> Watcher:
        """A watcher of a training that comes before: with a curve of its own, and told of all the same."""
        return Watcher(
            Curve(self.curve.path.with_name(f"{name}.jsonl")), self.tell, self.wish, self.save_seconds
        )

    def should_save(self) -> bool:
        now = time.monotonic()
        due = now - self._saved >= self.save_seconds
        self._saved = now if due else self._saved
        return due

    def should_stop(self) -> bool:
        now = time.monotonic()
        if now - self._told >= BEAT_SECONDS:
            self._told = now
            self.tell("beat", {})
        return self.wish.to_stop


class Workplace:
    """One study's benches, each prepared when first needed and kept."""

    def __init__(
        self,
        store: Store,
        study: Study,
        save_seconds: float = SAVE_SECONDS,
        begins: Callable[[Cell], None] = lambda cell: None,
    ) -> None:
        self.store, self.study, self.save_seconds = store, study, save_seconds
        self.begins = begins  # who is told of a cell that is ours and not done

    @lru_cache(maxsize=4)  # noqa: B019 - a workplace lives as long as its process works on the study
    def bench(self, arm: str) -> Bench:
        return self.setup(arm).prepare(self.study.base)

    def setup(self, arm: str) -> Setup:
        """An arm's set-up as it is run here: as on the machine on which the study began."""
        return self.study.setup_of(arm).settled(self.store.header.get("environment", {}))

    def work_on(self, cell: Cell, tell: Tell, wish: Wish) -> Outcome:
        """Run a cell to its end, unless it is done, another process has it, or we are asked to stop.

        Whatever goes wrong with the run becomes its result: the study goes on without it.
        """
        with self.store.claimed(cell) as ours:
            if not ours:
                return "busy"
            if self.store.result(cell) is not None:
                return "done"
            folder = self.store.folder(cell)
            setup = self.setup(cell.arm)
            spec = {
                "arm": cell.arm,
                "seed": cell.seed,
                "setup": setup.plain(),
                "fingerprint": fingerprint(setup.plain()),
            }
            write_json(folder / "spec.json", spec)
            watcher = Watcher(Curve(folder / "metrics.jsonl"), tell, wish, self.save_seconds)
            self.begins(cell)
            try:
                result = self.bench(cell.arm).run(cell.arm, cell.seed, folder, watcher)
            except Interrupted:
                return "interrupted"
            except Exception as error:  # a part of the user's own may raise anything
                result = RunResult(cell.arm, cell.seed, "failed", reason=describe(error))
            self.store.write_result(result)
            # Whatever is still to be done with the run, its last checkpoint will do.
            previous(folder / "checkpoint.safetensors").unlink(missing_ok=True)
            return "done"
