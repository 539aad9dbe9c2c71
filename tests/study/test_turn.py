"""Which cell is given out next: nobody waits for an arm's search while there is other work."""

from __future__ import annotations

from attnlab.study.executors.turn import Turn
from attnlab.study.store import Cell

CELLS = [Cell(arm, seed) for seed in range(2) for arm in ("a", "b", "c")]


def names(*cells: Cell) -> str:
    return " ".join(f"{cell.arm}{cell.seed}" for cell in cells)


def test_runs_of_an_arm_wait_for_its_first_one() -> None:
    turn = Turn(CELLS)
    a, b = turn.next(), turn.next()
    assert names(a, b) == "a0 b0"
    turn.ended(a)
    c = turn.next()
    assert names(c) == "c0"
    turn.ended(b)
    # c's first run has not ended, so its second comes after everything else, although it stands before.
    assert names(turn.next(), turn.next(), turn.next()) == "a1 b1 c1"
    assert not turn


def test_where_every_arm_is_waited_for_the_first_cell_comes() -> None:
    turn = Turn(CELLS)
    assert names(*(turn.next() for _ in CELLS)) == "a0 b0 c0 a1 b1 c1"


def test_a_cell_that_comes_back_frees_its_arm() -> None:
    turn = Turn(CELLS)
    a, b = turn.next(), turn.next()
    turn.again(a)  # another process is at it
    assert names(turn.next(), turn.next()) == "c0 a1"
    turn.again(b, first=True)  # its machine died
    assert names(turn.next(), turn.next(), turn.next()) == "b0 b1 c1"
    assert names(turn.next()) == "a0"
    assert not turn
