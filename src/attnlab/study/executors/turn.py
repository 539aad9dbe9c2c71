"""Which cell comes next.

The first run of an arm may begin with what is done once for all of them, such as a search of its settings.
Until it has ended, the arm's other runs would have nothing to do but wait for it: so cells of other arms go
first.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence

from attnlab.study.store import Cell


class Turn:
    """Cells that are still to be given out, in their order where nothing is to be waited for."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._open = list(cells)
        self._out: collections.Counter[str] = collections.Counter()  # runs of each arm that are given out
        self._over_once: set[str] = set()  # arms of which a run has ended

    def __bool__(self) -> bool:
        return bool(self._open)

    def next(self) -> Cell:
        """The first of a free arm; where no arm is free, the first."""
        cell = next((cell for cell in self._open if self._is_free(cell.arm)), self._open[0])
        self._open.remove(cell)
        self._out[cell.arm] += 1
        return cell

    def _is_free(self, arm: str) -> bool:
        return arm in self._over_once or not self._out[arm]

    def again(self, cell: Cell, *, first: bool = False) -> None:
        """It was given out, and has no result: its turn comes again, as the last one or as the first."""
        self._out[cell.arm] -= 1
        self._open.insert(0 if first else len(self._open), cell)

    def ended(self, cell: Cell) -> None:
        """It was given out, and has its result."""
        self._out[cell.arm] -= 1
        self._over_once.add(cell.arm)
