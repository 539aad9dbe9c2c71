"""Tables: TSV, CSV and JSONL."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnlab.corpus.document import Document
from attnlab.corpus.filed import FileCorpus
from attnlab.corpus.files import read_text
from attnlab.corpus.rows import Columns, Row, RowUnit, documents_of
from attnlab.errors import CorpusError, unknown

Format = Literal["tsv", "csv", "jsonl"]


@dataclass(frozen=True, kw_only=True)
class Table(FileCorpus):
    """Rows of a TSV, CSV or JSONL file. A column is named, or numbered from 1 where there is no header."""

    text: str | int = "text"
    label: str | int | None = None
    pair: str | int | None = None  # the second text of a pair
    references: tuple[str | int, ...] = ()  # texts to produce; of several columns, those a file has are taken
    document: str | int | None = None  # rows that agree in this column are one document; else each row is one
    unit: RowUnit = "whole"  # what a model sees one at a time: a row's whole text, or its lines or sentences
    header: bool = True  # whether the first row of a TSV or CSV file holds the names
    format: Format | None = None  # by the file's ending if not given

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.document is not None and (self.label is not None or self.pair is not None or self.references):
            raise ValueError(
                "rows joined into documents cannot have a label, a pair or references of their own"
            )
        columns = (self.text, self.label, self.pair, self.document, *self.references)
        if any(isinstance(c, int) and c < 1 for c in columns):
            raise ValueError("columns are numbered from 1")

    def documents(self, path: Path, name: str) -> list[Document]:
        read = _READERS[self.format or _format_of(path, name)]
        columns = Columns(
            text=str(self.text),
            label=_name(self.label),
            pair=_name(self.pair),
            references=tuple(map(str, self.references)),
            document=_name(self.document),
            unit=self.unit,
        )
        return documents_of(read(read_text(path), name, self.header), columns)


def _name(column: str | int | None) -> str | None:
    return None if column is None else str(column)


def _format_of(path: Path, name: str) -> Format:
    ending = path.suffix.lower().removeprefix(".")
    for known in _READERS:
        if ending == known:
            return known
    raise CorpusError(f"{name!r}: {unknown('table format', ending, _READERS)}; say which under `format`")


def _tsv(text: str, name: str, header: bool) -> Iterator[Row]:
    """Quotation marks mean nothing in a TSV file: a cell ends at a tab, a row at the end of the line."""
    lines = ((number, line.split("\t")) for number, line in enumerate(text.split("\n"), 1) if line.strip())
    return _rows(lines, name, header)


def _csv(text: str, name: str, header: bool) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text), strict=True)

    def cells() -> Iterator[tuple[int, list[str]]]:
        try:
            with _any_field_size():
                yield from ((reader.line_num, row) for row in reader if row)
        except csv.Error as error:
            raise CorpusError(f"{name}:{reader.line_num}: not a CSV row ({error})") from None

    return _rows(cells(), name, header)


def _jsonl(text: str, name: str, header: bool) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"{name}:{number}: not a line of JSON ({error})") from None
        if not isinstance(values, dict):
            raise CorpusError(
                f"{name}:{number}: not a JSON object with named columns, but {line.strip()[:40]!r}"
            )
        yield Row(f"{name}:{number}", values)


_READERS: dict[Format, Callable[[str, str, bool], Iterator[Row]]] = {
    "tsv": _tsv,
    "csv": _csv,
    "jsonl": _jsonl,
}


def _rows(lines: Iterator[tuple[int, Sequence[str]]], name: str, header: bool) -> Iterator[Row]:
    names: list[str] | None = None
    for number, cells in lines:
        if names is None:
            names = [c.strip() for c in cells] if header else [str(i) for i in range(1, len(cells) + 1)]
            if len(set(names)) < len(names):
                twice = next(n for n in names if names.count(n) > 1)
                raise CorpusError(
                    f"{name}: two columns are called {twice!r}; without a header, say header = false"
                )
            if header:
                continue
        if len(cells) != len(names):
            raise CorpusError(
                f"{name}:{number}: {len(cells)} columns where {len(names)} are expected ({', '.join(names)})"
            )
        yield Row(f"{name}:{number}", dict(zip(names, cells, strict=True)))


@contextmanager
def _any_field_size() -> Iterator[None]:
    """A passage may be longer than the 128 KiB that the csv module allows by default."""
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)
