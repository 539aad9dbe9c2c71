"""What an encoder had learned of the text before its first label: how well it fills in hidden words."""

from __future__ import annotations

from attnlab.report import numbers
from attnlab.report.exhibits.exhibit import Exhibit
from attnlab.report.studied import Arm, Studied
from attnlab.report.tables.arms import kind_of, name_cell
from attnlab.report.tables.table import Column, Row, cells, table


def pretraining(study: Studied) -> Exhibit | None:
    """None where no arm was pretrained."""
    columns = [
        Column("arm", number=False),
        Column("steps"),
        Column("loss on dev"),
        Column("right on dev"),
        Column("loss on test"),
        Column("right on test"),
        Column("loss of the most frequent word"),
        Column("right with it"),
    ]
    made = table(
        "pretraining",
        "Hidden words of held-out texts, before any label was seen",
        columns,
        [_row(study, arm) for arm in study.arms],
        f"Mean {numbers.PLUS_MINUS} standard deviation over the seeds, at the same hidden places for each of "
        "them. A loss in nats per hidden token compares arms of one tokenizer only. The floor says the most "
        "frequent word of the training text everywhere.",
    )
    if made is None:
        return None
    return Exhibit(key="h-pretraining", title="Pretraining", tables=[made])


def _row(study: Studied, arm: Arm) -> Row | None:
    if arm.values("masked_test_loss") is None:
        return None
    steps = arm.values("pretraining_steps")
    keys = [f"masked_{split}_{what}" for split in ("dev", "test") for what in ("loss", "accuracy")]
    keys += ["most_frequent_word_loss", "most_frequent_word_accuracy"]
    figures = [numbers.with_error(arm.values(key)) for key in keys]
    return Row(
        (
            name_cell(study, arm),
            *cells(numbers.count(steps.mean) if steps else numbers.NOTHING, *figures),
        ),
        kind_of(study, arm),
    )
