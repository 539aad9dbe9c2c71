"""The confusion exhibit against what the runs answered."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from attnlab.evaluation.classified import Classified, confusions
from attnlab.record import RunResult
from attnlab.report import write
from attnlab.report.exhibits.confusion import confusion
from attnlab.report.reading import read

CLASSES = ("Obama", "G. W. Bush", "<b>Bush</b> & co")
ITEMS = 120


def answered(arm: str, seed: int) -> Classified:
    rng = np.random.default_rng([len(arm), seed])
    truth = np.arange(ITEMS) % 3
    logits = rng.normal(size=(ITEMS, 3))
    logits[np.arange(ITEMS), truth] += 2.0 if arm == "mean" else 1.0
    return Classified.of([f"text {i}" for i in range(ITEMS)], CLASSES, truth, logits=logits)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two arms, two seeds, as a runner leaves them."""
    head: dict[str, Any] = {"name": "who", "question": "Who?", "metric": "test_accuracy", "seeds": 2}
    head |= {"margin": 0.01, "better": "higher", "arms": [{"name": "mean"}, {"name": "token"}]}
    floors = {"majority": {"accuracy": 1 / 3}, "TF-IDF": {"accuracy": 0.5, "loss": 0.9}}
    (tmp_path / "study.json").write_text(json.dumps({"schema": 1, "study": head, "floors": floors}))
    for arm in ("mean", "token"):
        for seed in range(2):
            found = answered(arm, seed)
            metrics = found.metrics("test") | {"test_accuracy_untrained": 1 / 3}
            result = RunResult(
                arm,
                seed,
                "ok",
                metrics,
                {"test": found.items},
                exhibits={"confusion": confusions({"test": found})},
            )
            folder = tmp_path / "runs" / arm / str(seed)
            folder.mkdir(parents=True)
            (folder / "result.json").write_text(json.dumps(result.plain()))
    return tmp_path


def test_picture_and_tables_hold_the_runs_answers(directory: Path) -> None:
    shown = confusion(read(directory))
    assert shown is not None
    assert "120 items of 3 classes" in shown.note
    drawn = list(csv.DictReader(io.StringIO(shown.pictures[0].csv)))
    assert len(drawn) == 2 * 3 * 3
    counts = sum(answered("mean", seed).counts_CC for seed in range(2))
    first = next(d for d in drawn if (d["arm"], d["true"], d["answer"]) == ("mean", *CLASSES[:2]))
    assert float(first["share"]) == counts[0, 1] / counts[0].sum()
    accuracies, counted = shown.tables
    assert [cell.text for cell in counted.rows[0].cells[2:]] == [f"{n / 2:.1f}" for n in counts[0]]
    right = np.mean([answered("mean", seed).answers.accuracy.right for seed in range(2)])
    low, high = proportion_confint(round(right), ITEMS, method="wilson")
    assert accuracies.rows[0].cells[2].text == f"{low:.3f} to {high:.3f}"
    assert [row.cells[0].text for row in accuracies.rows] == ["mean", "token", "majority", "TF-IDF"]
    low, high = proportion_confint(40, ITEMS, method="wilson")
    assert accuracies.rows[0].cells[5].text == accuracies.rows[2].cells[2].text == f"{low:.3f} to {high:.3f}"


def test_a_small_picture_is_not_enlarged_beside_large_ones(directory: Path) -> None:
    shown = confusion(read(directory))
    assert shown is not None
    drawn = shown.pictures[0].wide
    width, most = (
        float(re.findall(what, drawn)[0]) for what in (r'viewBox="0 0 ([\d.]+) ', r"max-width:(\d+)px")
    )
    assert width < 800
    assert width < most < 1.2 * width


def test_the_page_holds_it_and_names_stay_words(directory: Path) -> None:
    page = write(directory).read_text("utf-8")
    assert "How they answered" in page
    assert "<b>Bush</b>" not in page


def test_a_study_without_answers_has_no_such_section(directory: Path) -> None:
    for path in directory.glob("runs/*/*/result.json"):
        plain = json.loads(path.read_text())
        path.write_text(json.dumps({**plain, "exhibits": {}}))
    assert confusion(read(directory)) is None
