"""Tuning pretrained models as a kind of study, on a tiny encoder: searched, judged, resumed; traps named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

for needed in ("transformers", "peft", "optuna"):
    pytest.importorskip(needed, reason=f"{needed} is not here")

from attnlab.errors import DeclarationError, RequestError  # noqa: E402
from attnlab.report import write  # noqa: E402
from attnlab.study import built_in_studies, load_study, run  # noqa: E402
from attnlab.study.cellwork import Workplace  # noqa: E402
from attnlab.study.store import Cell, open_study  # noqa: E402

from ..adapt import tiny  # noqa: E402
from .small import InProcess, measured  # noqa: E402
from .small_tuning import HEAD, SEARCH, arms, write_texts  # noqa: E402


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return write_texts(tmp_path)


def declared(place: Path, text: str, name: str = "study.toml") -> Path:
    (place / name).write_text(text)
    return place / name


def results(place: Path, text: str, out: str = "out", **options: Any) -> Mapping[str, Any]:
    return run(declared(place, text), out=place / out, on=InProcess(), **options).plain


def test_arms_are_searched_run_afresh_judged_and_reported(place: Path) -> None:
    text = HEAD + SEARCH + arms('"full"', '"head"\namount = "head"', '"LoRA"\namount = "lora"')
    found = results(place, text)
    assert [arm["status"] for arm in found["arms"]] == ["ok"] * 3
    assert {verdict["metric"] for verdict in found["verdicts"]} == {"test_accuracy"}
    counts = {arm["name"]: arm["parameters"] for arm in found["arms"]}
    assert counts["head"] == 2 * 16 + 2
    for arm in ("full", "head", "lora"):
        kept = [json.loads((place / f"out/runs/{arm}/{seed}/result.json").read_text()) for seed in (0, 1)]
        searches = [one["exhibits"]["search"] for one in kept]
        assert searches[0] == searches[1]  # one search for all seeds of an arm
        search = searches[0]
        assert len(search["trials"]) == 3
        best = search["trials"][search["chosen"]]
        assert best["best"] == max(one["best"] for one in search["trials"] if one["best"] is not None)
        assert kept[0]["exhibits"]["amount"]["learning_rate"] == best["setting"]["learning_rate"]
        assert search["corrected"]["corrected"] <= search["corrected"]["value"]
        assert kept[0]["metrics"]["test_accuracy"] != kept[1]["metrics"]["test_accuracy"] or arm == "head"
    curve = (place / "out/runs/full/0/metrics.jsonl").read_text()
    for what in ("train_accuracy", "train_loss", "dev_accuracy", "dev_loss"):
        assert curve.count(f'"{what}"') == json.loads(curve.splitlines()[-1])["step"] // (
            json.loads(curve.splitlines()[-1])["of"] // 2
        )
    page = write(place / "out").read_text()
    assert "What was tried" in page
    assert "2d + 2" in page
    assert "perplexity" not in page


class _Stops:
    """Wishes for an end after so many looks."""

    def __init__(self, after: int) -> None:
        self.left = after

    @property
    def to_stop(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("after", [3, 30, 61, 75])
def test_an_interrupted_study_ends_at_the_same_numbers(place: Path, after: int) -> None:
    """In the midst of a search, of a trial, of a run."""
    text = HEAD + SEARCH + arms('"full"')
    whole = results(place, text, "whole", seeds=1)
    again = load_study(declared(place, text)).with_seeds(1)
    from attnlab.study.store import Store

    store = Store(place / "cut")
    store.open_for(again, {"environment": {}})
    cell = Cell("full", 0)
    outcome = Workplace(store, store.study(), 0.0).work_on(cell, lambda event, about: None, _Stops(after))
    assert outcome == "interrupted"
    cut = results(place, text, "cut", seeds=1)

    def numbers(found: Mapping[str, Any]) -> Any:
        kept = measured(found)["full", 0]
        return kept[0], {k: v for k, v in kept[1].items() if "seconds" not in k}

    assert numbers(cut) == numbers(whole)
    result = open_study(place / "cut").result(cell)
    assert result is not None


def test_one_answer_for_everything_is_named_and_never_equal(place: Path) -> None:
    """A learning rate at which nothing is learned: said while it runs, and no verdict but invalid."""
    notes: list[str] = []

    class Told(InProcess):
        def run(self, store: Any, cells: Any, plan: Any, listener: Any) -> None:
            workplace = Workplace(store, store.study())
            for cell in cells:
                workplace.work_on(cell, lambda event, about: notes.append(str(about)), _Stops(10**9))

    no_rate = 'optimizer = { part = "sgd", learning_rate = 1e-12 }'
    text = HEAD + arms('"tuned"', f'"no rate"\n{no_rate}\n"model.fresh" = true')
    found = run(declared(place, text), out=place / "out", on=Told()).plain
    arm = found["arms"][1]
    verdict = found["verdicts"][0]
    assert (arm["status"], verdict["verdict"]) == ("invalid", "invalid")
    assert "collapsed: 100.0% of the answers are" in verdict["sentence"]
    assert "The learning rate is too high or too low" in verdict["sentence"]
    assert any("after 1 epochs: collapsed" in note for note in notes)
    assert found["arms"][0]["status"] == "ok"  # the twin that learned
    assert "noise_floor" in found


def test_a_baseline_that_collapsed_has_no_noise_floor(place: Path) -> None:
    """Its accuracy is the same for every seed, and says nothing of how far seeds move a result."""
    no_rate = 'optimizer = { part = "sgd", learning_rate = 1e-12 }'
    found = results(place, HEAD + arms(f'"no rate"\n{no_rate}\n"model.fresh" = true', '"tuned"'))
    assert [arm["status"] for arm in found["arms"]] == ["invalid", "ok"]
    assert "noise_floor" not in found


def test_ten_items_leave_two_good_arms_undecided(place: Path) -> None:
    lines = (place / "test.txt").read_text().splitlines()
    (place / "test.txt").write_text("\n".join(lines[:10]) + "\n")
    found = results(place, HEAD + arms('"full"', '"LoRA"\namount = "lora"'), seeds=3)
    assert [verdict["verdict"] for verdict in found["verdicts"]] == ["undecided"]


def test_a_trial_that_has_no_places_for_its_prefix_says_so(place: Path) -> None:
    space = '"amount" = [{ part = "prefix", length = 21 }]'
    text = HEAD + f'[search]\npart = "grid"\n[search.space]\n{space}\n' + arms('"a"')
    found = results(place, text, seeds=1)
    assert "positions for 40 tokens" in found["arms"][0]["runs"][0]["reason"]


def test_a_head_among_the_trials_gets_the_features_of_the_checkpoint(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not those of a body that the arm has without its search, here one of random weights."""
    space = '"model.fresh" = [false]'
    search = f'[search]\npart = "grid"\n[search.space]\n{space}\n'
    arm = arms('"a"\namount = "head"\n"model.fresh" = true')
    head = HEAD.replace("longest = 20", "longest = 20\ndropout = 0.0")
    quick = results(place, head + search + arm, "quick", seeds=1)
    monkeypatch.setattr("attnlab.study.kinds.tuning_bench.frozen_features", lambda model, views: None)
    slow = results(place, head + search + arm, "slow", seeds=1)
    one, other = (measured(found)["a", 0][1] for found in (quick, slow))
    for name in ("test_loss", "dev_loss", "test_accuracy"):
        assert one[name] == pytest.approx(other[name], abs=1e-4), name


@pytest.mark.parametrize(("keep", "choose"), [("last", "accuracy"), ("best", "loss")])
def test_a_search_goes_by_the_state_that_a_run_keeps(place: Path, keep: str, choose: str) -> None:
    text = (HEAD + SEARCH).replace("epochs = 2\n", f'epochs = 2\nkeep = "{keep}"\n')
    text += f'[measure]\nchoose = "{choose}"\n' + arms('"a"')
    results(place, text, seeds=1)
    kept = json.loads((place / "out/runs/a/0/result.json").read_text())["exhibits"]["search"]
    for trial in kept["trials"]:
        if trial["best"] is not None:
            values = [value for _, value in trial["values"]]
            assert trial["best"] == (values[-1] if keep == "last" else min(values))
    assert ("corrected" in kept) == (choose == "accuracy")
    assert ("chosen by loss" in write(place / "out").read_text()) == (choose == "loss")


def test_features_computed_once_change_no_result(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (HEAD + arms('"head"\namount = "head"')).replace("longest = 20", "longest = 20\ndropout = 0.0")
    quick = results(place, text, "quick", seeds=1)
    monkeypatch.setattr("attnlab.study.kinds.tuning_bench.frozen_features", lambda model, views: None)
    slow = results(place, text, "slow", seeds=1)
    for name, value in measured(slow)["head", 0][1].items():
        assert measured(quick)["head", 0][1][name] == pytest.approx(value, abs=1e-4), name


def test_a_foreign_tokenizer_stops_the_study(place: Path) -> None:
    tiny.bert(place / "other", (*tiny.SPECIAL, *reversed(tiny.WORDS[len(tiny.SPECIAL) :])))
    text = HEAD.replace('checkpoint = "./bert"', 'checkpoint = "./bert"\ntokenizer = "./other"') + arms('"a"')
    with pytest.raises(RequestError, match="this tokenizer is not the one of"):
        results(place, text)


def test_texts_longer_than_the_positions_are_refused(place: Path) -> None:
    text = HEAD + arms('"prefix"\namount = { part = "prefix", length = 21 }')
    with pytest.raises(RequestError, match="positions for 40 tokens"):
        results(place, text)


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ("learning_rat = [1e-3]", "did you mean 'learning_rate'"),
        ("learning_rate = [-1.0]", "greater than 0"),
        ("batch = [0, 8]", "greater than 0"),
        ('"corpus.folder" = ["a"]', "the model and the training only"),
        ('checkpoint = ["./bert", "./other"]', "read the same texts by the same checkpoint"),
        ('"model.longest" = [10, 20]', "read the same texts by the same checkpoint"),
        ('"training.precision" = ["bfloat16-head"]', "model.products"),
        ('"model.amount" = ["lorra"]', "did you mean 'lora'"),
    ],
)
def test_a_space_that_no_declaration_could_hold_is_refused_before_anything_runs(
    place: Path, space: str, said: str
) -> None:
    text = HEAD + f'[search]\npart = "random"\n[search.space]\n{space}\n' + arms('"a"')
    with pytest.raises(DeclarationError, match=said):
        load_study(declared(place, text))


def test_a_mistake_in_the_search_is_told_once_and_not_of_every_arm_that_changes_its_space(
    place: Path,
) -> None:
    text = HEAD + '[search]\npart = "random"\n[search.space]\nlearning_rat = [1e-3]\n'
    text += arms('"a"', '"b"\n"space.learning_rate" = [1e-2]', '"c"\nbatch = 0')
    with pytest.raises(DeclarationError) as told:
        load_study(declared(place, text))
    assert [problem.place for problem in told.value.problems] == [
        "search.space.learning_rat",
        "arms[2] (c).training.batch",  # one of its own
    ]


def test_an_example_is_shown_before_anything_is_trained(place: Path) -> None:
    class Notes:
        def __init__(self) -> None:
            self.said: list[str] = []

        def note(self, text: str) -> None:
            self.said.append(text)

        def __getattr__(self, name: str) -> Any:
            return lambda *about: self.said.append(name)

    notes = Notes()
    run(declared(place, HEAD + arms('"a"')), out=place / "out", on=InProcess(), seeds=1, listener=notes)
    shown = next(i for i, text in enumerate(notes.said) if text.startswith("as the model reads it: [CLS]"))
    assert "[SEP] → '" in notes.said[shown]
    assert shown < notes.said.index("planned")


@pytest.mark.parametrize("name", ["fine-tuning", "encoders", "how-much", "products"])
def test_the_built_in_studies_hold(name: str) -> None:
    study = load_study(built_in_studies()[name])
    assert study.setup.kind == "tuning"
    counts = {setup.search.count for arm in study.arms if (setup := study.setup_of(arm.name)).search}
    assert len(counts) <= 1  # as many trials for every arm
