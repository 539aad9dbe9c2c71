"""Exhibits of arms that did not all keep the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from attnlab.evaluation.summaries import ALL
from attnlab.record import Items, RunResult
from attnlab.report.exhibits.search import search
from attnlab.report.exhibits.summaries import summaries
from attnlab.report.reading import read
from attnlab.report.studied import Studied


def study_of(folder: Path, kept: Mapping[str, Mapping[str, Any]]) -> Studied:
    """An arm a name, with a run each that kept this."""
    head: dict[str, Any] = {"name": "it", "question": "?", "metric": "test_accuracy", "seeds": 1}
    head |= {"margin": 0.01, "better": "higher", "arms": [{"name": arm} for arm in kept]}
    (folder / "study.json").write_text(json.dumps({"schema": 1, "study": head}))
    for arm, exhibits in kept.items():
        run = folder / "runs" / arm / "0"
        run.mkdir(parents=True)
        items = {"test": Items(("a", "b"), dict.fromkeys(ALL, (0.1, 0.2)))}
        result = RunResult(arm, 0, "ok", {}, items, exhibits=exhibits)
        (run / "result.json").write_text(json.dumps(result.plain()))
    return read(folder)


def summarised(*texts: str) -> Mapping[str, Any]:
    shown = [
        {"name": f"document {place}", "source": "a b c", "references": ["a"], "text": text}
        for place, text in enumerate(texts)
    ]
    return {"summaries": {"shown": shown, "people": {}}}


def test_an_arm_that_shows_fewer_texts_has_fewer_rows(tmp_path: Path) -> None:
    shown = summaries(study_of(tmp_path, {"many": summarised("one", "two"), "few": summarised("three")}))
    assert shown is not None
    rows = [[cell.text for cell in row.cells] for row in shown.tables[-1].rows]
    assert [row for row in rows if row[1] in ("many", "few")] == [
        ["document 0", "many", "one"],
        ["document 0", "few", "three"],
        ["document 1", "many", "two"],
    ]


def test_people_and_floors_have_the_decimals_of_the_arms(tmp_path: Path) -> None:
    kept = summarised("one")["summaries"] | {"people": {"rouge_1": 0.5, "rouge_2": 0.00259, "words": 22.0}}
    shown = summaries(study_of(tmp_path, {"an arm": {"summaries": kept}}))
    assert shown is not None
    people = [next(row for row in made.rows if row.kind == "floor") for made in shown.tables[:2]]
    assert [cell.text for cell in people[0].cells[1:3]] == ["0.500", "0.003"]
    assert people[1].cells[1].text == "22.0"


def searched(trials: int) -> Mapping[str, Any]:
    setting = {"training.optimizer.learning_rate": 0.1}
    tried = {"setting": setting, "ending": "done", "values": [[100, 0.5]], "best": 0.5, "seconds": 1.0}
    all_tried = [{"number": number, **tried} for number in range(trials)]
    return {"search": {"method": "random", "choose": "dev_accuracy", "trials": all_tried, "chosen": 0}}


@pytest.mark.parametrize(
    ("trials", "told"),
    [
        ((3, 3), "3 trials for every arm"),
        ((3, None), "3 trials for arm 0"),
        ((3, 4), "Not as many trials for every arm"),
    ],
)
def test_how_many_trials_is_said_of_those_who_had_them(
    tmp_path: Path, trials: tuple[int | None, ...], told: str
) -> None:
    kept = {f"arm {place}": searched(count) if count else {} for place, count in enumerate(trials)}
    shown = search(study_of(tmp_path, kept))
    assert shown is not None
    assert shown.note.startswith(told)
