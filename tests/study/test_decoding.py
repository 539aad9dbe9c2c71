"""Decoding strategies as a study: trained within, written, measured, continued, judged and drawn."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.decoding import Continuation, OwnWriter, Recipe, write
from attnlab.errors import AttnlabError, DeclarationError, RequestError
from attnlab.evaluation.written import own_loss
from attnlab.report import write as write_report
from attnlab.report.exhibits.chances import chances
from attnlab.report.exhibits.decoding import decoding
from attnlab.report.reading import read
from attnlab.study import load_study, run
from attnlab.study.kinds.decoding import MEASURES, Decoding
from attnlab.study.scribe import written_run
from attnlab.study.trained import open_writer
from attnlab.study.within import trained_writer
from attnlab.training import Interrupted

from .small import InProcess
from .small_decoding import DECLARATION, write_study


class Watching:
    """An observer that stops after so many rows."""

    def __init__(self, rows: int = 10**6) -> None:
        self.left, self.begun, self.notes = rows, list[int](), list[str]()

    def begin(self, step: int) -> None:
        self.begun.append(step)

    def row(self, row: Mapping[str, Any]) -> None:
        self.left -= 1

    def note(self, text: str) -> None:
        self.notes.append(text)

    def should_save(self) -> bool:
        return False

    def should_stop(self) -> bool:
        return self.left <= 0


@pytest.fixture
def declared(tmp_path: Path) -> Path:
    return write_study(tmp_path)


def setup_in(file: Path, arm: str = "plain") -> Decoding:
    setup = load_study(file).setup_of(arm)
    assert isinstance(setup, Decoding)
    return setup


def test_a_study_is_run_judged_and_drawn(declared: Path, tmp_path: Path) -> None:
    results = run(declared, out=tmp_path / "out", on=InProcess())
    assert results.is_clean
    assert not results.failed
    assert [verdict["arm"] for verdict in results.verdicts] == ["greedy", "two filters", "beam"]
    assert {verdict["metric"] for verdict in results.verdicts} == {"repetition"}
    runs = {arm["name"]: arm["runs"] for arm in results.plain["arms"]}
    greedy, plain = runs["greedy"][0]["metrics"], runs["plain"][0]["metrics"]
    assert greedy["model_loss"] < plain["model_loss"]
    assert greedy["self_bleu"] == pytest.approx(100)
    assert plain["self_bleu"] < 95
    assert all(one["evaluation_seconds"] > 0 for one in (*runs["greedy"], *runs["plain"]))
    assert greedy["distinct_2"] < plain["distinct_2"]
    assert plain["second_perplexity"] == pytest.approx(math.exp(plain["second_loss"]))
    # Chance has no part in the one, and in the other another part with every seed.
    assert [one["metrics"]["length"] for one in runs["greedy"]] == [greedy["length"]] * 2
    assert runs["plain"][0]["metrics"]["model_loss"] != runs["plain"][1]["metrics"]["model_loss"]

    page = write_report(results.path).read_text("utf-8")
    assert page.count('class="side-by-side"') == 2
    assert "divide logits by 0.7, then keep the likeliest that make up 0.7, then draw" in page
    assert "all 4 are this one" in page
    assert "the held-out text itself" in page
    assert "Token 1 after “a cat sees”" in page
    assert "Token 3 after “a cat sees”" in page
    assert "No column of beam, which compares more than the chances of one token." in page

    kept = json.loads((results.path / "runs/two-filters/0/result.json").read_text())
    assert set(kept["items"]["prompts"]["values"]) == {*MEASURES, "tokens_per_second"}
    assert kept["items"]["prompts"]["names"][0] == "a cat sees"
    step = kept["exhibits"]["decoding"]["steps"][0]
    assert 1 <= step["kept"] < step["of"]
    left = sum(one["after"] for one in step["likeliest"]) + step["rest"]["after"]
    assert left == pytest.approx(1.0)
    assert sum(one["chance"] for one in step["likeliest"]) + step["rest"]["chance"] == pytest.approx(1.0)


def test_arms_with_a_model_of_their_own_share_no_table_of_chances(declared: Path, tmp_path: Path) -> None:
    """Nor the perplexity of the held-out texts; and an arm that shows less takes nothing from the others."""
    arms = DECLARATION.replace("seeds = 2", "seeds = 1").partition("[[arms]]")[0]
    arms += '[[arms]]\nname = "one"\nstrategy = "plain"\n[[arms]]\nname = "same"\nstrategy = "top-k=3"\n'
    arms += '[[arms]]\nname = "other"\nstrategy = "plain"\nwriter = { run = 1 }\n'
    arms += "written = { likeliest = 3, shown = 1 }\n"
    declared.write_text(arms)
    study = read(run(declared, out=tmp_path / "out", on=InProcess()).path)
    exhibit = chances(study)
    assert exhibit is not None
    columns = [[column.label for column in table.columns[3:]] for table in exhibit.tables]
    assert columns == [["one", "same"]] * 2 + [["other"]] * 2
    assert [len(table.rows) for table in exhibit.tables] == [8, 8, 6, 6]
    shown = decoding(study)
    assert shown is not None
    assert shown.markup.count("<strong>other</strong>") == 1
    assert shown.markup.count("<strong>one</strong>") == 2
    (people,) = (row for row in shown.tables[0].rows if row.cells[0].text == "the held-out text itself")
    assert people.cells[1].text == "–"  # perplexity under the model
    assert people.cells[3].text[0].isdigit()  # how long it is


def test_a_run_that_is_stopped_goes_on_to_the_same(declared: Path, tmp_path: Path) -> None:
    bench = setup_in(declared).prepare(declared.parent)
    whole = written_run(bench, "plain", 1, _made(tmp_path / "whole"), Watching())
    folder, stopped = _made(tmp_path / "stopped"), Watching(rows=2)
    with pytest.raises(Interrupted):
        written_run(bench, "plain", 1, folder, stopped)
    going_on = Watching()
    again = written_run(bench, "plain", 1, folder, going_on)
    assert (stopped.begun, going_on.begun) == ([0], [2])
    values = [dict(one.items["prompts"].values) for one in (whole, again)]
    speeds = [value.pop("tokens_per_second") for value in values]
    assert values[0] == values[1]
    assert speeds[0] != speeds[1]
    assert whole.exhibits == again.exhibits
    (folder / "written.json").write_text("[{]")  # damaged: written again, to the same words
    assert written_run(bench, "plain", 1, folder, Watching()).exhibits == whole.exhibits


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_the_decoder_is_trained_once_and_goes_on_where_it_was(declared: Path, tmp_path: Path) -> None:
    bench = setup_in(declared).prepare(declared.parent)
    trained, models = bench.setup.trained, bench.trained

    class Stopping(Watching):
        steps = 7

        def should_stop(self) -> bool:
            self.steps -= 1
            return self.steps <= 0

    with pytest.raises(Interrupted):
        trained_writer(trained, models, 5, Stopping())
    first = Watching()
    continued = trained_writer(trained, models, 5, first)
    assert first.notes == ["training the decoder that is to write (seed 5, 30 steps), once"]
    second = Watching()
    assert _same(continued, trained_writer(trained, models, 5, second))
    assert not second.notes
    assert not _same(continued, trained_writer(trained, models, 6, Watching()))
    whole = trained.model_copy(update={"training": trained.training.model_copy(update={"evaluations": 2})})
    # Another declaration is another file; the evaluations change nothing else, so the weights are the same.
    assert _same(continued, trained_writer(whole, models, 5, Watching()))


def _same(a: OwnWriter, b: OwnWriter) -> bool:
    pairs = zip(a.model.parameters(), b.model.parameters(), strict=True)
    return all(torch.equal(mine, others) for mine, others in pairs)


def test_what_is_measured_is_what_was_written(declared: Path, tmp_path: Path) -> None:
    bench = setup_in(declared).prepare(declared.parent)
    found = written_run(bench, "plain", 1, _made(tmp_path / "run"), Watching())
    writer = trained_writer(bench.setup.trained, bench.trained, 0, Watching())
    place, prompt = 2, found.items["prompts"].names[2]
    made = write(writer, writer.encode(prompt), Recipe(), count=4, longest=12, seed=1000 + place)
    losses = [own_loss(writer, writer.encode(prompt), one) for one in made]
    expected = sum(loss for loss, _ in losses) / sum(tokens for _, tokens in losses)
    assert found.items["prompts"]["model_loss"][place] == pytest.approx(expected)
    assert found.items["prompts"]["length"][place] == sum(len(one.tokens) for one in made) / 4


def test_a_broken_cache_makes_a_run_invalid(
    declared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnlab.decoding.compiled import CompiledReading
    from attnlab.decoding.own import StatefulReading

    for reading in (CompiledReading, StatefulReading):
        monkeypatch.setattr(
            reading, "seen", property(lambda self: 0, lambda self, value: None), raising=False
        )
    bench = setup_in(declared, "greedy").prepare(declared.parent)
    found = written_run(bench, "greedy", 0, _made(tmp_path / "run"), Watching())
    assert found.status == "invalid"
    assert found.reason is not None
    assert "away from the full pass" in found.reason


def test_a_model_of_transformers_writes_and_a_trained_one_reads(declared: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the model is of transformers")
    from tests.adapt.tiny import gpt2

    gpt2(tmp_path / "tiny")
    settings = ["writer.of=tiny", "prompts.held_out=0", "written.longest=5", "seeds=1"]
    results = run(load_study(declared, settings), out=tmp_path / "out", on=InProcess())
    assert results.is_clean, results.failed
    assert isinstance(open_writer(str(tmp_path / "tiny")).longest, int)


def test_a_run_that_has_not_ended_is_told_of_or_refused(folder: Path) -> None:
    """What it writes today it will not write tomorrow."""
    out = folder / "out"
    run(folder / "small.toml", out=out, seeds=1, on=InProcess())
    assert open_writer(str(out)).name.endswith("dot/0")
    (out / "runs" / "dot" / "0" / "result.json").unlink()
    told: list[str] = []
    open_writer(str(out), unfinished=told.append)
    (said,) = told
    assert said.endswith("dot/0: this run has not ended; this is its model after 12 steps")
    with pytest.raises(RequestError, match="run its study to the end first"):
        open_writer(str(out))


@pytest.mark.parametrize(
    ("settings", "explained"),
    [
        (["metric=fluency"], "no metric is called 'fluency'"),
        (["strategy=top-q=3"], "no strategy is called 'top-q'; did you mean"),
        (["written.continuations=0"], "written.continuations: .*greater than 0"),
        (["trained.training.keep=best"], "not measured on the way: its last state writes"),
    ],
)
def test_mistakes_in_a_declaration(declared: Path, settings: list[str], explained: str) -> None:
    with pytest.raises((DeclarationError, RequestError), match=explained):
        load_study(declared, settings)


@pytest.mark.parametrize(
    ("settings", "explained"),
    [
        (["prompts.texts=[]", "prompts.held_out=0"], "prompts: give texts, or a number of held_out ones"),
        (
            [f"prompts.texts={[f'a {n}' for n in range(999)]}", "prompts.words=1"],
            r"prompts: there are 1,00\d; 1,000 are the most",
        ),
        (["prompts.words=40"], "no sentence of the test split has more than 80 words"),
        (
            [f'prompts.texts=["{"cat " * 60}"]'],
            "has 61 tokens, and .* reads 40 at most: nothing can follow it",
        ),
        (["writer.of=nowhere"], "'nowhere' is not a directory: name the folder of a run"),
        (["second.of=package:nothing-there"], "no package 'nothing-there' is installed"),
    ],
)
def test_mistakes_that_only_the_text_tells(declared: Path, settings: list[str], explained: str) -> None:
    with pytest.raises(AttnlabError, match=explained):
        run(load_study(declared, settings), out=declared.parent / "out", on=InProcess())


def test_a_text_that_ends_at_once_has_a_loss(declared: Path) -> None:
    bench = setup_in(declared).prepare(declared.parent)
    writer = trained_writer(bench.setup.trained, bench.trained, 0, Watching())
    loss, tokens = own_loss(writer, writer.encode("a cat"), Continuation((), ended=True))
    assert tokens == 1
    assert loss > 0
