"""Held-out splits that the corpus names, such as speakers: each arm on each of them."""

from __future__ import annotations

from attnlab.report import numbers
from attnlab.report.exhibits.exhibit import Exhibit
from attnlab.report.studied import Studied
from attnlab.report.tables.arms import kind_of, name_cell
from attnlab.report.tables.table import Cell, Column, Row, table

_CORE = ("train", "dev", "test")
_UNSEEN = "-unseen"


def speakers(study: Studied) -> Exhibit | None:
    """None where the corpus names no split of its own, or its arms have no perplexity."""
    splits = study.corpus.get("splits") or {}
    named = [name for name in splits if name not in _CORE and not name.endswith(_UNSEEN)]
    known = [name for name in ("train", "dev", "test", *named) if study.has(f"{name}_perplexity")]
    if not set(known) & set(named):
        return None
    rows = [
        Row(
            (
                name_cell(study, arm),
                *(Cell(numbers.with_error(arm.values(f"{name}_perplexity"))) for name in known),
            ),
            kind_of(study, arm),
        )
        for arm in study.arms
    ]
    columns = [Column("arm", number=False), *(Column(name) for name in known)]
    made = table(
        "speakers",
        "Perplexity, split by split",
        columns,
        rows,
        f"Mean {numbers.PLUS_MINUS} standard deviation over the seeds. Compare arms within a column: texts "
        "of one split are harder than those of another, whatever reads them.",
    )
    return Exhibit(key="h-speakers", title="Each held-out split", tables=[made] if made else [])
