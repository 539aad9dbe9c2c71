"""How a study is going, on a terminal or line by line in a log."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from attnlab.study.executors import Listener
from attnlab.study.store import Cell


@contextlib.contextmanager
def watching() -> Iterator[Listener]:
    """A listener that draws bars where there is a terminal, and prints a line per event elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[shown]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bars(progress)


class Lines:
    """Plain lines on standard error."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.console = Console(stderr=True, soft_wrap=True, highlight=False)
        self.done = self.total = 0

    def stage(self, text: str) -> None:
        self._say(text)

    def planned(self, cells: Sequence[Cell], done: int, how: str) -> None:
        self.done, self.total = done, done + len(cells)
        self._say(f"{len(cells)} runs to do, {done} done already; {how}")

    def row(self, cell: Cell, row: Mapping[str, Any]) -> None:
        return

    def ended(self, cell: Cell) -> None:
        self.done += 1
        self._say(f"{self.done}/{self.total} {cell}")

    def note(self, text: str) -> None:
        self._say(text)

    def _say(self, text: str) -> None:
        self.console.print(f"[{time.monotonic() - self.started:6.1f} s] {text}", markup=False)


class Bars:
    """A bar for the study, and one for every run that is being worked on."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.all = progress.add_task("preparing", total=None, shown="")
        self.bars: dict[Cell, TaskID] = {}
        self.how = ""

    def stage(self, text: str) -> None:
        self.progress.update(self.all, description=text)

    def planned(self, cells: Sequence[Cell], done: int, how: str) -> None:
        self.progress.update(self.all, description="runs", total=done + len(cells), completed=done, shown=how)

    def row(self, cell: Cell, row: Mapping[str, Any]) -> None:
        if cell not in self.bars:
            self.bars[cell] = self.progress.add_task(f"  {cell.arm} · {cell.seed}", total=None, shown="")
        shown = f"loss {row['loss']:.3f}" if row.get("loss") is not None else ""
        if "dev_loss" in row:
            shown += f", dev {row['dev_loss']:.3f}"
        self.progress.update(self.bars[cell], total=row.get("of"), completed=row["step"], shown=shown)

    def ended(self, cell: Cell) -> None:
        if cell in self.bars:
            self.progress.remove_task(self.bars.pop(cell))
        self.progress.advance(self.all)

    def note(self, text: str) -> None:
        self.progress.console.print(text, markup=False)
