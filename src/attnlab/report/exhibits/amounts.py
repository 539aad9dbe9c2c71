"""How much of a pretrained model was trained: the count as a formula, beside what was really trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.report import numbers
from attnlab.report.exhibits.exhibit import Exhibit
from attnlab.report.studied import Arm, Studied
from attnlab.report.tables.arms import name_cell
from attnlab.report.tables.table import Cell, Column, Row, table


def amounts(study: Studied) -> Exhibit | None:
    """None where no run says how much it trained."""
    found = [(arm, kept) for arm in study.arms if (kept := _kept(arm)) is not None]
    if not found:
        return None
    made = table(
        "amounts",
        "What is trained",
        [
            Column("arm", number=False),
            Column("amount", number=False),
            Column("formula", number=False),
            Column("by the formula"),
            Column("trained"),
            Column("of the model"),
            Column("also counted as", number=False),
            Column("that would be"),
            Column("learning rate"),
            Column("time per run"),
        ],
        [_row(study, arm, kept) for arm, kept in found],
        _note(found),
    )
    return Exhibit(
        key="h-amounts",
        title="How much was tuned",
        note="d is the width of the model, L its layers; the head counts with whatever is trained.",
        tables=[made] if made else [],
    )


def _kept(arm: Arm) -> Mapping[str, Any] | None:
    return next((run.exhibits["amount"] for run in arm.runs if run.exhibits.get("amount")), None)


def _row(study: Studied, arm: Arm, kept: Mapping[str, Any]) -> Row:
    def count(value: int | None) -> Cell:
        return Cell(numbers.NOTHING if value is None else numbers.count(value))

    differs = kept["value"] is not None and kept["value"] != kept["trained"]
    by_formula = count(kept["value"])
    return Row(
        (
            name_cell(study, arm),
            Cell(kept["part"]),
            Cell(kept["formula"]),
            Cell(by_formula.text, note="not what is trained") if differs else by_formula,
            count(kept["trained"]),
            Cell(numbers.share(kept["trained"] / kept["model"])),
            Cell(kept["also"] or numbers.NOTHING),
            count(kept["also_value"]),
            Cell(numbers.plain(kept["learning_rate"], 2)),
            Cell(numbers.duration(arm.seconds.mean) if arm.seconds else numbers.NOTHING),
        )
    )


def _note(found: list[tuple[Arm, Mapping[str, Any]]]) -> str:
    """Why a count in use is another one."""
    reasons = [f"{arm.name}: {kept['why']}." for arm, kept in found if kept["why"]]
    return " ".join(["Shares are of the checkpoint with its head.", *reasons])
