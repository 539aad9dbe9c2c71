"""Results made elsewhere: a table judged, and every table that cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnlab.errors import RequestError
from attnlab.verdict import ACCURACY, judge_many, judge_table

HEADER = "arm,seed,item,value"


@pytest.fixture
def written(tmp_path: Path) -> object:
    def write(*lines: str) -> Path:
        path = tmp_path / "results.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


def lines_of(tables: dict[str, np.ndarray], weights: np.ndarray | None = None) -> list[str]:
    lines = [HEADER + (",weight" if weights is not None else "")]
    for arm, table in tables.items():
        for (seed, item), value in np.ndenumerate(table):
            weight = f",{weights[item]}" if weights is not None else ""
            lines.append(f"{arm},{seed},text {item},{float(value)!r}{weight}")
    return lines


@pytest.fixture
def tables() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    dot = rng.normal(5, 1, size=(5, 40))
    return {
        "dot": dot,
        "additive": dot + rng.normal(-0.1, 0.01, size=dot.shape),
        "cosine": dot + rng.normal(0, 0.01, size=dot.shape),
    }


@pytest.mark.parametrize("weighted", [False, True])
def test_a_table_is_judged_as_its_arrays_are(written, tables, weighted: bool) -> None:
    weights = np.arange(1.0, 41.0) if weighted else None
    lines = lines_of(tables, weights)
    shuffled = [lines[0], *np.random.default_rng(1).permutation(lines[1:])]
    found = judge_table(written(*shuffled), baseline="dot", margin=0.02)
    arms = {name: table for name, table in tables.items() if name != "dot"}
    expected = judge_many(tables["dot"], arms, margin=0.02, weights=weights, baseline_name="dot")
    assert set(found) == {"additive", "cosine"}
    for name, verdict in found.items():
        assert verdict.verdict == expected[name].verdict
        assert verdict.effect == pytest.approx(expected[name].effect)
        assert verdict.ci == pytest.approx(expected[name].ci)
        assert verdict.p == pytest.approx(expected[name].p)
    assert found["additive"].verdict == "better"


def test_the_first_arm_is_the_baseline_unless_named(written, tables) -> None:
    path = written(*lines_of(tables))
    assert judge_table(path, margin=0.02)["additive"].baseline == "dot"
    assert judge_table(path, margin=0.02, baseline="additive")["dot"].verdict == "worse"


def test_accuracies_are_better_when_higher(written, tables) -> None:
    found = judge_table(written(*lines_of(tables)), margin=0.02, metric=ACCURACY)
    assert found["additive"].verdict == "worse"


def test_a_missing_run_leaves_the_pair_and_is_reported(written, tables) -> None:
    lines = [line for line in lines_of(tables) if not line.startswith("cosine,3,")]
    found = judge_table(written(*lines), margin=0.02)
    assert (found["cosine"].seeds, found["cosine"].diverged) == (4, 1)
    assert "1 run of the arm diverged or is missing" in str(found["cosine"])
    assert found["additive"].seeds == 5


def test_one_seed_is_undecided_and_says_why(written) -> None:
    verdict = judge_table(written(HEADER, "a,0,x,1.0", "b,0,x,2.0"), margin=0.1)["b"]
    assert verdict.verdict == "undecided"
    assert "one seed cannot tell" in str(verdict)


def test_a_mark_before_the_first_column_and_spaces_are_read_over(tmp_path: Path, tables) -> None:
    path = tmp_path / "sheet.csv"
    text = "\n".join(lines_of(tables)).replace(HEADER, "arm, seed, item, value")
    path.write_text(text, encoding="utf-8-sig")
    assert len(judge_table(path, margin=0.02)) == 2


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([""], "no column 'arm' and no column 'seed'"),
        (["arm,seed,value", "a,0,1"], r"no column 'item'; .*found: arm, seed, value"),
        ([HEADER], "no row follows"),
        ([HEADER, "a,0,x,1", "b,0,x,fast"], "line 3: value 'fast' is not a number"),
        ([HEADER, "a,0,x,1", "b,0,x,nan"], "line 3: value is nan: leave out all rows of a run that diverged"),
        ([HEADER, "a,0,x,1", "b,0,x,"], "line 3: value is empty"),
        ([HEADER, "a,0,x,1", "b,0,x,1,2"], "line 3: more cells than columns"),
        (
            [HEADER, "a,0,x,1", "b,0,x,1", "a,0,x,2"],
            "line 4: arm 'a', seed 0, item 'x' stands on line 2 already",
        ),
        ([HEADER, "a,0,x,1", "a,1,x,1"], "only one arm, 'a'"),
        ([HEADER, "a,0,x,1", "b,1,x,1"], "arm 'b' and 'a' have no seed in common"),
        ([HEADER, "a,0,x,1", "b,0,y,1"], "arm 'b', seed 0: lacks 1 of the 1 items of 'a': x"),
        ([HEADER, "a,0,x,1", "b,0,x,1", "b,0,y,1"], "arm 'b', seed 0: has items that 'a' does not have"),
        (
            [HEADER, "a,0,x,1", "a,0,y,1", "a,1,x,1", "b,0,x,1", "b,0,y,1"],
            "arm 'a', seed 1: lacks 1 of the 2 items of 'a': y",
        ),
        ([HEADER + ",weight", "a,0,x,1,2", "b,0,x,1,3"], "line 3: item 'x' weighs 3.0, but 2.0 on line 2"),
        ([HEADER + ",weight", "a,0,x,1,-2", "b,0,x,1,-2"], "line 2: weight is -2.0"),
        ([HEADER + ",weight", "a,0,x,1,heavy", "b,0,x,1,1"], "line 2: weight 'heavy' is not a number"),
    ],
)
def test_bad_tables_are_named(written, lines: list[str], says: str) -> None:
    with pytest.raises(RequestError, match=says):
        judge_table(written(*lines), margin=0.1)


def test_all_problems_are_found_at_once(written) -> None:
    with pytest.raises(RequestError) as raised:
        judge_table(written(HEADER, "a,0,x,one", "b,0,x,inf", "c,,x,1"), margin=0.1)
    assert "3 problems" in str(raised.value)


def test_an_unknown_baseline_has_a_nearest_match(written, tables) -> None:
    with pytest.raises(RequestError, match="no arm is called 'additiv'; did you mean 'additive'"):
        judge_table(written(*lines_of(tables)), margin=0.1, baseline="additiv")


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no such file"):
        judge_table(tmp_path / "none.csv", margin=0.1)
    (tmp_path / "picture.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(RequestError, match="cannot be read as a CSV file"):
        judge_table(tmp_path / "picture.csv", margin=0.1)
    with pytest.raises(RequestError, match="cannot be read as a CSV file"):
        judge_table(tmp_path, margin=0.1)
