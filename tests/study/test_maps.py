"""Attention maps of a study's runs: what is kept, that a killed run goes on to the same files, and that
nothing is done where none are wanted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from attnlab.evaluation.maps.camera import Camera
from attnlab.evaluation.maps.shot import Shot, shots_in
from attnlab.study import load_study, run
from attnlab.study.cellwork import Workplace
from attnlab.study.store import Cell, Store

from .small import InProcess

SETTINGS = ('measure.probes=["the cat sees a dog"]', "measure.repeats=2", "measure.maps_at=[5]")


def ran(folder: Path, *settings: str, out: str = "out") -> Path:
    study = folder / "small.toml"
    run(study, out=folder / out, seeds=1, settings=(*SETTINGS, *settings), on=InProcess())
    return folder / out


def result_of(out: Path, arm: str = "dot") -> dict[str, Any]:
    return dict(json.loads((out / "runs" / arm / "0" / "result.json").read_text("utf-8")))


def test_a_run_keeps_its_maps_and_their_figures(folder: Path) -> None:
    out = ran(folder)
    cell = out / "runs" / "dot" / "0"
    assert [path.name for path in shots_in(cell)] == [f"{step:08d}.safetensors" for step in (0, 5, 12)]
    result = result_of(out)
    kept = result["exhibits"]["attention"]
    assert kept["steps"] == [0, 5, 12]
    assert kept["probes"] == ["the cat sees a dog", "7 random tokens, twice"]
    assert kept["layers"] == [{"heads": 2, "per": "head", "without": ""}]
    for step, figures in enumerate(kept["heads"]):
        assert set(figures[0]) == {"entropy", "distance", "first", "diagonal", "previous", "induction"}
        assert all(len(values) == 2 for values in figures[0].values()), step
    assert kept["losses"][-1].keys() == {"first", "again"}
    checks = {check["name"]: check["status"] for check in result["checks"]}
    assert checks == {"prefix-only": "pass", "row-sums": "pass", "padding": "pass"}
    before, after = (Shot.read(path) for path in shots_in(cell)[::2])
    assert (before.stacks[0, 0].weights_HTT != after.stacks[0, 0].weights_HTT).any()


class StopsAfter:
    """A wish to stop that comes up after so many steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    @property
    def to_stop(self) -> bool:
        self.left -= 1
        return self.left <= 0


@pytest.mark.parametrize("killed_after", [1, 5, 7])
def test_a_run_that_was_stopped_goes_on_to_the_same_files(folder: Path, killed_after: int) -> None:
    whole = ran(folder)
    broken = ran(folder, "training.steps=12", out="broken")
    cell = broken / "runs" / "dot" / "0"
    shutil.rmtree(cell)
    workplace = Workplace(Store(broken), Store(broken).study())
    outcome = workplace.work_on(Cell("dot", 0), lambda *_: None, StopsAfter(killed_after))  # type: ignore[arg-type]
    assert outcome == "interrupted"
    assert len(shots_in(cell)) == (1 if killed_after < 5 else 2)
    assert ran(folder, "training.steps=12", out="broken") == broken
    for mine, wanted in zip(shots_in(cell), shots_in(whole / "runs" / "dot" / "0"), strict=True):
        assert mine.read_bytes() == wanted.read_bytes()
    assert result_of(broken)["exhibits"] == result_of(whole)["exhibits"]


def test_a_run_that_ends_early_is_looked_at_then(folder: Path) -> None:
    early = ["keep=best", "patience=1", "evaluate_every=2", "optimizer.learning_rate=1e-12"]
    out = ran(folder, *(f"training.{setting}" for setting in early))
    result = result_of(out)
    assert result["status"] == "ok"
    assert result["metrics"]["stopped_early"] == 1.0
    assert result["exhibits"]["attention"]["steps"][-1] == result["steps"] < 12


def test_where_none_are_wanted_none_are_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Camera, "take", lambda *_: pytest.fail("a map was taken"))
    out = ran(folder, "measure.maps=0", "measure.maps_at=[]")
    assert "attention" not in result_of(out)["exhibits"]
    assert [check["name"] for check in result_of(out)["checks"]] == ["prefix-only"]
    assert not (out / "runs" / "dot" / "0" / "maps").exists()


def test_looking_changes_nothing_that_is_measured(folder: Path) -> None:
    looked, blind = ran(folder), ran(folder, "measure.maps=0", "measure.maps_at=[]", out="blind")
    assert result_of(looked)["metrics"] == result_of(blind)["metrics"]
    assert result_of(looked)["samples"] == result_of(blind)["samples"]


def test_an_arm_whose_rows_do_not_sum_to_what_it_claims_is_invalid(folder: Path) -> None:
    (folder / "own.py").write_text(
        "from dataclasses import dataclass\n"
        "from attnlab.attention import Softmax\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Leaky(Softmax):\n"
        "    def __call__(self, scores_BHTS, visible):\n"
        "        return 0.9 * super().__call__(scores_BHTS, visible)\n"
    )
    text = (folder / "small.toml").read_text().replace('score = "additive"', 'weigh = "own.py:Leaky"')
    (folder / "small.toml").write_text(text.replace('name = "additive"', 'name = "leaky"'))
    out = ran(folder)
    result = result_of(out, "leaky")
    assert result["status"] == "invalid"
    assert "sums to 0.9 " in result["reason"]
    results = json.loads((out / "results.json").read_text())
    assert [verdict["verdict"] for verdict in results["verdicts"]] == ["invalid"]


def test_a_study_without_a_probe_has_repeats_still(folder: Path) -> None:
    study = load_study(folder / "small.toml", ["measure.probes=[]"])
    assert [p.passage for p in study.setup.prepare(study.base)._probes] == [7] * 8  # type: ignore[attr-defined]
