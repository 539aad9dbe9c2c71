"""The exhibit of attention maps: its tables and pictures, what the page embeds, what it leaves out, and its
size."""

from __future__ import annotations

import base64
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab import report
from attnlab.errors import StoreError
from attnlab.evaluation.maps.shot import Shot, shots_in
from attnlab.report.exhibits.attention import attention
from attnlab.report.reading import read
from attnlab.report.viewer import SCRIPT, STYLE, Viewer, maps_of

from .made_up_maps import PROBES, add_maps
from .synthetic_study import NORMAL, MadeUpArm, MadeUpStudy

SMALL = replace(NORMAL, arms=NORMAL.arms[:2], seeds=3)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return add_maps(SMALL.write(tmp_path / "study"))


def embedded(page: str) -> dict[str, Any]:
    found = re.search(r'class="maps"[^>]*>.*?<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def test_what_is_embedded_is_what_is_kept(study: Path) -> None:
    data = embedded(report.write(study).read_text("utf-8"))
    assert [(view["name"], view["seed"]) for view in data["views"]] == [
        ("dot", 0),
        ("dot", 1),
        ("additive", 0),
        ("additive", 1),
    ]
    view = data["views"][2]
    shots = [Shot.read(path) for path in shots_in(study / "runs" / "additive" / "0")]
    assert view["steps"] == [0, 400]
    assert [probe["tokens"] for probe in view["probes"]] == [list(tokens) for tokens in PROBES]
    for kept, shot in zip(view["maps"], shots, strict=True):
        for (probe, layer), stack in shot.stacks.items():
            found = kept[f"{probe}/{layer}"]
            levels = np.frombuffer(
                base64.b64decode(found["levels"]), np.int8 if found["signed"] else np.uint8
            )
            weights = levels.reshape(stack.levels_HTT.shape) * np.array(found["scale"])[:, None, None]
            np.testing.assert_allclose(weights, stack.weights_HTT, rtol=1e-4)
    assert data["left_out"] == (
        "Left out here, and kept in the study's directory under runs/…/maps: the maps of 2 further runs."
    )


def test_a_report_of_ten_runs_with_long_probes_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six layers of twelve heads on 64 tokens: more than there is room for, and the page says so."""
    monkeypatch.setattr("tests.report.made_up_maps.PROBES", (PROBES[0], ["<START>", *(["x"] * 63)]))
    arms = [MadeUpArm(f"arm {number}") for number in range(5)]
    path = MadeUpStudy(arms=arms, seeds=2).write(tmp_path / "large")
    page = report.write(add_maps(path, heads=24))
    data = embedded(page.read_text("utf-8"))
    assert page.stat().st_size < 3_000_000
    assert 1 <= len(data["views"]) < 10
    assert "the maps of" in data["left_out"]
    assert "all but the first 16 heads" in data["left_out"]
    assert all(layer["heads"] == 16 for view in data["views"] for layer in view["layers"])


@pytest.mark.parametrize(
    ("taken", "room", "shown", "left_out"),
    [
        (9, 1_500_000, 9, ""),
        (41, 1_500_000, 21, "some of those taken between the first step and the last"),
        (41, 60_000, 6, "some of those taken between the first step and the last"),
        (41, 20_000, 2, "those taken between the first step and the last"),
    ],
)
def test_steps_between_are_shown_as_far_as_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int, room: int, shown: int, left_out: str
) -> None:
    monkeypatch.setattr("attnlab.report.viewer.maps.ROOM", room)
    steps = [10 * place for place in range(taken)]
    path = add_maps(replace(SMALL, arms=SMALL.arms[:1], seeds=1).write(tmp_path / "long"), steps=steps)
    (view,) = maps_of(path).views
    assert len(view["steps"]) == len(view["maps"]) == len(view["figures"]) == shown
    assert (view["steps"][0], view["steps"][-1]) == (0, steps[-1])
    assert set(view["steps"]) <= set(steps)
    gaps = np.diff(view["steps"])
    assert gaps.max() - gaps.min() <= 10  # evenly, as far as the steps allow
    said = maps_of(path).left_out
    assert said.endswith(f": {left_out}.") if left_out else said == ""


def test_the_table_tells_each_head_before_and_after(study: Path) -> None:
    made = attention(read(study))
    assert made is not None
    (table,) = made.tables
    assert [column.label for column in table.columns] == [
        *("arm", "layer", "head"),
        *("entropy", "distance", "first", "diagonal", "previous", "induction"),
    ]
    assert len(table.rows) == 2 * 2 * 3
    result = json.loads((study / "runs" / "dot" / "0" / "result.json").read_text("utf-8"))
    kept = result["exhibits"]["attention"]["heads"]
    before, after = (kept[at][1]["entropy"][2] for at in (0, -1))
    assert table.rows[5].cells[3].text == f"{before:.2f} → {after:.2f}"
    assert "within 0.002 of" in made.note
    assert made.pictures == []  # two points make no curve


def test_curves_where_there_are_points_enough(tmp_path: Path) -> None:
    path = add_maps(SMALL.write(tmp_path / "study"), steps=(0, 100, 200, 400))
    made = attention(read(path))
    assert made is not None
    induction, heads = made.pictures
    assert (induction.key, heads.key) == ("induction", "heads")
    rows = induction.csv.splitlines()
    # Every head of every seed at every step, and every seed's loss.
    assert len(rows) - 1 == 2 * 3 * 4 * (2 * 3 + 1)
    assert "loss, said again" in induction.csv
    assert "the best head ends at" in induction.label
    assert len(heads.csv.splitlines()) - 1 == 2 * 4 * (2 * 3) * 5  # one seed of each arm, five measures
    assert '"steps": [0, 100, 200, 400]' in str(made.markup)


def test_an_arm_without_maps_says_why(tmp_path: Path) -> None:
    path = add_maps(SMALL.write(tmp_path / "study"), without=("additive",), signed=("dot",))
    page = report.write(path).read_text("utf-8")
    assert "No maps of additive: one vector stands for &lt;all&gt; tokens." in page
    views = embedded(page)["views"]
    assert views[0]["maps"][0]["0/0"]["signed"]
    assert views[2]["layers"][0]["without"] == "one vector stands for <all> tokens"


def test_a_study_without_maps_has_no_such_section(tmp_path: Path) -> None:
    path = SMALL.write(tmp_path / "study")
    assert attention(read(path)) is None
    assert 'class="maps"' not in report.write(path).read_text("utf-8")
    with pytest.raises(StoreError, match=r"holds no attention maps.*measure\.probes"):
        maps_of(path)


def test_figures_remain_where_the_files_are_gone(study: Path) -> None:
    for folder in study.glob("runs/*/*/maps"):
        shutil.rmtree(folder)
    made = attention(read(study))
    assert made is not None
    assert made.tables
    assert str(made.markup) == ""


def test_a_notebook_shows_a_page_of_its_own(study: Path) -> None:
    viewer = maps_of(study)
    shown = viewer._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert "<script" not in shown  # all of it is quoted
    page = viewer.page("What is <seen>")
    assert SCRIPT in page
    assert STYLE in page
    assert "What is &lt;seen&gt;" in page


def test_no_token_can_end_the_element_it_stands_in() -> None:
    view = {"name": "</script><script>alert(1)</script>", "layers": [], "maps": []}
    markup = str(Viewer([view], file='a"b').markup())
    assert markup.count("<script") == markup.count("</script>") == 1
    assert 'data-file="a&#34;b"' in markup
