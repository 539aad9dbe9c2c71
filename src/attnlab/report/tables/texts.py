"""Given sentences as every arm scores them, and texts drawn from every arm."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.report import numbers
from attnlab.report.numbers import spread
from attnlab.report.studied import Arm, Studied
from attnlab.report.tables.arms import kind_of
from attnlab.report.tables.table import Cell, Column, Row, Table, table


def sentences_table(study: Studied) -> Table | None:
    """A sentence and an arm a row: loss per token and perplexity over the seeds."""
    texts = list(dict.fromkeys(str(s.get("text", "")) for run in study.runs for s in run.sentences))
    columns = [
        Column("sentence", number=False),
        Column("arm", number=False),
        Column("tokens"),
        Column("unknown"),
        Column("loss per token"),
        Column("perplexity"),
    ]
    rows = [_row(study, text, arm) for text in texts for arm in study.arms]
    some_unknown = any(s.get("unknown") for run in study.runs for s in run.sentences)
    note = (
        "Words that the vocabulary does not hold are all read as <UNK>, which is easy to predict: with many "
        "of them, a low perplexity says little."
        if some_unknown
        else ""
    )
    return table("sentences", "How each arm scores them", columns, rows, note, grouped=True)


def _row(study: Studied, text: str, arm: Arm) -> Row | None:
    found = [s for run in arm.runs if run.counts for s in run.sentences if s.get("text") == text]
    if not found:
        return None
    loss, perplexity = (spread(s.get(key) for s in found) for key in ("loss", "perplexity"))
    tokens = found[0].get("tokens")
    pieces = len(tokens) if isinstance(tokens, list) else tokens
    unknown = found[0].get("unknown")
    return Row(
        (
            Cell(text),
            Cell(arm.name),
            Cell(numbers.count(pieces) if isinstance(pieces, int) else numbers.NOTHING),
            Cell(numbers.count(unknown) if isinstance(unknown, int) else ""),
            Cell(numbers.with_error(loss)),
            Cell(numbers.with_error(perplexity)),
        ),
        "invalid" if kind_of(study, arm) == "invalid" else "",
    )


@dataclass(frozen=True)
class Samples:
    """Texts that one arm made, with the seeds of the runs they are from."""

    arm: str
    word: str
    runs: tuple[tuple[int, tuple[str, ...]], ...]


def samples(study: Studied) -> list[Samples]:
    found = [
        Samples(arm.name, arm.word, tuple((run.seed, run.samples) for run in arm.runs if run.samples))
        for arm in study.arms
    ]
    return [one for one in found if one.runs]
