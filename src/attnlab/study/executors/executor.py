"""What an executor is, and who listens to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from attnlab.study.store import Cell, Store


class Listener(Protocol):
    """Who is told how a study is going."""

    def stage(self, text: str) -> None:
        """A new stage begins."""

    def planned(self, cells: Sequence[Cell], done: int, how: str) -> None:
        """These cells are to be worked on; so many others are done already."""

    def row(self, cell: Cell, row: Mapping[str, Any]) -> None:
        """A line of a cell's curve."""

    def ended(self, cell: Cell) -> None:
        """A cell has its result."""

    def note(self, text: str) -> None:
        """Something a person should know."""


class Silent:
    """A listener that is told and says nothing."""

    def stage(self, text: str) -> None: ...

    def planned(self, cells: Sequence[Cell], done: int, how: str) -> None: ...

    def row(self, cell: Cell, row: Mapping[str, Any]) -> None: ...

    def ended(self, cell: Cell) -> None: ...

    def note(self, text: str) -> None: ...


class Executor(Protocol):
    """Works on cells until every one has a result."""

    def plan(self, cells: int, threads: int | None = None) -> dict[str, Any]:
        """Workers, threads and whatever else decides the numbers, for `study.json`. Where runs were made
        before, `threads` is how many each of them had."""

    def run(self, store: Store, cells: Sequence[Cell], plan: Mapping[str, Any], listener: Listener) -> None:
        """Work on the cells. Ctrl-C stops at a checkpoint and comes out as KeyboardInterrupt."""
