"""What the page shows of a directory of studies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attnlab.web.progress import MOST, Progress, progress, shown
from attnlab.web.shelf import Shelf

from .page import Page


def test_every_study_is_listed_with_its_words(page: Page) -> None:
    text = page.ask("/").text
    for name in ("score", "masking", "projections"):
        assert f'<a href="/studies/{name}">{name}</a>' in text
    assert "half%20done" in text
    assert "invalid" in text
    assert "broken" in text  # and says so, instead of taking the others with it
    assert "cannot be read" in text


def test_what_a_study_says_is_text(page: Page) -> None:
    for path in ("/", "/studies/hostile", "/compare?run=hostile/100-_of_-x-code"):
        text = page.ask(path).text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
    assert page.ask("/studies/hostile").status == 200


def test_a_half_done_study_says_how_far_it_is(page: Page, root: Path) -> None:
    runs = progress(root / "half done", ("dot", "additive", "bilinear"), 3)
    assert [run.status for run in runs] == ["ok"] * 4 + ["running"] + ["waiting"] * 4
    (under_way,) = (run for run in runs if run.status == "running")
    assert (under_way.arm, under_way.seed, under_way.step, under_way.of) == ("additive", 1, 130, 400)
    assert 0.3 < under_way.share < 0.35
    text = page.ask("/studies/half%20done").text
    assert "Read the report so far" in text
    assert "130" in text


def test_a_damaged_result_is_said_of_its_run_alone(tmp_path: Path) -> None:
    for seed, told in enumerate(("{", "[]", '{"status": "ok"}')):
        run = tmp_path / "runs" / "dot" / str(seed)
        run.mkdir(parents=True)
        (run / "spec.json").write_text(json.dumps({"arm": "dot", "seed": seed}))
        (run / "result.json").write_text(told)
    (tmp_path / "runs" / "dot" / "3").mkdir()
    (tmp_path / "runs" / "dot" / "3" / "spec.json").write_text("[]")
    runs = progress(tmp_path, ("dot",), 4)
    assert [run.status for run in runs] == ["error", "error", "ok", "waiting"]
    assert "result.json cannot be read" in runs[0].reason


def test_curves_are_the_runs_own(page: Page, root: Path) -> None:
    drawn = json.loads(page.ask("/studies/score/curves").text)
    assert set(drawn["quantities"]) == {"loss", "train_loss", "dev_loss"}
    assert len(drawn["quantities"]["loss"]) == 20
    one = drawn["quantities"]["dev_loss"][0]
    lines = (root / "score" / "runs" / "dot" / "0" / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines[:-1]]
    assert one["values"] == pytest.approx([r["dev_loss"] for r in rows if "dev_loss" in r], abs=1e-6)
    assert json.loads(page.ask("/studies/masking/curves").text)["invalid"] == ["after, naive"]


def test_runs_are_compared(page: Page) -> None:
    answer = page.ask("/compare?run=score/dot/0&run=score/additive/0&run=masking/after--naive/1")
    assert answer.status == 200
    assert "test perplexity" in answer.text
    assert "<code>score.part</code>" in answer.text
    assert (
        page.ask(
            "/compare?" + "&".join(f"run=projections/d-=-{d}/{s}" for d in range(6) for s in range(5))
        ).status
        == 422
    )
    assert "no run is called" in page.ask("/compare?run=score/dot/77").text


def test_a_report_is_served_fresh(page: Page, root: Path) -> None:
    report = page.ask("/studies/score/report")
    assert report.status == 200
    assert "Does additive attention" in report.text
    assert 'http-equiv="Content-Security-Policy"' in report.text
    written = root / "score" / "report.html"
    written.write_text("as it lies there")
    try:
        assert page.ask("/studies/score/report").text == "as it lies there"
        old = time.time() - 1e6
        os.utime(written, (old, old))
        assert "Does additive attention" in page.ask("/studies/score/report").text
    finally:
        written.unlink()
    assert "2 studies" in page.ask("/report?study=score&study=masking").text
    assert page.ask("/report").status == 422


def test_a_name_that_does_not_exist_is_answered_with_the_nearest(page: Page) -> None:
    answer = page.ask("/studies/scoer")
    assert answer.status == 404
    assert "did you mean &#39;score&#39;" in answer.text
    assert page.ask("/nothing/of/the/kind").status == 404


def test_the_shelf_is_light(root: Path) -> None:
    """A list of studies needs no torch, no pandas, nobody's statistics."""
    script = (
        "import sys; from pathlib import Path; from attnlab.web.app import make_app;"
        "from attnlab.web.settings import Settings; from attnlab.web.shelf import Shelf;"
        f"make_app(Settings(Path({str(root)!r}))); assert Shelf(Path({str(root)!r})).cards();"
        "print(sorted(set(sys.modules) & {'torch', 'scipy', 'pandas', 'altair', 'transformers', 'pydantic'}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_page_is_ready_in_a_second(root: Path) -> None:
    """Of the processor's time: from the command to the first answer, everything that it loads included."""
    page = Page(root)
    try:
        assert page.ask("/").status == 200
        fields = Path(f"/proc/{page.process.pid}/stat").read_text().rpartition(")")[2].split()
        assert (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") < 1.0
    except FileNotFoundError:
        pytest.skip("this system does not tell the time of a process under /proc")
    finally:
        assert page.close() == ""


def test_a_study_that_a_terminal_runs_is_listed_as_running(page: Page, root: Path) -> None:
    os.utime(next((root / "half done").glob("runs/*/*/metrics.jsonl")))
    (card,) = (part for part in page.ask("/list").text.split("<li id=") if "/studies/half%20done" in part)
    assert 'class="badge running"' in card


def test_cards_come_latest_first(root: Path) -> None:
    changed = [card.changed for card in Shelf(root).cards()]
    assert changed == sorted(changed, reverse=True)


def test_of_very_many_runs_the_page_shows_what_matters() -> None:
    runs = [Progress("dot", seed, f"dot/{seed}", "ok") for seed in range(10_000)]
    assert shown(runs[:MOST]) == runs[:MOST]
    runs[9_000] = Progress("dot", 9_000, "dot/9000", "running")
    runs[9_500] = Progress("dot", 9_500, "dot/9500", "failed")
    assert [run.seed for run in shown(runs)] == [*range(MOST - 2), 9_000, 9_500]


def test_a_run_that_ended_is_read_again_once_it_is_written_again(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "dot" / "0"
    run.mkdir(parents=True)
    (run / "spec.json").write_text(json.dumps({"arm": "dot", "seed": 0}))
    for at, status in enumerate(("failed", "ok")):
        (run / "result.json").write_text(json.dumps({"status": status}))
        os.utime(run / "result.json", (at, at))
        assert [run.status for run in progress(tmp_path, ("dot",), 1)] == [status]
