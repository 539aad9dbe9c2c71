"""The tables: what they figure, and how they read in a terminal, in Markdown and in LaTeX."""

from __future__ import annotations

import json
import re
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from attnlab import report
from attnlab.errors import RequestError
from attnlab.report.pictures.floors import floors_picture
from attnlab.report.reading import read
from attnlab.report.tables import arms, equal, facts, findings, texts
from attnlab.report.tables.table import Column, Table
from attnlab.report.words import headline, margin_in_words, noise, warning
from attnlab.verdict.wording import number

from .synthetic_study import (
    BARE,
    DIVERGED,
    HALF_DONE,
    HOSTILE,
    INVALID,
    LENGTHS,
    NORMAL,
    NOT_BEGUN,
    MadeUpArm,
    MadeUpStudy,
)


def test_means_and_deviations_are_those_of_the_runs(tmp_path: Path) -> None:
    directory = NORMAL.write(tmp_path / "study")
    made = arms.arms_table(read(directory))
    assert made is not None
    for row, arm in zip(
        made.rows, json.loads((directory / "results.json").read_text())["arms"], strict=False
    ):
        losses = [run["metrics"]["test_loss"] for run in arm["runs"]]
        mean, deviation = row.cells[3].text.split(" ± ")
        assert float(mean) == pytest.approx(statistics.fmean(losses), abs=1e-3)
        assert float(deviation) == pytest.approx(statistics.stdev(losses), rel=0.06)
        assert row.cells[-1].text == f"{arm['parameters']:,}"


def test_losses_by_length_have_a_table_of_their_own(tmp_path: Path) -> None:
    study = read(LENGTHS.write(tmp_path / "study"))
    made, others, runs = arms.lengths_table(study), arms.measures_table(study), arms.runs_table(study)
    assert made is not None
    assert others is not None
    assert runs is not None
    assert [column.label for column in made.columns] == ["arm", "32", "64", "128", "256"]
    given = {row.cells[0].text: [cell.text != "–" for cell in row.cells[1:]] for row in made.rows}
    assert given == {
        "learned": [True, False, False, False],
        "twice as many": [True, True, False, False],
        "rotary": [True] * 4,
        "naive": [True] * 4,
        "short": [False] * 4,
    }
    assert "beyond the last position" in made.note
    assert not any("test loss at" in column.label for column in others.columns)
    by_length = [column.label for column in runs.columns if "test loss at" in column.label]
    assert by_length == [f"test loss at {length}" for length in (32, 64, 128, 256)]
    assert arms.lengths_table(read(NORMAL.write(tmp_path / "normal"))) is None


def test_powers_of_ten_are_raised_in_latex() -> None:
    made = Table("key", "8.9 × 10⁻⁸", (Column("arm"),), ())
    assert r"8.9 $\times$ 10$^{-8}$" in made.latex()


def test_diverged_runs_stay_out_of_means_and_are_counted(tmp_path: Path) -> None:
    made = arms.arms_table(read(DIVERGED.write(tmp_path / "study")))
    assert made is not None
    runs = [column.label for column in made.columns].index("runs")
    assert [row.cells[runs].text for row in made.rows[:4]] == ["5", "4 of 5", "0 of 5", "0 of 5"]
    assert [row.kind for row in made.rows[:4]] == ["baseline", "", "diverged", "failed"]


def test_invalid_arms_are_not_given_a_difference(tmp_path: Path) -> None:
    made = arms.arms_table(read(INVALID.write(tmp_path / "study")))
    assert made is not None
    naive = made.rows[1]
    assert (naive.kind, naive.cells[1].text, naive.cells[2].text) == ("invalid", "invalid", "–")


def test_both_perplexities_side_by_side(tmp_path: Path) -> None:
    made = arms.future_table(read(INVALID.write(tmp_path / "study")))
    assert made is not None
    assert [row.cells[3].text for row in made.rows] == ["the same", "3.32×", "the same"]


def test_markdown_has_as_many_cells_in_every_line(tmp_path: Path) -> None:
    text = report.table(HOSTILE.write(tmp_path / "study"), "markdown")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    bars = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
    assert len(bars) == 1
    assert "<script>" not in text.replace("\\<", "")


def test_latex_escapes_what_latex_would_read(tmp_path: Path) -> None:
    text = report.table(HOSTILE.write(tmp_path / "study"), "latex")
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len({len(re.findall(r"(?<!\\)&", row)) for row in rows}) == 1
    assert r"100 \% \_of\_ \$x\$ \textbar{} `code` \textbackslash{} \{\#\}" in text
    assert text.count(r"\begin{") == text.count(r"\end{")


def test_terminal_says_question_verdicts_and_figures(tmp_path: Path) -> None:
    text = report.table(NORMAL.write(tmp_path / "study"))
    assert NORMAL.question in text
    assert headline(read(tmp_path / "study")) in text
    assert "▲ better" in text
    assert "\x1b" not in text  # no colours where no terminal is


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 200])
@pytest.mark.parametrize("case", [NORMAL, INVALID, DIVERGED, HALF_DONE], ids=lambda case: case.name)
def test_no_row_in_a_terminal_is_nameless_or_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: MadeUpStudy, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    study = read(case.write(tmp_path / "study"))
    text = report.table(tmp_path / "study")
    assert max(map(cell_len, text.splitlines())) <= width
    assert "…" not in text
    made = arms.arms_table(study)
    assert made is not None
    lines = text[text.index("──") :].splitlines()
    for row in made.rows:
        word = f"{row.cells[1].mark} {row.cells[1].text}".strip()
        assert any(line.startswith(row.cells[0].text.split()[0]) and word in line for line in lines)


def test_a_wide_terminal_shows_everything_on_one_line_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = NORMAL.write(tmp_path / "study")
    made = arms.arms_table(read(directory))
    assert made is not None
    shown = {}
    for width in (80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        shown[width] = report.table(directory)
    for row in made.rows:
        assert any(all(cell.text in line for cell in row.cells) for line in shown[200].splitlines())
    assert "parameters" in shown[200]
    assert "parameters" not in shown[80]


def test_the_noise_floor_stands_above_the_verdicts(tmp_path: Path) -> None:
    directory = NORMAL.write(tmp_path / "study")
    said = noise(read(directory))
    floor = json.loads((directory / "results.json").read_text())["noise_floor"]
    assert f"are {number(floor['typical_gap'])} apart in test loss on average" in said
    assert f"5 seeds find a difference of {number(floor['detectable']['5'])} four times" in said
    assert said.endswith(f"against the other half: {floor['against_itself']['verdict']}.")
    shown = " ".join(report.table(directory).split())
    assert 0 < shown.index("Noise floor") < shown.index("additive is better")
    page = report.write(directory).read_text("utf-8")
    assert page.index("Noise floor") < page.index('class="verdict"')
    assert noise(read(NOT_BEGUN.write(tmp_path / "none"))) == ""


def test_an_unknown_format_is_explained(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="did you mean 'markdown'"):
        report.table(NORMAL.write(tmp_path / "study"), "markdow")  # type: ignore[arg-type]


def test_what_an_arm_changes_is_told_beside_what_was_there(tmp_path: Path) -> None:
    made = equal.changes_table(read(INVALID.write(tmp_path / "study")))
    assert made is not None
    told = [tuple(cell.text for cell in row.cells) for row in made.rows]
    assert ("after, naive", "mask.where", "before", "after") in told
    score = equal.changes_table(read(NORMAL.write(tmp_path / "score")))
    assert score is not None
    assert [cell.text for cell in score.rows[0].cells] == ["additive", "score", "dot", "additive (hidden 48)"]


def test_an_arm_that_names_what_the_baseline_has_changes_nothing(tmp_path: Path) -> None:
    named = replace(NORMAL, arms=(MadeUpArm("dot", changes={"score": "dot"}), *NORMAL.arms[1:]))
    made = equal.changes_table(read(named.write(tmp_path / "study")))
    assert made is not None
    assert [row.cells[0].text for row in made.rows] == ["additive", "bilinear", "cosine"]


def test_what_was_not_equal_is_said(tmp_path: Path) -> None:
    tuned = replace(NORMAL, arms=(*NORMAL.arms, MadeUpArm("tuned", changes={"learning_rate": 1e-3})))
    made = equal.equal_table(read(tuned.write(tmp_path / "study")))
    assert made is not None
    held = {row.cells[0].text: row.cells[1].text for row in made.rows}
    assert held == {
        "parameters": "not equal",
        "training steps": "equal",
        "training tokens": "equal",
        "training time": "not equal",
        "seeds": "equal",
        "training settings": "not equal",
    }
    half = equal.equal_table(read(HALF_DONE.write(tmp_path / "half")))
    assert half is not None
    assert {row.cells[0].text: row.cells[1].text for row in half.rows}["seeds"] == "not equal"


def test_splits_overlap_and_provenance_are_shown(tmp_path: Path) -> None:
    study = read(NORMAL.write(tmp_path / "study"))
    made = facts.splits_table(study)
    assert made is not None
    assert [row.cells[0].text for row in made.rows] == ["train", "dev", "test"]
    overlap = [column.label for column in made.columns].index("overlap near")
    assert [row.cells[overlap].text for row in made.rows] == ["–", "1.2 %", "0.9 %"]
    assert ("source", "made up for a test") in facts.corpus_facts(study)


def test_the_derivation_adds_up(tmp_path: Path) -> None:
    for made in facts.parameter_tables(read(NORMAL.write(tmp_path / "study"))):
        *rows, total = [int(row.cells[-1].text.replace(",", "")) for row in made.rows]
        assert sum(rows) == total


def test_findings_name_the_seeds_that_saw_them(tmp_path: Path) -> None:
    found = findings.failed(findings.findings(read(INVALID.write(tmp_path / "study"))))
    assert {finding.arm for finding in found} == {"after, naive"}
    assert {finding.seeds for finding in found} == {(), (0,), (1,), (2,)}


def test_sentences_are_scored_by_every_arm(tmp_path: Path) -> None:
    made = texts.sentences_table(read(NORMAL.write(tmp_path / "study")))
    assert made is not None
    assert made.spans() == [4, 0, 0, 0, 4, 0, 0, 0]
    assert {row.cells[0].text: row.cells[3].text for row in made.rows} == {
        "The quick brown fox jumps over the lazy dog.": "0",
        "Nothing < certain & nothing > sure.": "1",
    }
    assert "a low perplexity says little" in made.note


def test_tables_without_their_facts_are_not_made(tmp_path: Path) -> None:
    study = read(BARE.write(tmp_path / "study"))
    assert facts.splits_table(study) is None
    assert facts.floors_table(study) is None
    assert texts.sentences_table(study) is None
    assert arms.future_table(study) is None
    assert facts.parameter_tables(study) == []


def test_a_floor_that_no_arm_beats_is_named(tmp_path: Path) -> None:
    directory = NORMAL.write(tmp_path / "study")
    assert warning(read(directory)) == ""
    study = json.loads((directory / "study.json").read_text())
    study["floors"]["trigram"]["perplexity"] = 105.8
    (directory / "study.json").write_text(json.dumps(study))
    assert "the trigram has 105.8" in warning(read(directory))


@pytest.mark.parametrize(("margin", "said"), [(1.0, "1 nat, "), (0.5, "0.5 nats, "), (2.0, "2 nats, ")])
def test_one_nat_is_one(tmp_path: Path, margin: float, said: str) -> None:
    study = read(replace(NORMAL, margin=margin).write(tmp_path / "study"))
    assert margin_in_words(study).startswith(said)


def test_floors_in_the_metric_itself_where_more_is_better(tmp_path: Path) -> None:
    directory = NORMAL.write(tmp_path / "study")
    for path in directory.glob("runs/*/*/result.json"):
        run = json.loads(path.read_text())
        run["metrics"] = {"test_accuracy": 0.8}
        path.write_text(json.dumps(run))
    for name in ("study.json", "results.json"):
        kept = json.loads((directory / name).read_text())
        kept["study"]["metric"] = "test_accuracy"
        kept["better"] = "higher"
        kept["floors"] = {"majority": {"accuracy": 0.4}, "TF-IDF": {"accuracy": 0.9}}
        (directory / name).write_text(json.dumps(kept))
    study = read(directory)
    assert not study.metric.lower_is_better
    assert "test accuracy is 0.8000; the TF-IDF has 0.9000" in warning(study)
    assert "majority" not in warning(study)
    picture = floors_picture(study)
    assert picture is not None
    assert "test accuracy (higher is better)" in picture.wide
    assert "log scale" not in picture.wide
