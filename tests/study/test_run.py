"""Running a study: what it leaves behind, doing only what is missing, refusing what changed, and arms that
go wrong."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import CorpusError, RequestError, StoreError
from attnlab.record import RunResult
from attnlab.spec import fingerprint
from attnlab.study import Store, load_study, open_study, run
from attnlab.study.curve import Curve, read_curve
from attnlab.study.store import Cell
from attnlab.training import Checkpoint
from attnlab.training.precision import gains_by_bfloat16

from .small import DECLARATION, InProcess, measured, write_corpus


def ran(folder: Path, *settings: str, seeds: int | None = None, out: str = "out") -> dict[str, Any]:
    results = run(folder / "small.toml", out=folder / out, seeds=seeds, settings=settings, on=InProcess())
    return dict(results.plain)


def with_arm(folder: Path, changes: str) -> None:
    text = DECLARATION.replace("seeds = 2", "seeds = 1").replace(
        'name = "additive"\nscore = "additive"', changes
    )
    (folder / "small.toml").write_text(text)


# ---- what it leaves behind ---------------------------------------------------------------------------------


def shape_of(value: Any, wanted: Any, place: str = "results") -> None:
    """That every key that is wanted is there, with a value of the type that is wanted."""
    if isinstance(wanted, dict):
        assert isinstance(value, dict), place
        for key, inner in wanted.items():
            assert key in value, f"{place}.{key}"
            shape_of(value[key], inner, f"{place}.{key}")
    elif isinstance(wanted, list):
        assert isinstance(value, list), place
        assert value, place
        for index, item in enumerate(value):
            shape_of(item, wanted[0], f"{place}[{index}]")
    else:
        assert isinstance(value, wanted), f"{place}: {value!r}"
        assert not (isinstance(value, bool) and wanted is not bool), place


NUMBER = (int, float)
CONTRACT = {
    "schema": int,
    "study": {
        "name": str,
        "question": str,
        "metric": str,
        "better": str,
        "baseline": str,
        "margin": NUMBER,
        "fingerprint": str,
    },
    "arms": [
        {
            "name": str,
            "status": str,
            "parameters": int,
            "audit": {
                "passed": bool,
                "checks": [{"name": str, "status": str, "evidence": str, "detail": dict}],
            },
            "runs": [
                {
                    "seed": int,
                    "status": str,
                    "metrics": {"test_loss": float, "test_perplexity": float, "dev_loss": float},
                    "seconds": NUMBER,
                    "tokens_per_second": NUMBER,
                    "evaluation_seconds": NUMBER,
                }
            ],
        }
    ],
    "verdicts": [
        {
            "arm": str,
            "baseline": str,
            "metric": str,
            "effect": NUMBER,
            "ci": [NUMBER],
            "p": NUMBER,
            "verdict": str,
            "seeds": int,
            "seeds_needed": (int, type(None)),
        }
    ],
}


def test_the_directory_of_a_study_holds_what_it_promises(folder: Path) -> None:
    plain = ran(folder)
    out = folder / "out"
    kept = json.loads((out / "results.json").read_text("utf-8"))
    assert kept == json.loads(json.dumps(plain))
    shape_of(kept, CONTRACT)
    assert kept["study"]["baseline"] == "dot"
    assert [arm["name"] for arm in kept["arms"]] == ["dot", "additive"]
    assert [verdict["arm"] for verdict in kept["verdicts"]] == ["additive"]
    assert kept["verdicts"][0]["verdict"] in ("better", "worse", "equivalent", "undecided")
    low, high = kept["verdicts"][0]["ci"]
    assert low <= kept["verdicts"][0]["effect"] <= high

    header = json.loads((out / "study.json").read_text("utf-8"))
    study = load_study(folder / "small.toml")
    assert header["fingerprint"] == study.fingerprint == kept["study"]["fingerprint"]
    assert header["study"] == study.plain()
    assert header["better"] == kept["study"]["better"] == "lower"
    assert {"torch", "python", "cpu", "cores", "threads"} <= header["environment"].keys()
    assert open_study(out).study().fingerprint == study.fingerprint

    for arm in ("dot", "additive"):
        for seed in (0, 1):
            cell = out / "runs" / arm / str(seed)
            spec = json.loads((cell / "spec.json").read_text("utf-8"))
            assert (spec["arm"], spec["seed"]) == (arm, seed)
            settled = study.setup_of(arm).settled(header["environment"])
            assert spec["fingerprint"] == fingerprint(settled.plain())
            curve = [json.loads(line) for line in (cell / "metrics.jsonl").read_text().splitlines()]
            assert [row["step"] for row in curve] == list(range(1, 13))
            assert [row["step"] for row in curve if "dev_loss" in row] == [6, 12]
            result = RunResult.from_plain(json.loads((cell / "result.json").read_text("utf-8")))
            assert (result.status, result.steps, len(result.samples)) == ("ok", 12, 2)
            assert [s["text"] for s in result.sentences] == ["the cat sees a dog", "nobody knows"]
            assert result.sentences[1]["unknown"] == 2
            losses = result.items["test"].mean("loss", "tokens")
            assert result.metrics["test_loss"] == pytest.approx(losses)
            assert result.metrics["test_perplexity"] == pytest.approx(math.exp(losses))
            assert result.metrics["prefix_perplexity"] == pytest.approx(
                result.metrics["ordinary_perplexity"], rel=1e-4
            )
            checkpoint = Checkpoint.read(cell / "checkpoint.safetensors")
            assert checkpoint.facts["progress"]["step"] == 12


def test_train_and_held_out_loss_come_from_one_function_at_one_step(folder: Path) -> None:
    """With samples as large as the splits, the last point of the curve is the result."""
    ran(folder, "measure.curve_tokens=100000", "measure.train_tokens=100000", seeds=1)
    cell = folder / "out" / "runs" / "dot" / "0"
    last = read_curve(cell / "metrics.jsonl")[-1]
    metrics = json.loads((cell / "result.json").read_text())["metrics"]
    assert last["train_loss"] == pytest.approx(metrics["train_loss"], rel=1e-12)
    assert last["dev_loss"] == pytest.approx(metrics["dev_loss"], rel=1e-6)


# ---- only what is missing ----------------------------------------------------------------------------------


def test_running_again_does_nothing(folder: Path) -> None:
    first = ran(folder)
    times = {path: path.stat().st_mtime_ns for path in folder.glob("out/runs/*/*/[!.]*")}
    assert len(times) == 4 * 5
    executor = InProcess()
    again = run(folder / "small.toml", out=folder / "out", on=executor)
    assert executor.worked_on == []
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert again.plain == first


def test_more_seeds_extend_and_fewer_show_less(folder: Path) -> None:
    first = measured(ran(folder))
    executor = InProcess()
    extended = run(folder / "small.toml", out=folder / "out", seeds=3, on=executor)
    assert executor.worked_on == [Cell("dot", 2), Cell("additive", 2)]
    assert measured(extended.plain).items() >= first.items()
    assert len(measured(extended.plain)) == 6
    assert measured(ran(folder, seeds=1)).keys() == {("dot", 0), ("additive", 0)}


def test_the_directory_of_a_study_goes_on_where_it_is(folder: Path) -> None:
    whole = ran(folder, seeds=2)
    shutil.rmtree(folder / "out" / "runs" / "additive" / "1")
    (folder / "small.toml").unlink()
    again = run(folder / "out", on=InProcess())
    assert again.path == folder / "out"
    assert measured(dict(again.plain)) == measured(whole)
    more = run(str(folder / "out"), seeds=3, on=InProcess())
    assert [r["seed"] for r in more.plain["arms"][0]["runs"]] == [0, 1, 2]
    with pytest.raises(RequestError, match="goes on as it began"):
        run(folder / "out", settings=["training.steps=3"], on=InProcess())


def test_a_cell_alone_gives_the_numbers_it_gives_among_others(folder: Path) -> None:
    whole = measured(ran(folder))
    shutil.rmtree(folder / "out" / "runs" / "additive" / "1")
    (folder / "out" / "runs" / "dot" / "0" / "result.json").write_text('{"half": ')
    executor = InProcess()
    again = run(folder / "small.toml", out=folder / "out", on=executor)
    assert executor.worked_on == [Cell("dot", 0), Cell("additive", 1)]
    assert measured(again.plain) == whole
    assert measured(ran(folder, out="elsewhere")) == whole


def test_a_study_goes_on_in_the_precision_it_began_with(folder: Path) -> None:
    def precisions() -> list[str]:
        specs = sorted(folder.glob("out/runs/dot/*/spec.json"))
        return [json.loads(spec.read_text())["setup"]["training"]["precision"] for spec in specs]

    ran(folder, seeds=1)
    ours = "bfloat16-head" if gains_by_bfloat16() else "float32"
    assert precisions() == [ours]
    header = json.loads((folder / "out" / "study.json").read_text())
    header["environment"]["bfloat16"] = not gains_by_bfloat16()  # as if another machine had begun it
    (folder / "out" / "study.json").write_text(json.dumps(header))
    ran(folder, seeds=2)
    other = "float32" if gains_by_bfloat16() else "bfloat16-head"
    assert precisions() == [ours, other]


# ---- what changed is refused -------------------------------------------------------------------------------


def test_a_changed_declaration_is_refused_with_what_changed(folder: Path) -> None:
    ran(folder, seeds=1)
    with pytest.raises(StoreError, match=r"(?s)What changed:\n  training\.steps: 12 → 13\nName another"):
        ran(folder, "training.steps=13")
    assert json.loads((folder / "out" / "study.json").read_text())["study"]["training"]["steps"] == 12


def test_another_question_or_margin_is_not_a_change(folder: Path) -> None:
    ran(folder, seeds=1)
    again = ran(folder, "question=Why?", "margin=0.5", seeds=1)
    assert (again["study"]["question"], again["study"]["margin"]) == ("Why?", 0.5)


def test_changed_code_of_the_users_own_is_refused(folder: Path) -> None:
    own = folder / "own.py"
    own.write_text(
        "from dataclasses import dataclass\nfrom attnlab.attention import Score\n"
        "@dataclass(frozen=True, kw_only=True)\nclass Mine(Score):\n"
        "    def __call__(self, q, k):\n        return 2.0 * (q @ k.transpose(-2, -1))\n"
    )
    with_arm(folder, 'name = "mine"\nscore = "own.py:Mine"')
    assert {run_[0] for run_ in measured(ran(folder)).values()} == {"ok"}
    own.write_text(own.read_text().replace("2.0", "3.0"))
    with pytest.raises(StoreError, match="a file of code that it names"):
        ran(folder)


def test_a_changed_text_is_refused(folder: Path) -> None:
    ran(folder, seeds=1)
    write_corpus(folder / "text.txt", seed=1)
    with pytest.raises(StoreError, match="holds runs on another text"):
        ran(folder, seeds=1)
    with pytest.raises(
        StoreError, match="holds runs on another text"
    ):  # and is not forgotten by asking twice
        ran(folder, seeds=1)


def test_a_directory_without_runs_takes_a_corrected_declaration(folder: Path) -> None:
    with pytest.raises(
        CorpusError, match="the context of 5000 tokens is longer than the whole training split"
    ):
        ran(folder, "model.context=5000")
    assert {status for status, _ in measured(ran(folder, seeds=1)).values()} == {"ok"}


def test_another_study_is_refused_and_so_is_a_directory_that_is_none(folder: Path) -> None:
    ran(folder, seeds=1)
    with pytest.raises(StoreError, match="holds another version of this study"):
        run("masking", out=folder / "out", on=InProcess())
    with pytest.raises(StoreError, match="is not empty and holds no study"):
        run(folder / "small.toml", out=folder, on=InProcess())


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "{}", '{"study": 3}', '{"fingerprint": "x"}'])
def test_a_damaged_declaration_is_refused(folder: Path, content: str) -> None:
    ran(folder, seeds=1)
    (folder / "out" / "study.json").write_text(content)
    with pytest.raises(StoreError, match=r"study\.json: (damaged|not the declaration)"):
        ran(folder, seeds=1)
    with pytest.raises(StoreError):
        open_study(folder / "out").study()


@pytest.mark.parametrize("out", ["text.txt", "text.txt/below", "/proc/attnlab", "x" * 300, "/dev/null"])
def test_a_directory_that_cannot_be_used(folder: Path, out: str) -> None:
    with pytest.raises(StoreError):
        run(folder / "small.toml", out=folder / out, on=InProcess())
    assert not (folder / "out").exists()


def test_a_metric_of_no_split_is_refused_before_anything_is_trained(folder: Path) -> None:
    executor = InProcess()
    with pytest.raises(RequestError, match="no metric is called 'tset_loss'; did you mean 'test_loss'"):
        run(folder / "small.toml", out=folder / "out", settings=["metric=tset_loss"], on=executor)
    assert executor.worked_on == []


# ---- texts that will not do --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b"one line only\n", "too few to hold out"),
        (b"\x00\x01\x02binary", "null byte"),
        (b"\xff\xfea\x00", "UTF-16"),
        (b"caf\xe9 au lait\n" * 50, "not UTF-8"),
    ],
)
def test_a_text_that_will_not_do(folder: Path, content: bytes, says: str) -> None:
    (folder / "text.txt").write_bytes(content)
    with pytest.raises(CorpusError, match=says):
        ran(folder)


def test_a_vocabulary_of_nothing(folder: Path) -> None:
    with pytest.raises(CorpusError, match="the vocabulary would be empty"):
        ran(folder, "tokens.minimum=100000")


# ---- arms that go wrong ------------------------------------------------------------------------------------

BROKEN = """\
from dataclasses import dataclass
from attnlab.attention import Score


@dataclass(frozen=True, kw_only=True)
class Raises(Score):
    def __call__(self, q, k):
        {body}


@dataclass(frozen=True, kw_only=True)
class Unbuildable(Score):
    def build(self, dims):
        raise OSError("no weights here")
"""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('I cannot')", "ValueError: I cannot"),
        ("raise KeyError('missing')", "KeyError: 'missing'"),
        ("assert False, 'never'", "AssertionError: never"),
        ("return q @ k", "RuntimeError"),
        ("return 'a string'", "AttributeError"),
        ("return None.shape", "AttributeError"),
    ],
)
def test_a_part_that_raises_fails_alone(folder: Path, body: str, reason: str) -> None:
    (folder / "own.py").write_text(BROKEN.format(body=body))
    with_arm(folder, 'name = "broken"\nscore = "own.py:Raises"')
    results = run(folder / "small.toml", out=folder / "out", on=InProcess())
    arms = {arm["name"]: arm for arm in results.plain["arms"]}
    assert arms["dot"]["status"] == "ok"
    assert arms["broken"]["status"] in ("failed", "invalid")
    assert arms["broken"]["runs"][0]["status"] == "failed"
    assert reason in arms["broken"]["runs"][0]["reason"]
    assert not arms["broken"]["audit"]["passed"]
    assert not results.is_clean
    assert results.failed == [f"broken, seed 0: {arms['broken']['runs'][0]['reason']}"]


def test_a_part_that_cannot_be_built_fails_alone(folder: Path) -> None:
    (folder / "own.py").write_text(BROKEN.format(body="pass"))
    with_arm(folder, 'name = "broken"\nscore = "own.py:Unbuildable"')
    arms = {arm["name"]: arm for arm in ran(folder)["arms"]}
    assert arms["dot"]["status"] == "ok"
    assert arms["broken"]["status"] == "failed"
    assert arms["broken"]["parameters"] is None
    assert arms["broken"]["runs"][0]["reason"] == "OSError: no weights here"


def test_a_failed_run_is_tried_again(folder: Path) -> None:
    """It may have been the machine: out of memory, a full disk."""
    ran(folder)
    store = Store(folder / "out")
    kept = store.result(Cell("dot", 1))
    store.write_result(RunResult("dot", 1, "failed", reason="out of memory"))
    assert store.result(Cell("dot", 1)) is None
    assert store.failure(Cell("dot", 1)) == "out of memory"
    again = {**ran(folder)}
    assert kept is not None
    assert measured(again)["dot", 1] == ("ok", kept.metrics)


def test_a_run_that_diverges_is_recorded_as_that(folder: Path) -> None:
    with_arm(folder, 'name = "wild"\nlearning_rate = 1e6\ntraining = {clip = 1e9, steps = 60}')
    results = run(folder / "small.toml", out=folder / "out", on=InProcess())
    arm = next(arm for arm in results.plain["arms"] if arm["name"] == "wild")
    assert (arm["status"], arm["runs"][0]["status"]) == ("diverged", "diverged")
    assert "the loss" in arm["runs"][0]["reason"]
    assert not results.is_clean
    for line in (folder / "out" / "runs" / "wild" / "0" / "metrics.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    again = InProcess()
    run(folder / "small.toml", out=folder / "out", on=again)
    assert again.worked_on == []  # that is how it is; trying again would give the same


def test_a_mask_after_the_softmax_is_invalid_with_both_figures(folder: Path) -> None:
    with_arm(folder, 'name = "after"\nmask.where = "after"')
    results = run(
        folder / "small.toml",
        out=folder / "out",
        settings=["learning_rate=0.01", "training.steps=200"],
        on=InProcess(),
    )
    arm = next(arm for arm in results.plain["arms"] if arm["name"] == "after")
    assert arm["status"] == "invalid"
    metrics = arm["runs"][0]["metrics"]
    assert metrics["ordinary_perplexity"] != pytest.approx(metrics["prefix_perplexity"], rel=1e-3)
    assert results.verdicts[0]["verdict"] == "invalid"
    assert "with prefixes only" in results.verdicts[0]["sentence"]


def test_a_damaged_checkpoint_is_told_of_and_nothing_is_made_up(folder: Path) -> None:
    first = measured(ran(folder, seeds=1))["dot", 0]
    cell = folder / "out" / "runs" / "dot" / "0"
    (cell / "result.json").unlink()
    checkpoint = cell / "checkpoint.safetensors"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    assert measured(ran(folder, seeds=1))["dot", 0] == first  # begun anew: there was none before it
    assert checkpoint.with_name("checkpoint.safetensors.damaged").is_file()
    assert Checkpoint.read(checkpoint).facts["progress"]["step"] == 12


def test_a_curve_goes_on_where_its_run_does(tmp_path: Path) -> None:
    curve = Curve(tmp_path / "metrics.jsonl")
    curve.begin(0)
    for step in range(1, 6):
        curve.add({"step": step, "loss": math.nan if step == 2 else 1.0})
    with curve.path.open("a") as file:
        file.write('{"step": 6, "lo')  # cut off by a kill
    assert [row["step"] for row in read_curve(curve.path)] == [1, 2, 3, 4, 5]
    curve.begin(3)
    curve.add({"step": 4, "loss": 2.0})
    rows = read_curve(curve.path)
    assert [(row["step"], row["loss"]) for row in rows] == [(1, 1.0), (2, None), (3, 1.0), (4, 2.0)]
    assert read_curve(tmp_path / "absent") == []
