"""Studies of very many runs or arms: figures of all of them, on a page that can be made and read."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from attnlab import report
from attnlab.report import many
from attnlab.report.reading import read
from attnlab.report.studied import Studied
from attnlab.report.tables import arms, findings
from attnlab.report.tables.table import Cell, Column, Row, Table

from .synthetic_study import NORMAL, MadeUpArm, MadeUpStudy

SEEDS = 300
LONG = replace(
    NORMAL,
    name="long",
    arms=[MadeUpArm("dot"), MadeUpArm("leaks", -1.0, sees_future=True, fails=(250,))],
    seeds=SEEDS,
    steps=20,
)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return LONG.write(tmp_path_factory.mktemp("many") / "long")


@pytest.fixture(scope="module")
def studied(long: Path) -> Studied:
    return read(long)


def test_means_are_of_every_run(long: Path, studied: Studied) -> None:
    losses = [
        json.loads(path.read_text())["metrics"]["test_loss"] for path in long.glob("runs/dot/*/result.json")
    ]
    assert len(losses) == SEEDS
    found = studied.arms[0].values("test_loss")
    assert found is not None
    assert found.mean == pytest.approx(sum(losses) / SEEDS)


def test_single_runs_are_the_first_seeds_of_each_arm(studied: Studied) -> None:
    assert [sorted(arm.alone) for arm in studied.arms] == [[*range(many.RUNS // 2)]] * 2
    assert all(bool(run.log) == bool(run.items) == run.alone for run in studied.arms[0].runs)


def test_the_page_says_what_it_leaves_out_and_stays_small(long: Path) -> None:
    text = report.write(long).read_text(encoding="utf-8")
    assert "Not every run is drawn." in text
    assert "are of the first 100 seeds of each arm" in text
    assert "verdicts are of all 600 runs" in text
    assert 'aria-label="dot, seed 99:' in text
    assert 'aria-label="dot, seed 100:' not in text
    assert len(text) < 3_000_000


def test_a_run_that_ended_badly_is_shown_whatever_its_seed(studied: Studied) -> None:
    table = arms.runs_table(studied)
    assert table is not None
    assert table.caption == "Some of the runs"
    assert ["leaks", "250"] in [[cell.text for cell in row.cells[:2]] for row in table.rows]


def test_findings_alike_in_very_many_runs_are_folded(studied: Studied) -> None:
    found = [one for one in findings.findings(studied) if one.arm == "leaks" and one.status == "fail"]
    of_runs = [one for one in found if one.seeds]
    assert len(of_runs) <= 6
    assert sum(len(one.seeds) for one in of_runs) == SEEDS - 1
    assert re.fullmatch(r"the same in figures of their own, in \d{3} further runs", of_runs[-1].evidence)
    assert len(of_runs[-1].told_seeds) < 400


def test_pictures_hold_the_baseline_and_the_best_arms(tmp_path: Path) -> None:
    wide = MadeUpStudy(
        arms=[MadeUpArm("dot", 2.0), *(MadeUpArm(f"arm-{k}", 0.01 * k) for k in range(60))],
        name="wide",
        seeds=2,
        steps=20,
    )
    directory = wide.write(tmp_path / "wide")
    drawn = [arm.name for arm in many.pictured(read(directory)).arms]
    assert drawn == ["dot", *(f"arm-{k}" for k in range(many.ARMS - 1))]
    text = report.write(directory).read_text(encoding="utf-8")
    assert "Pictures and texts are of dot and the 39 arms with the best test loss, of 61." in text
    assert re.search(r"; \d\d arms are \w+\.", text)
    assert all(f">arm-{k}</th>" in text for k in range(60))  # every arm is in the tables


def test_long_tables_are_folded(tmp_path: Path) -> None:
    changes = [
        MadeUpArm(f"arm-{k}", changes={"score": {"part": "additive", "hidden": k}}) for k in range(201)
    ]
    wide = MadeUpStudy(arms=[MadeUpArm("dot"), *changes], name="wide", seeds=1, steps=20, extras=False)
    text = report.write(wide.write(tmp_path / "wide")).read_text(encoding="utf-8")
    folded = r'<summary>What each arm changes <span class="note">201 rows</span></summary>'
    assert folded in text
    assert "<summary>What each arm reached" not in text  # the arms themselves are always open


def test_a_study_of_usual_size_leaves_nothing_out(tmp_path: Path) -> None:
    studied = read(NORMAL.write(tmp_path / "study"))
    assert many.note(studied) == ""
    assert many.pictured(studied) is studied
    assert many.runs(studied) == studied.runs


def test_seeds_are_listed_one_by_one_or_from_to() -> None:
    assert many.seeds([2, 0, 1]) == ["0", "1", "2"]
    assert many.seeds([*range(30), 40, *range(50, 52)]) == ["0 to 29", "40", "50 to 51"]


def test_first_cells_of_grouped_rows_span_them() -> None:
    rows = tuple(Row((Cell(name), Cell("x"))) for name in "aabccc")
    table = Table("t", "t", (Column("a"), Column("b")), rows, grouped=True)
    assert table.spans() == [2, 0, 1, 3, 0, 0]
    assert replace(table, grouped=False).spans() == [1] * 6
