"""A table, once: as HTML for the page, Markdown and LaTeX to copy. A terminal draws it by terminal.py."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from attnlab.report.marks import MARKS

RowKind = Literal["", "baseline", "invalid", "diverged", "failed", "waiting", "undecided", "floor"]


@dataclass(frozen=True)
class Column:
    """A heading, the side its cells stand on, and what it means where the heading is too short to say.

    A detail is left out where room is short, as in a terminal: the higher, the sooner.
    """

    label: str
    number: bool = True
    note: str = ""
    detail: int = 0


@dataclass(frozen=True)
class Cell:
    """What stands in one place; a badge is one of the words a reader looks for, set off by a mark."""

    text: str
    badge: bool = False
    note: str = ""

    @property
    def mark(self) -> str:
        return MARKS.get(self.text, "")


@dataclass(frozen=True)
class Row:
    """Cells under the columns; the first names the row."""

    cells: tuple[Cell, ...]
    kind: RowKind = ""


@dataclass(frozen=True)
class Table:
    """A caption, columns and rows, and a line under them on how to read it."""

    key: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    grouped: bool = False  # rows with the same first cell belong together, and name it once

    def spans(self) -> list[int]:
        """How many rows the first cell of each row stands for: 0 where an earlier one covers it."""
        firsts = [row.cells[0] for row in self.rows]
        spans = [0] * len(firsts)
        names = 0  # the row whose first cell covers those after it
        for at, first in enumerate(firsts):
            if not (self.grouped and at and first == firsts[at - 1]):
                names = at
            spans[names] += 1
        return spans

    def markdown(self) -> str:
        lines = [[_markdown(column.label) for column in self.columns]]
        lines.append(["---:" if column.number else "---" for column in self.columns])
        lines += [[_markdown(_aloud(cell)) for cell in row.cells] for row in self.rows]
        note = f"\n\n{_markdown(self.note)}" if self.note else ""
        return "\n".join(f"| {' | '.join(line)} |" for line in lines) + note + "\n"

    def latex(self) -> str:
        """A booktabs table that compiles in a plain article."""
        sides = "".join("r" if column.number else "l" for column in self.columns)
        head = " & ".join(_latex(column.label) for column in self.columns) + r" \\"
        body = [" & ".join(_latex(_aloud(cell)) for cell in row.cells) + r" \\" for row in self.rows]
        floors = [at for at, row in enumerate(self.rows) if row.kind == "floor"]
        if floors and floors[0]:
            body.insert(floors[0], r"\midrule")
        caption = _latex(f"{self.caption}. {self.note}" if self.note else self.caption)
        return "\n".join(
            [
                r"\begin{table}[t]",
                r"\centering",
                rf"\caption{{{caption}}}",
                rf"\begin{{tabular}}{{{sides}}}",
                r"\toprule",
                head,
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )


def table(
    key: str,
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Row | None],
    note: str = "",
    *,
    grouped: bool = False,
) -> Table | None:
    """A table of the rows that are there and the columns that say something; None when nothing is left."""
    kept = [row for row in rows if row is not None]
    useful = [
        at
        for at in range(len(columns))
        if at == 0 or any(row.cells[at].text not in ("", "–") for row in kept)
    ]
    if not kept or len(useful) < 2:
        return None
    narrowed = tuple(Row(tuple(row.cells[at] for at in useful), row.kind) for row in kept)
    return Table(key, caption, tuple(columns[at] for at in useful), narrowed, note, grouped)


def cells(*texts: str) -> tuple[Cell, ...]:
    return tuple(Cell(text) for text in texts)


def badge(word: str) -> Cell:
    return Cell(word, badge=bool(word))


def _aloud(cell: Cell) -> str:
    return f"{cell.text} ({cell.note})" if cell.note else cell.text


_MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]<>|])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "∞": r"$\infty$",
    "≠": r"$\neq$",
    "→": r"$\to$",
    "–": "--",
    "\n": " ",
}


_RAISED = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def _markdown(text: str) -> str:
    return _MARKDOWN_SPECIAL.sub(r"\\\1", text).replace("\n", " ")


def _latex(text: str) -> str:
    # A hyphen before a digit would be set as one; the true minus above is set in maths.
    text = "".join(_LATEX.get(character, character) for character in text)
    return _RAISED.sub(lambda found: f"$^{{{found[0].translate(_LOWERED)}}}$", text)
