"""A census: every causal language model of a library, each in a worker process that may crash or "
"hang alone."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

SECONDS_PER_CLASS = 60.0  # most take less than one; a machine at work on other things takes longer
SECONDS_TO_START = 120.0

Row = dict[str, Any]


@dataclass
class Census:
    """The table as far as it got: a row per class, with how long it took."""

    rows: list[Row] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def count(self, outcome: str) -> int:
        return sum(row["outcome"] == outcome for row in self.rows)

    @property
    def share_built(self) -> float:
        return 1 - self.count("not built") / max(len(self.rows), 1)


def take_census(
    names: Iterable[str],
    *,
    workers: int = 2,
    environment: Mapping[str, str] | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> Census:
    """Rows for all names. Interrupted, it gives back what it has, and the names it did not come to."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    names = list(names)
    for name in names:
        waiting.put(name)
    census, stop = Census(), threading.Event()

    crew = [_Worker(environment) for _ in range(max(1, workers))]

    def work(worker: _Worker) -> None:
        while not stop.is_set():
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                break
            start = time.perf_counter()
            row = worker.ask(name)
            if stop.is_set():  # the worker was stopped under its hands
                break
            row["seconds"] = round(time.perf_counter() - start, 2)
            census.rows.append(row)
            if on_row is not None:
                on_row(row)
        worker.close()

    start = time.perf_counter()
    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in crew]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
    except KeyboardInterrupt:
        stop.set()
        for worker in crew:
            worker.stop()
        for thread in threads:
            thread.join(5.0)
    census.seconds = time.perf_counter() - start
    census.rows.sort(key=lambda row: row["class"])
    seen = {row["class"] for row in census.rows}
    census.missing = [name for name in names if name not in seen]
    return census


class _Worker:
    """A process that is asked for one row at a time, and started anew when it does not answer."""

    def __init__(self, environment: Mapping[str, str] | None) -> None:
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})}
        self.process: subprocess.Popen[str] | None = None

    def ask(self, name: str) -> Row:
        if self.process is None:
            self._start()
            if not self._answer(SECONDS_TO_START):
                self.close()
                return {"class": name, "outcome": "not built", "evidence": "the worker process did not start"}
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:  # it died between two names
            self.close()
            return self.ask(name)
        answer = self._answer(SECONDS_PER_CLASS)
        if answer:
            row: Row = json.loads(answer)
            return row
        ended = self.process.poll()
        self.close()
        reason = (
            f"took more than {SECONDS_PER_CLASS:.0f} s" if ended is None else f"crashed its process ({ended})"
        )
        return {"class": name, "outcome": "not built", "evidence": reason}

    def stop(self) -> None:
        """Ends the process from another thread; the one that waits for it sees that it has ended."""
        if self.process is not None:
            self.process.kill()

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # what was still to be written goes nowhere
                        pipe.close()
            self.process = None

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attnlab.audit.census.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environment,
        )

    def _answer(self, seconds: float) -> str | None:
        """The next line, an empty text when the process ended, nothing when the time was up."""
        assert self.process is not None
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline() if ready else None
