"""Several processes for one run, as `torchrun` starts them:

    torchrun --nproc-per-node 2 -m attnlab run STUDY

One run after another, each trained by all processes together (`training/team.py`). The first process is the
study's: it plans, measures, writes files and decides; the others follow it from run to run.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from attnlab.errors import RequestError, WorkError
from attnlab.study.cellwork import SAVE_SECONDS, Signals, Workplace
from attnlab.study.environment import cores
from attnlab.study.executors.executor import Listener
from attnlab.study.store import Cell, Store
from attnlab.training import Interrupted
from attnlab.training.team import Elsewhere

_PATIENCE = datetime.timedelta(hours=6)  # how long the others wait while the first measures


def started() -> bool:
    """Whether torchrun started this process, beside others."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


@dataclass(frozen=True)
class _Together:
    """A run that every process takes part in."""

    directory: str
    arm: str
    seed: int
    threads: int


class Ranks:
    """The executor of the first process."""

    def __init__(self, save_seconds: float = SAVE_SECONDS) -> None:
        self.save_seconds = save_seconds

    def plan(self, cells: int, threads: int | None = None) -> dict[str, Any]:
        here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        return {
            "executor": "torchrun",
            "processes": int(os.environ["WORLD_SIZE"]),
            "threads": threads or max(1, cores() // here),
        }

    def run(self, store: Store, cells: Sequence[Cell], plan: Mapping[str, Any], listener: Listener) -> None:
        study = store.study()
        if not study.setup.trains_once:
            raise RequestError(
                f"a run of the kind {study.setup.kind!r} may be more than one training, or write texts, and "
                "torchrun's processes share one training only: run it without torchrun"
            )
        threads = int(plan["threads"])
        torch.set_num_threads(threads)

        def together(cell: Cell) -> None:
            _tell(_Together(str(store.path.resolve()), cell.arm, cell.seed, threads))

        def tell(event: str, about: Mapping[str, Any]) -> None:
            if event == "row":
                listener.row(cell, about)
            elif event == "note":
                listener.note(f"{cell}: {about['text']}")

        workplace = Workplace(store, study, self.save_seconds, begins=together)
        wish = Signals()
        for cell in cells:
            outcome = workplace.work_on(cell, tell, wish)
            if outcome == "interrupted":
                raise KeyboardInterrupt
            if outcome == "busy":
                raise WorkError(f"{cell}: another process is at it")
            failure = store.failure(cell)
            if (
                failure is not None
            ):  # the others may be anywhere in that run: only a new start brings them back
                raise WorkError(f"{cell}: {failure}; run it again for the other runs")
            listener.ended(cell)


@contextlib.contextmanager
def leading() -> Iterator[None]:
    """In the first process: the others are there until the end of this, however it comes."""
    _join()
    try:
        yield
    finally:
        _tell(None)
        dist.destroy_process_group()


def is_follower() -> bool:
    """Whether this is a process that follows another one."""
    return started() and int(os.environ.get("RANK", "0")) > 0


def follow() -> int:
    """In any other process: take part in every run that the first begins, until it ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the first one is asked as well, and says when to stop
    _join()
    while (errand := _told()) is not None:
        torch.set_num_threads(errand.threads)
        store = Store(Path(errand.directory))
        bench = Workplace(store, store.study()).bench(errand.arm)
        folder = store.folder(Cell(errand.arm, errand.seed))
        with contextlib.suppress(Elsewhere, Interrupted):
            bench.run(errand.arm, errand.seed, folder, _Unobserved())
    dist.destroy_process_group()
    return 0


class _Unobserved:
    """The observer of a process whose first one is observed."""

    def begin(self, step: int) -> None: ...

    def row(self, row: Mapping[str, Any]) -> None: ...

    def note(self, text: str) -> None: ...

    def aside(self, name: str) -> _Unobserved:
        return self

    def should_save(self) -> bool:
        return False

    def should_stop(self) -> bool:
        return False


def _join() -> None:
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        dist.init_process_group(backend, timeout=_PATIENCE)
    except (ValueError, RuntimeError) as error:
        raise RequestError(f"the processes of torchrun did not find each other: {error}") from None


def _tell(errand: _Together | None) -> None:
    dist.broadcast_object_list([errand], src=0)


def _told() -> _Together | None:
    received: list[Any] = [None]
    dist.broadcast_object_list(received, src=0)
    errand: _Together | None = received[0]
    return errand
