"""The texts that the arms found hardest, or were surest of and wrong: with their words, over all seeds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.report import numbers
from attnlab.report.exhibits.exhibit import Exhibit
from attnlab.report.studied import Arm, Studied
from attnlab.report.tables.table import Cell, Column, Row, Table, table

_SHOWN = 5  # texts of an arm and a split
_LONGEST = 300  # letters of a text


@dataclass(frozen=True)
class Ranked:
    """What a run kept, and how it is told."""

    kept: str  # among a run's exhibits
    by: str  # what of a text the order is by, the highest first
    title: str
    note: str
    columns: tuple[str, ...]
    told: tuple[str, ...]  # the keys of the columns


_KINDS = (
    Ranked(
        "worst",
        "loss",
        "The hardest texts",
        "Texts with the highest loss per token, as the model reads them: an unknown word is <UNK>.",
        ("tokens", "unknown", "loss per token"),
        ("tokens", "unknown", "loss"),
    ),
    Ranked(
        "wrong",
        "chance",
        "The surest mistakes",
        "Texts that were answered wrong, first those whose wrong answer was held to be most probable.",
        ("label", "answer", "its probability"),
        ("label", "answer", "chance"),
    ),
)


def worst(study: Studied) -> Exhibit | None:
    """None where no run kept such texts."""
    for kind in _KINDS:
        tables = [made for split in _splits(study, kind) if (made := _table(study, kind, split)) is not None]
        if tables:
            return Exhibit(key=f"h-{kind.kept}", title=kind.title, note=kind.note, tables=tables)
    return None


def _splits(study: Studied, kind: Ranked) -> Sequence[str]:
    """Those kept, the one that is judged first; dev, which the runs were chosen on, and whatever is a part of
    another one stay out where there is more."""
    kept = dict.fromkeys(split for run in study.runs for split in run.exhibits.get(kind.kept, {}))
    judged = study.metric.key.partition("_")[0]
    rest = [name for name in kept if name not in ("dev", "test") and not name.endswith("-unseen")]
    return [judged, *(name for name in rest if name != judged)] if judged in kept else rest


def _table(study: Studied, kind: Ranked, split: str) -> Table | None:
    rows = [row for arm in study.arms for row in _rows(arm, kind, split)]
    numbered = kind.kept == "worst"
    columns = [
        Column("arm", number=False),
        Column("text", number=False),
        Column("seeds"),
        *(Column(name, number=numbered or name == kind.columns[-1]) for name in kind.columns),
    ]
    note = "Seeds: in how many runs a text is among the ones kept; the last figure is the mean over those."
    return table(f"{kind.kept}-{split}", f"On {split}", columns, rows, note, grouped=True)


def _rows(arm: Arm, kind: Ranked, split: str) -> list[Row]:
    counted = [run for run in arm.runs if run.counts and split in run.exhibits.get(kind.kept, {})]
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in counted:
        for one in run.exhibits[kind.kept][split]:
            found.setdefault((str(one["document"]), str(one["text"])), []).append(one)
    order = sorted(found.items(), key=lambda item: (-len(item[1]), -_mean(item[1], kind.by)))
    return [
        Row(
            (
                Cell(arm.name),
                Cell(_short(text), note=document),
                Cell(f"{len(same)} of {len(counted)}"),
                *(Cell(_figure(same, key)) for key in kind.told),
            )
        )
        for (document, text), same in order[:_SHOWN]
    ]


def _mean(same: Sequence[Mapping[str, Any]], key: str) -> float:
    return statistics.fmean(float(one[key]) for one in same)


def _figure(same: Sequence[Mapping[str, Any]], key: str) -> str:
    """The mean of a figure; the words of the runs where they are words, the most frequent first."""
    if isinstance(same[0][key], str):
        words = [str(one[key]) for one in same]
        return max(dict.fromkeys(words), key=words.count)
    return numbers.plain(_mean(same, key))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} …"
