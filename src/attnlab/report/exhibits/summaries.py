"""What a teacher and its students wrote: every measure with its interval over documents, and texts side by
side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.report import numbers
from attnlab.report.exhibits.exhibit import Exhibit
from attnlab.report.names import label
from attnlab.report.studied import Arm, Studied
from attnlab.report.tables.arms import kind_of, name_cell
from attnlab.report.tables.table import Cell, Column, Row, Table, cells, table
from attnlab.verdict import mean_interval

_ROUGE = ("rouge_1", "rouge_2", "rouge_l", "rouge_lsum")
_BESIDE = ("words", "copied", "repeated")
_MEANS = (
    "Mean over documents and seeds, with its 95 % interval: what other documents, and other seeds, might "
    "have given. Intervals that overlap say nothing about a difference: the verdict pairs arms document by "
    "document. Of several references the nearest counts; the row of people has one fewer."
)
_SHARES = (
    "Copied: of the runs of three words in a text, the share that stand in the document. Repeated: the share "
    "that the text had before."
)
_SOURCE = 700  # characters of a document that are shown


def summaries(study: Studied) -> Exhibit | None:
    """None unless some run wrote texts from documents."""
    kept = _first(study)
    if kept is None:
        return None
    documents = max(len(run.items["test"].names) for run in study.runs if "test" in run.items)
    tables = [
        _table(study, kept, "rouge", "ROUGE against what people wrote", _ROUGE, _MEANS),
        _table(study, kept, "beside-rouge", "What ROUGE does not see", _BESIDE, _SHARES),
        _side_by_side(study, kept),
    ]
    return Exhibit(
        key="h-summaries",
        title="What they wrote",
        note=f"Texts from the {numbers.count(documents)} documents of the test split, beside what people "
        "wrote.",
        tables=[one for one in tables if one is not None],
    )


def _first(study: Studied) -> Mapping[str, Any] | None:
    return next((run.exhibits["summaries"] for run in study.runs if "summaries" in run.exhibits), None)


def _table(
    study: Studied, kept: Mapping[str, Any], key: str, caption: str, measures: Sequence[str], note: str
) -> Table | None:
    """An arm a row; people, where several wrote about each document, and the floor below."""
    columns = [Column("who wrote", number=False), *(Column(label(name)) for name in measures)]
    rows: list[Row | None] = [_arm_row(study, arm, measures) for arm in study.arms]
    others = {"people, one against the others": kept.get("people") or {}, **study.floors}
    rows += [
        Row(cells(name, *(_figure(m, facts[m]) if m in facts else "" for m in measures)), "floor")
        for name, facts in others.items()
        if facts
    ]
    return table(key, caption, columns, rows, note)


def _arm_row(study: Studied, arm: Arm, measures: Sequence[str]) -> Row | None:
    items = [run.items["test"] for run in arm.runs if run.counts and "test" in run.items]
    if not items:
        return None
    figures = []
    for name in measures:
        found = mean_interval(np.array([one[name] for one in items]))
        # None of these measures can be below 0, whatever its interval.
        low, high = (_figure(name, max(value, 0.0)) for value in (found.low, found.high))
        figures.append(Cell(_figure(name, found.mean), note=f"{low} to {high}"))
    return Row((name_cell(study, arm), *figures), kind_of(study, arm))


def _figure(measure: str, value: float) -> str:
    """With as many decimals in every row."""
    return numbers.fixed(value, 1 if measure == "words" else 3)


def _side_by_side(study: Studied, kept: Mapping[str, Any]) -> Table | None:
    """A document and who wrote about it a row: people first, then every arm with its first seed."""
    rows: list[Row | None] = []
    for shown in kept["shown"]:
        source = str(shown["source"])
        cut = source if len(source) <= _SOURCE else f"{source[:_SOURCE].rstrip()} …"
        rows.append(Row(cells(shown["name"], "the document", cut)))
        rows += [Row(cells(shown["name"], "a person", text)) for text in shown["references"]]
        for arm in study.arms:
            text = _texts(arm).get(shown["name"])
            if text is not None:
                rows.append(Row(cells(shown["name"], arm.name, text or "(nothing)"), kind_of(study, arm)))
    columns = [Column(name, number=False) for name in ("document", "who wrote", "text")]
    return table("side-by-side", "Side by side", columns, rows, "The first seed of every arm.", grouped=True)


def _texts(arm: Arm) -> Mapping[str, str]:
    """What its first run wrote, document by document; an arm may keep fewer of them than others."""
    kept = next((run.exhibits["summaries"]["shown"] for run in arm.runs if "summaries" in run.exhibits), ())
    return {one["name"]: one["text"] for one in kept}
