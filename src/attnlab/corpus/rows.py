"""Rows with named columns into documents, wherever the rows come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from attnlab.corpus.document import Document
from attnlab.corpus.text import Unit, units_of
from attnlab.errors import CorpusError, unknown

RowUnit = Literal["whole"] | Unit


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which column means what."""

    text: str
    label: str | None = None
    pair: str | None = None
    references: tuple[str, ...] = ()  # of these, a row needs at least one
    document: str | None = None  # rows that agree in this column are one document
    unit: RowUnit = "whole"


@dataclass(frozen=True)
class Row:
    """One row, and the place it is known by."""

    place: str
    values: Mapping[str, Any]


def documents_of(rows: Iterable[Row], columns: Columns) -> list[Document]:
    """A document per row, or per value of the document column."""
    if columns.document is not None:
        return _grouped(rows, columns)
    found = []
    for row in rows:
        units = _units(row, columns)
        if not units and columns.label is None and columns.pair is None and not columns.references:
            continue  # an empty line of running text is no loss; an empty example would be
        if not units:
            raise CorpusError(f"{row.place}: the column {columns.text!r} is empty")
        found.append(
            Document(
                row.place,
                units,
                label=None if columns.label is None else _scalar(row, columns.label),
                pair=None if columns.pair is None else _scalar(row, columns.pair),
                references=_references(row, columns.references),
            )
        )
    return found


def _grouped(rows: Iterable[Row], columns: Columns) -> list[Document]:
    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(_scalar(row, str(columns.document)), []).extend(_units(row, columns))
    return [Document(name, tuple(units)) for name, units in groups.items() if units]


def _units(row: Row, columns: Columns) -> tuple[str, ...]:
    text = _cell(row, columns.text)
    if text is None:
        return ()
    if not isinstance(text, str):
        raise CorpusError(f"{row.place}: the column {columns.text!r} holds {_shown(text)}, not text")
    if columns.unit == "whole":
        return (text.strip(),) if text.strip() else ()
    return tuple(units_of(text, columns.unit))


def _cell(row: Row, column: str) -> Any:
    if column not in row.values:
        raise CorpusError(f"{row.place}: {unknown('column', column, map(str, row.values))}")
    return row.values[column]


def _scalar(row: Row, column: str) -> str:
    value = _cell(row, column)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float) and str(value).strip():
        return str(value).strip()
    raise CorpusError(
        f"{row.place}: the column {column!r} holds {_shown(value)}; a text or a number is needed"
    )


def _references(row: Row, columns: tuple[str, ...]) -> tuple[str, ...]:
    if not columns:
        return ()
    present = [column for column in columns if column in row.values]
    if not present:
        raise CorpusError(f"{row.place}: {unknown('column', columns[0], map(str, row.values))}")
    found: list[str] = []
    for column in present:
        value = row.values[column]
        found += [str(v) for v in value] if isinstance(value, list | tuple) else [_scalar(row, column)]
    return tuple(found)


def _shown(value: object) -> str:
    text = repr(value)
    return "nothing" if value in (None, "") else text if len(text) <= 40 else f"{text[:40]}…"
