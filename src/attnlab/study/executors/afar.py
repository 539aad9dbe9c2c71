"""Cells given out to other machines, and taken back from those that die.

What gives out single cells (Ray, Slurm) is a `Yard`; how many are out, what is done when one is lost, and who
is told of it is the same for all of them, and stands here.
"""

from __future__ import annotations

import collections
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from attnlab.errors import WorkError
from attnlab.record import RunResult
from attnlab.study.cellwork import SAVE_SECONDS
from attnlab.study.executors.executor import Listener
from attnlab.study.executors.local import PATIENCE
from attnlab.study.executors.remote import Errand, Following, Report
from attnlab.study.executors.turn import Turn
from attnlab.study.store import Cell, Store

TRIES = 4  # times that a cell may be lost with its process or its machine before it counts as failed
_LOOK = 1.0  # seconds between two looks at what is out
_TO_STOP = 60.0  # seconds that runs get to write their checkpoints when asked to stop
_BUSY_WAIT = 2.0  # seconds before a cell that another process holds is tried again

Handle = Any  # whatever a yard knows an errand by


@dataclass(frozen=True)
class Lost:
    """An errand whose process or machine died; another one can take it up."""

    how: str


class Yard(Protocol):
    """Somewhere that errands can be sent to."""

    name: str

    def open(self, gpus: int) -> int:
        """Get ready; give back how many errands are worth having out at once."""

    def send(self, errand: Errand) -> Handle:
        """Have it run somewhere."""

    def ended(self, handles: Sequence[Handle], seconds: float) -> Mapping[Handle, Report | Lost]:
        """Those that ended, within so many seconds."""

    def end(self, handle: Handle) -> None:
        """Have its process ended, at once."""

    def close(self) -> None:
        """Nothing more will be sent."""


@dataclass
class _Out:
    """An errand that is out."""

    cell: Cell
    following: Following
    hung: bool = False


@dataclass
class Afar:
    """An executor that gives cells to a yard. The study's directory must be one that all its machines see."""

    yard: Yard
    workers: int | None = None  # errands out at once; as many as the yard has room for unless given
    threads: int = 1  # of each
    save_seconds: float = SAVE_SECONDS
    patience: float = PATIENCE
    lost: collections.Counter[Cell] = field(default_factory=collections.Counter, init=False)

    def plan(self, cells: int, threads: int | None = None) -> dict[str, Any]:
        return {"executor": self.yard.name, "threads": threads or self.threads}

    def run(self, store: Store, cells: Sequence[Cell], plan: Mapping[str, Any], listener: Listener) -> None:
        if not cells:
            return
        study = store.study()
        gpus = max(int(study.setup_of(arm.name).device == "cuda") for arm in study.arms)
        room = self.yard.open(gpus)
        try:
            _Round(self, store, int(plan["threads"]), self.workers or room, listener).work(cells)
        finally:
            self.yard.close()


class _Round:
    """All cells of one call, until every one has a result."""

    def __init__(self, terms: Afar, store: Store, threads: int, room: int, listener: Listener) -> None:
        self.terms, self.store, self.threads, self.room, self.listener = terms, store, threads, room, listener
        self.yard = terms.yard
        self.stop_file = f".stop-{uuid.uuid4().hex[:12]}"  # ours alone: others may be at the study too
        self.out: dict[Handle, _Out] = {}
        self.open = Turn([])

    def work(self, cells: Sequence[Cell]) -> None:
        self.open = Turn(cells)
        try:
            while self.open or self.out:
                while self.open and len(self.out) < self.room:
                    self._send(self.open.next())
                for handle, end in self.yard.ended(list(self.out), _LOOK).items():
                    self._take(self.out.pop(handle), end)
                self.store.look_at([out.cell for out in self.out.values()])
                for handle, out in self.out.items():
                    self._follow(handle, out)
        except BaseException:
            self._stop()
            raise

    def _send(self, cell: Cell) -> None:
        errand = Errand(
            directory=self.store.address,
            arm=cell.arm,
            seed=cell.seed,
            threads=self.threads,
            save_seconds=self.terms.save_seconds,
            stop_file=self.stop_file,
        )
        following = Following(self.store.folder(cell))
        self.out[self.yard.send(errand)] = _Out(cell, following)

    def _follow(self, handle: Handle, out: _Out) -> None:
        for row in out.following.rows():
            self.listener.row(out.cell, row)
        self._pass_on_notes(out)
        heard = out.following.heard
        if heard is not None and not out.hung and time.monotonic() - heard > self.terms.patience:
            out.hung = True
            self.yard.end(handle)

    def _pass_on_notes(self, out: _Out) -> None:
        for note in out.following.notes():
            self.listener.note(f"{out.cell}: {note}")

    def _take(self, out: _Out, end: Report | Lost) -> None:
        self.store.bring(out.cell)
        self._pass_on_notes(out)
        cell = out.cell
        if isinstance(end, Lost):
            self._lost(out, end.how)
        elif end.outcome == "broken":
            raise WorkError(end.reason)
        elif end.outcome == "busy":
            self.listener.note(f"{cell}: another process is at it; waiting for it")
            time.sleep(_BUSY_WAIT)
            self.open.again(cell)
        elif end.outcome == "interrupted":  # a wish that was not ours: whoever ends a machine may ask first
            self._lost(out, "it was asked to stop")
        else:
            self.open.ended(cell)
            self.listener.ended(cell)

    def _lost(self, out: _Out, how: str) -> None:
        """Another machine goes on from the checkpoint; what takes a machine down every time is given up."""
        cell, lost = out.cell, self.terms.lost
        lost[cell] += 1
        if out.hung or lost[cell] >= TRIES:
            reason = f"lost {lost[cell]} times, the last time because {how}"
            if out.hung:
                reason = f"it hung: no sign of life for {self.terms.patience:,.0f} seconds"
            self.store.write_result(RunResult(cell.arm, cell.seed, "failed", reason=reason))
            self.open.ended(cell)
            self.listener.ended(cell)
        else:
            self.listener.note(f"{cell}: {how}; another goes on with it")
            self.open.again(cell, first=True)

    def _stop(self) -> None:
        """Ask every run to leave a checkpoint; end those that do not."""
        if not self.out:
            return
        try:
            self.store.wish(self.stop_file)
            deadline = time.monotonic() + _TO_STOP
            while self.out and time.monotonic() < deadline:
                for handle in self.yard.ended(list(self.out), _LOOK):
                    del self.out[handle]
        finally:
            for handle in self.out:
                self.yard.end(handle)
            self.store.unwish(self.stop_file)
