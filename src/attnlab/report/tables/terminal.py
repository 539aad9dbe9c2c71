"""A table in a terminal: in the room there is, with the columns that matter most.

A row stays on one line while dropping details is enough for that. Where it is not, cells are broken at places
that read well, and details are added again as far as they fit. What names a row is never left out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

from attnlab.report.tables.table import Cell, Table

_STYLE = {
    "better": "bold blue",
    "worse": "yellow",
    "equivalent": "green",
    "undecided": "italic",
    "invalid": "bold red",
    "diverged": "bold red",
    "failed": "bold red",
}
_FAINT = ("invalid", "diverged", "failed", "waiting", "floor")
_GAP = 2  # between two columns
_NARROWEST = 8  # that names are folded to
_GIVEN_UP = 3  # details from here on are left out before a row is broken into lines


def drawn(table: Table, width: int) -> RichTable:
    """The table as rich prints it, at most so many characters wide where its longest words allow."""
    places, broken = _chosen(table, width)
    shown = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for at in places:
        column = table.columns[at]
        heading = _wrapped(column.label, _width(table, at, broken))
        names = at == 0
        shown.add_column(
            Text(heading),
            justify="right" if column.number else "left",
            no_wrap=not names,
            overflow="fold",
            min_width=_NARROWEST if names else None,
            vertical="top",
        )
    for at, row in enumerate(table.rows):
        ends = at + 1 < len(table.rows) and table.rows[at + 1].kind == "floor" != row.kind
        faint = "dim" if row.kind in _FAINT else ""
        shown.add_row(*(_cell(row.cells[place], broken, faint) for place in places), end_section=ends)
    return shown


def _chosen(table: Table, width: int) -> tuple[Sequence[int], bool]:
    """The columns there is room for, and whether their cells are broken into lines."""
    every = range(len(table.columns))
    for most in sorted({column.detail for column in table.columns}, reverse=True):
        places = [at for at in every if table.columns[at].detail <= most]
        if most >= _GIVEN_UP - 1 and _total(table, places, broken=False) <= width:
            return places, False
    chosen = {at for at in every if not table.columns[at].detail}
    for at in sorted(set(every) - chosen, key=lambda place: table.columns[place].detail):
        if _total(table, [*chosen, at], broken=True) <= width:
            chosen.add(at)
    return sorted(chosen), True


def _total(table: Table, places: Sequence[int], *, broken: bool) -> int:
    return sum(_width(table, at, broken) for at in places) + _GAP * (len(places) - 1)


def _width(table: Table, at: int, broken: bool) -> int:
    """What the cells of a column need; its heading may always be broken at a space."""
    texts = [_text(row.cells[at], broken) for row in table.rows]
    if broken and at == 0:
        texts = [word for text in texts for word in text.split()]
    words = table.columns[at].label.split()
    return max(cell_len(line) for text in (*texts, *words) for line in (text.splitlines() or [""]))


def _text(cell: Cell, broken: bool) -> str:
    text = f"{cell.mark} {cell.text}".strip() if cell.badge else cell.text
    return text.replace(" [", "\n[").replace(" ±", "\n±") if broken else text


def _cell(cell: Cell, broken: bool, faint: str) -> Text:
    return Text(_text(cell, broken), style=_STYLE.get(cell.text, "") if cell.badge else faint)


def _wrapped(label: str, width: int) -> str:
    return "\n".join(textwrap.wrap(label, width, break_long_words=False)) or label
