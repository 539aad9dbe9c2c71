"""The kind `classifier`: what a run keeps, how it is judged, what it refuses, that it goes on bit for bit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.errors import AttnlabError
from attnlab.evaluation.maps.shot import Shot, shots_in
from attnlab.record import Check, Items, RunResult
from attnlab.report import write as write_report
from attnlab.study import load_study, run
from attnlab.study.cellwork import Workplace
from attnlab.study.kind import Held
from attnlab.study.results import judged
from attnlab.study.store import Cell, Store
from attnlab.study.study import Arm
from attnlab.tokens.vocabulary import Vocabulary
from attnlab.training import Checkpoint
from attnlab.verdict import Metric

from .small import InProcess, measured
from .small_classifier import PRETRAINED, lines, write_study


def ran(study: Path, *settings: str, out: str = "out", seeds: int = 2) -> dict[str, Any]:
    results = run(study, out=study.parent / out, seeds=seeds, settings=settings, on=InProcess())
    return dict(results.plain)


def result_of(out: Path, arm: str = "mean", seed: int = 0) -> dict[str, Any]:
    return dict(json.loads((out / "runs" / arm / str(seed) / "result.json").read_text("utf-8")))


def test_a_study_of_classifiers_is_run_judged_and_reported(tmp_path: Path) -> None:
    plain = ran(write_study(tmp_path))
    assert [arm["status"] for arm in plain["arms"]] == ["ok", "ok"]
    assert [(v["arm"], v["metric"]) for v in plain["verdicts"]] == [("first", "test_accuracy")]
    assert {(v["baseline"], v["arm"]) for v in plain["floor_verdicts"]} == {
        (floor, arm) for floor in ("majority", "TF-IDF, logistic regression") for arm in ("mean", "first")
    }
    result = result_of(tmp_path / "out")
    metrics, test = result["metrics"], result["items"]["test"]
    assert metrics["test_accuracy"] == pytest.approx(np.mean(test["values"]["correct"]))
    counts = np.array(result["exhibits"]["confusion"]["splits"]["test"])
    assert metrics["test_accuracy"] == pytest.approx(counts.trace() / 70)
    assert metrics["test_accuracy"] > max(0.85, metrics["test_accuracy_untrained"])
    # Ten of the test texts are the first ten of the training file, of which some are held out for dev.
    held_out = {f"train.txt:{line}" for line in range(1, 11)} & set(result["items"]["dev"]["names"])
    assert len(result["items"]["test-unseen"]["names"]) == 60 + len(held_out)
    checks = {check["name"]: check["status"] for check in result["checks"]}
    assert checks == {"row-sums": "pass", "padding": "pass", "one-answer": "pass"}
    audited = plain["arms"][0]["audit"]["checks"]
    assert {"shape", "determinism", "batch", "padding", "reads"} <= {check["name"] for check in audited}
    page = write_report(tmp_path / "out").read_text("utf-8")
    assert "perplexity" not in page.split("<article")[1].split("<footer")[0]
    for told in ("before training", "Mind the overlap", "The surest mistakes", "Held-out accuracy"):
        assert told in page
    assert "The arms against the floors" in page


def test_a_floor_is_paired_with_an_arm_on_the_very_items(tmp_path: Path) -> None:
    """The difference that a verdict tells is that of the two accuracies."""
    plain = ran(write_study(tmp_path))
    floors = json.loads((tmp_path / "out" / "study.json").read_text())["floors"]
    for verdict in plain["floor_verdicts"]:
        arm = next(arm for arm in plain["arms"] if arm["name"] == verdict["arm"])
        mean = np.mean([run["metrics"]["test_accuracy"] for run in arm["runs"]])
        assert verdict["effect"] == pytest.approx(mean - floors[verdict["baseline"]]["accuracy"])


def test_one_answer_for_all_is_named_and_such_an_arm_is_never_equivalent(tmp_path: Path) -> None:
    study = write_study(tmp_path, '\n[[arms]]\nname = "stuck"\ntokens.maximum = 1\n')
    plain = ran(study)
    stuck = next(arm for arm in plain["arms"] if arm["name"] == "stuck")
    assert stuck["status"] == "invalid"
    reason = result_of(tmp_path / "out", "stuck")["reason"]
    assert "100.0% of the answers are" in reason
    assert "nothing was learned from the texts" in reason
    verdict = next(v for v in plain["verdicts"] if v["arm"] == "stuck")
    assert verdict["verdict"] == "invalid"


def test_a_note_tells_of_one_answer_while_the_study_runs(tmp_path: Path) -> None:
    study = load_study(write_study(tmp_path), ["tokens.maximum=1"])
    run(study, out=tmp_path / "out", seeds=1, on=InProcess())
    shutil.rmtree(tmp_path / "out" / "runs" / "mean")
    heard: list[str] = []

    class GoesOn:
        to_stop = False

    workplace = Workplace(Store(tmp_path / "out"), Store(tmp_path / "out").study())
    workplace.work_on(
        Cell("mean", 0),
        lambda event, about: heard.append(str(about.get("text"))) if event == "note" else None,
        GoesOn(),  # type: ignore[arg-type]
    )
    assert len(heard) == 1
    assert heard[0].startswith("collapsed: 100.0%")


@pytest.mark.parametrize(("failed", "word"), [((), "equivalent"), ((3,), "undecided")])
def test_arms_that_agree_are_not_equivalent_where_a_run_gave_one_answer(failed: Any, word: str) -> None:
    held = Held("test", "correct", Metric("test_accuracy", "higher"))

    class Asked:
        judged_by, margin, baseline = held, 0.05, Arm(name="old")

    values = {"correct": tuple((np.random.default_rng(0).random(600) < 0.7).astype(float))}
    items = {"test": Items(tuple(map(str, range(600))), values)}
    runs = {
        name: [
            RunResult(
                name,
                seed,
                "ok",
                items=items,
                checks=(Check("one-answer", "fail" if name == "new" and seed in failed else "pass", ""),),
            )
            for seed in range(5)
        ]
        for name in ("old", "new")
    }
    (verdict,) = judged(Asked(), runs, {})  # type: ignore[arg-type]
    assert verdict.verdict == word
    assert ("a check failed in runs of it (new, seeds 3)" in verdict.reason) == bool(failed)


class StopsAfter:
    def __init__(self, steps: int) -> None:
        self.left = steps

    @property
    def to_stop(self) -> bool:
        self.left -= 1
        return self.left <= 0


@pytest.mark.parametrize(("stopped_after", "keep"), [(3, "last"), (20, "last"), (28, "best")])
def test_a_pretrained_run_that_was_stopped_goes_on_bit_for_bit(
    tmp_path: Path, stopped_after: int, keep: str
) -> None:
    """While it is pretrained, and while it is trained on labels; each may keep a best state."""
    study = write_study(tmp_path, PRETRAINED.replace("steps = 8", f'steps = 8, keep = "{keep}"'))
    study.write_text(study.read_text().replace("steps = 30\n", f'steps = 30\nkeep = "{keep}"\n'))
    whole = ran(study, seeds=1)
    again = ran(study, out="broken", seeds=1)
    assert measured(whole) == measured(again)
    cell = tmp_path / "broken" / "runs" / "pretrained" / "0"
    shutil.rmtree(cell)
    workplace = Workplace(Store(tmp_path / "broken"), Store(tmp_path / "broken").study())
    outcome = workplace.work_on(
        Cell("pretrained", 0),
        lambda *_: None,
        StopsAfter(stopped_after),  # type: ignore[arg-type]
    )
    assert outcome == "interrupted"
    assert (cell / "checkpoint.safetensors").exists() == (stopped_after > 8)
    assert measured(ran(study, out="broken", seeds=1)) == measured(whole)
    mine, wanted = (tmp_path / out / "runs" / "pretrained" / "0" for out in ("broken", "out"))
    for name in ("checkpoint.safetensors", "encoder/encoder.safetensors"):
        # The time that training took is in the file too; the tensors are all else that is.
        one, two = Checkpoint.read(mine / name), Checkpoint.read(wanted / name)
        assert one.tensors.keys() == two.tensors.keys()
        assert all((one.tensors[key] == two.tensors[key]).all() for key in one.tensors)
    kept = [json.loads(line)["step"] for line in (mine / "pretraining.jsonl").read_text().splitlines()]
    assert kept == sorted(set(kept))
    assert kept[-1] == 8


def test_pretraining_is_measured_beside_the_most_frequent_word(tmp_path: Path) -> None:
    study = write_study(tmp_path, PRETRAINED.replace("steps = 8", "steps = 150"))
    ran(study, seeds=1)
    result = result_of(tmp_path / "out", "pretrained")
    metrics = result["metrics"]
    assert metrics["pretraining_steps"] == 150
    cell = tmp_path / "out" / "runs" / "pretrained" / "0"
    trained, before = (
        Checkpoint.read(cell / f"{name}.safetensors").facts["progress"]["seconds"]
        for name in ("checkpoint", "pretraining")
    )
    assert before > 0
    assert result["seconds"] == pytest.approx(trained + before)  # what a run costs is all of it
    assert metrics["masked_test_loss"] < metrics["most_frequent_word_loss"]
    assert "Hidden words of held-out texts" in write_report(tmp_path / "out").read_text("utf-8")


# ---- the tokenizer travels with the encoder ----------------------------------------------------------------


def saved(directory: Path) -> str:
    return f'\n[[arms]]\nname = "saved"\nstart = {{ part = "saved", directory = "{directory}" }}\n'


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """The directory that a pretrained run left."""
    first = tmp_path / "first"
    first.mkdir()
    ran(write_study(first, PRETRAINED), seeds=1)
    return first / "out" / "runs" / "pretrained" / "0" / "encoder"


def test_an_encoder_begins_where_another_study_left_it(tmp_path: Path, encoder: Path) -> None:
    """On other texts: with the vocabulary of the first study, not one of their own."""
    study = write_study(tmp_path, saved(encoder))
    (tmp_path / "train.txt").write_text("\n".join(lines(150, seed=7)) + "\nsea a kraken\n")
    facts = load_study(study).setup_of("saved").prepare(tmp_path).facts()
    kept = Vocabulary.from_json((encoder / "tokenizer.json").read_text())
    assert facts["vocabulary"]["fingerprint"] == kept.fingerprint
    ran(study, seeds=1)
    assert result_of(tmp_path / "out", "saved")["status"] == "ok"


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("tokens.lowercase=true", "means nothing"),
        ("model.width=32", "model.width: 16 → 32"),
        ("tokens=bpe", "means nothing"),
    ],
)
def test_another_tokenizer_or_model_is_refused(
    tmp_path: Path, encoder: Path, setting: str, told: str
) -> None:
    study = write_study(tmp_path, saved(encoder))
    with pytest.raises(AttnlabError, match=told.replace("→", ".")):
        ran(study, setting, seeds=1)


def test_a_tokenizer_that_was_exchanged_is_noticed(tmp_path: Path, encoder: Path) -> None:
    other = json.loads((encoder / "tokenizer.json").read_text())
    other["words"] = other["words"][::-1]
    (encoder / "tokenizer.json").write_text(json.dumps(other))
    with pytest.raises(AttnlabError, match="would stand for other words"):
        ran(write_study(tmp_path, saved(encoder)), seeds=1)


@pytest.mark.parametrize("file", ["encoder.json", "tokenizer.json", "encoder.safetensors"])
def test_a_directory_that_lacks_a_part_is_no_encoder(tmp_path: Path, encoder: Path, file: str) -> None:
    (encoder / file).unlink()
    with pytest.raises(AttnlabError, match=str(encoder)):
        ran(write_study(tmp_path, saved(encoder)), seeds=1)


# ---- any labelled text -------------------------------------------------------------------------------------


def test_pairs_in_jsonl_are_read_as_pairs(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    rows = [line.partition(" ") for line in lines(150, seed=3)]
    plain = [{"asked": "is it the sea?", "told": text, "right": label == "sea"} for label, _, text in rows]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, plain)) + "\n")
    table = '{part="table", train="pairs.jsonl", text="asked", pair="told", label="right"}'
    probes = 'measure.probes=["a ship", ["is it", "a wave"]]'
    results = ran(study, f"corpus={table}", probes, seeds=1)
    assert results["arms"][0]["status"] == "ok"
    maps = Shot.read(shots_in(tmp_path / "out" / "runs" / "mean" / "0")[-1])
    assert [probe["text"] for probe in maps.probes] == ["a ship", "is it / a wave"]
    assert [token for token in maps.probes[1]["tokens"] if token.startswith("<S")] == [
        *("<START>", "<STOP>", "<STOP>")
    ]
    assert result_of(tmp_path / "out")["exhibits"]["confusion"]["classes"] == ["false", "true"]


@pytest.mark.parametrize("wrong", ["5", '["a", "b", "c"]', '["a"]', '["a", 5]'])
def test_a_probe_is_a_text_or_a_pair(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(
        AttnlabError, match=r"1 problem\n  measure.probes\[1\]: should be a text, or a pair"
    ) as told:
        load_study(write_study(tmp_path), [f'measure.probes=["right", {wrong}]'])
    assert wrong.replace('"', "'") in str(told.value)


def test_a_field_within_a_part_is_named_with_those_beside_it(tmp_path: Path) -> None:
    start = 'start={part="pretrained", masking={rat=0.1}, training={optimizer={part="adam-w", rate=1}}}'
    with pytest.raises(AttnlabError) as told:
        load_study(write_study(tmp_path), [start])
    masking, optimizer = (line for line in str(told.value).splitlines() if "no field" in line)
    assert "start.masking.rat" not in masking
    assert masking.endswith("'rat'; did you mean 'rate'? (valid: masked, random, rate)")
    assert "start.training.optimizer: no field is called 'rate'" in optimizer
    assert "learning_rate" in optimizer


def test_unlabelled_text_leaves_out_what_is_held_out(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    held_out = (tmp_path / "test.txt").read_text().splitlines()[:5]
    own = [f"the kraken number {number} sleeps" for number in range(20)]
    (tmp_path / "more.txt").write_text("\n".join([*own, *(line.partition(" ")[2] for line in held_out)]))
    setting = 'unlabelled={part="text", train="more.txt", document="unit"}'
    bench = load_study(study, [setting]).setup.prepare(tmp_path)
    assert bench.facts()["unlabelled"]["left out, as held-out texts"] == 5
    assert bench.facts()["unlabelled"]["units"] == 20


def test_a_corpus_without_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AttnlabError, match="has no label"):
        ran(write_study(tmp_path), 'corpus={part="text", train="train.txt", block=4}', seeds=1)


def test_a_metric_of_a_split_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    study = write_study(tmp_path, seen=0)
    with pytest.raises(AttnlabError, match="did you mean 'test_accuracy'"):
        ran(study, "metric=test-unseen_accuracy", seeds=1)


def test_a_precision_of_a_head_that_is_not_there_is_refused(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    with pytest.raises(AttnlabError, match="is for heads over a vocabulary"):
        ran(study, "training.precision=bfloat16-head", seeds=1)
    setup = load_study(study).setup.settled({"bfloat16": True})
    assert setup.plain()["training"]["precision"] == "float32"
