"""Splits that a corpus names, such as speakers: each measured, judged by, and told; and the hardest texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnlab.report import write as write_report
from attnlab.study import run

from .small import InProcess, write_corpus


def test_each_named_split_is_measured_told_and_can_be_judged_by(folder: Path) -> None:
    write_corpus(folder / "one.txt", lines=12, seed=3)
    write_corpus(folder / "two.txt", lines=12, seed=4)
    (folder / "two.txt").write_text((folder / "two.txt").read_text() + "horse the likes x fish a dog hears\n")
    results = run(
        folder / "small.toml",
        out=folder / "out",
        seeds=2,
        settings=[
            'corpus.extra={speaker-one="one.txt", speaker-two="two.txt"}',
            "metric=speaker-two_loss",
            "measure.worst=3",
        ],
        on=InProcess(),
    )
    assert results.verdicts[0]["metric"] == "speaker-two_loss"
    cell = folder / "out" / "runs" / "dot" / "0"
    result = json.loads((cell / "result.json").read_text("utf-8"))
    assert {"speaker-one_perplexity", "speaker-two_perplexity"} <= set(result["metrics"])
    worst = result["exhibits"]["worst"]["speaker-two"]
    assert len(worst) == 3
    assert [one["loss"] for one in worst] == sorted((one["loss"] for one in worst), reverse=True)
    assert worst[0]["text"] == "horse the likes x fish a dog hears"  # words of the grammar in no order of it
    page = write_report(folder / "out").read_text("utf-8")
    assert "Perplexity, split by split" in page
    assert "horse the likes x fish a dog hears" in page
    assert result["metrics"]["speaker-two_loss"] == pytest.approx(
        sum(
            loss * tokens
            for loss, tokens in zip(
                result["items"]["speaker-two"]["values"]["loss"],
                result["items"]["speaker-two"]["values"]["tokens"],
                strict=True,
            )
        )
        / sum(result["items"]["speaker-two"]["values"]["tokens"])
    )
