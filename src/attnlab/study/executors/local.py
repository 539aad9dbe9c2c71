"""On this machine: a worker process for every core, each with one thread.

Small models gain little from a second thread (the number of operations is what costs), but two processes
do two runs in the time of one.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.errors import WorkError
from attnlab.record import RunResult
from attnlab.study.cellwork import SAVE_SECONDS
from attnlab.study.environment import cores
from attnlab.study.executors.executor import Listener
from attnlab.study.executors.turn import Turn
from attnlab.study.store import Cell, Store

_TO_STOP = 30.0  # seconds that workers get to write their checkpoints when asked to stop
_TO_TELL = 2.0  # seconds that a worker that hangs gets to write down where
PATIENCE = 1800.0  # seconds without a sign of life after which a worker counts as hanging
_LOOK = 10.0  # seconds of silence from all of them before someone looks whether one hangs
_BUSY_WAIT = 2.0  # seconds before a cell that another process holds is tried again
# Memory that was freed stays with a worker. Models of transformers make every gradient anew, and the C
# library gives arrays of that size back to the system at once: fetching them again was a tenth of the
# processor time of tuning a 22 M encoder (0.67 against 0.61 s a step). Other C libraries do not read these.
_KEEPS_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1)}


class Local:
    """Worker processes on this machine."""

    def __init__(
        self, workers: int | None = None, save_seconds: float = SAVE_SECONDS, patience: float = PATIENCE
    ) -> None:
        self.workers, self.save_seconds, self.patience = workers, save_seconds, patience

    def plan(self, cells: int, threads: int | None = None) -> dict[str, Any]:
        """One worker per core; where there are fewer cells than cores, they share the cores as threads."""
        workers = self.workers or max(1, min(cores() // (threads or 1), cells))
        return {"executor": "local", "workers": workers, "threads": threads or max(1, cores() // workers)}

    def says(self, plan: Mapping[str, Any]) -> str:
        """What was chosen, and why."""
        workers, threads = int(plan["workers"]), int(plan["threads"])
        chosen = f"{workers} process{'es' * (workers > 1)} × {threads} thread{'s' * (threads > 1)}"
        if self.workers is not None:
            return f"{chosen}: so many processes were asked for"
        if threads == 1:
            return f"{chosen}: a process of its own for every core, since small models gain little by threads"
        return f"{chosen}: there are more cores than runs"

    def run(self, store: Store, cells: Sequence[Cell], plan: Mapping[str, Any], listener: Listener) -> None:
        if cells:
            _Crew(store, cells, plan, self, listener).work()


Inbox = queue.Queue[tuple["_Worker", dict[str, Any]]]


class _Worker:
    """A process and the cell it is at."""

    def __init__(self, log: Path, threads: int, arguments: Sequence[str], inbox: Inbox) -> None:
        environment = {**_KEEPS_MEMORY, **os.environ, "OMP_NUM_THREADS": str(threads)}
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "attnlab.study.worker", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                text=True,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C reaches us; we pass it on when everything is ready for it
            )
        self.cell: Cell | None = None
        self.heard = time.monotonic()  # when it last gave a sign of life
        self.hung = False
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()

    def _listen(self, inbox: Inbox) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as events:
            for line in events:
                inbox.put((self, json.loads(line)))
        inbox.put((self, {"event": "gone", "code": self.process.wait()}))

    def give(self, cell: Cell) -> None:
        assert self.process.stdin is not None
        self.cell, self.heard = cell, time.monotonic()
        try:
            self.process.stdin.write(json.dumps({"arm": cell.arm, "seed": cell.seed}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:  # it is gone, and will be reported so
            return

    def end_hanging(self) -> None:
        """Have it write down where it hangs, and end it."""
        self.hung = True
        self.process.send_signal(signal.SIGUSR1)
        time.sleep(_TO_TELL)
        self.process.kill()

    def dismiss(self) -> None:
        """No more work: it ends by itself."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it is gone already, with a line still on its way
            self.process.stdin.close()


class _Crew:
    """Hands out cells until none is left."""

    def __init__(
        self,
        store: Store,
        cells: Sequence[Cell],
        plan: Mapping[str, Any],
        terms: Local,
        listener: Listener,
    ) -> None:
        self.store, self.listener, self.patience = store, listener, terms.patience
        self.open = Turn(cells)
        self.size = min(int(plan["workers"]), len(cells))
        self.threads = int(plan["threads"])
        self.arguments = [str(store.path), str(self.threads), str(terms.save_seconds)]
        self.log = store.path / "workers.log"
        self.inbox: Inbox = queue.Queue()
        self.workers: set[_Worker] = set()

    def work(self) -> None:
        try:
            for _ in range(self.size):
                self._hire()
            while self.workers:
                with contextlib.suppress(queue.Empty):
                    worker, event = self.inbox.get(timeout=min(self.patience, _LOOK))
                    worker.heard = time.monotonic()
                    self._take(worker, event)
                self._end_hanging()
        except BaseException:
            self._stop()
            raise

    def _hire(self) -> None:
        try:
            self.workers.add(_Worker(self.log, self.threads, self.arguments, self.inbox))
        except OSError as error:
            raise WorkError(f"a worker process could not be started: {error}") from None

    def _take(self, worker: _Worker, event: dict[str, Any]) -> None:
        kind, cell = event.pop("event"), worker.cell
        if kind == "row" and cell:
            self.listener.row(cell, event)
        elif kind == "note":
            self.listener.note(f"{cell}: {event['text']}" if cell else event["text"])
        elif kind == "broken":
            raise WorkError(event["reason"])
        elif kind == "gone":
            self._gone(worker, event["code"])
        elif kind == "ready":
            self._give_next(worker)
        elif kind == "ended" and cell:
            self._ended(cell, event["outcome"])
            self._give_next(worker)

    def _give_next(self, worker: _Worker) -> None:
        worker.cell = None
        if self.open:
            worker.give(self.open.next())
        else:
            worker.dismiss()

    def _ended(self, cell: Cell, outcome: str) -> None:
        if outcome == "busy":
            self.listener.note(f"{cell}: another process is at it; waiting for it")
            time.sleep(_BUSY_WAIT)
            self.open.again(cell)
        elif outcome == "interrupted":  # someone asked the worker to stop, and means all of us
            raise KeyboardInterrupt
        else:
            self.open.ended(cell)
            self.listener.ended(cell)

    def _gone(self, worker: _Worker, code: int) -> None:
        self.workers.discard(worker)
        worker.dismiss()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        hint = " (often: out of memory)" if code == -signal.SIGKILL else ""
        cell, worker.cell = worker.cell, None
        if cell is not None:
            reason = f"the process that worked on it ended with {how}{hint}; see {self.log}"
            if worker.hung:
                reason = f"it hung: no sign of life for {self.patience:,.0f} seconds; {self.log} says where"
            self.store.write_result(RunResult(cell.arm, cell.seed, "failed", reason=reason))
            self.open.ended(cell)
            self.listener.ended(cell)
            if self.open:
                self._hire()
        elif self.open:  # it never asked for work, and a new one would not either
            why = _last_words(self.log)
            raise WorkError(f"a worker process ended with {how}{hint} before it began{why}; see {self.log}")

    def _end_hanging(self) -> None:
        for worker in self.workers:
            if worker.cell and not worker.hung and time.monotonic() - worker.heard > self.patience:
                worker.end_hanging()

    def _stop(self) -> None:
        """Ask every worker to leave a checkpoint; end those that do not."""
        for worker in self.workers:
            worker.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _TO_STOP
        for worker in self.workers:
            try:
                worker.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()


def _last_words(log: Path) -> str:
    """The last line that a worker left, if any: usually why it ended."""
    try:
        lines = log.read_text("utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return f": {said[-1]}" if said else ""
