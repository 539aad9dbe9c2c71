"""A study of distillation from its declaration to its report, on models of a few thousand parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import AttnlabError, RequestError
from attnlab.record import RunResult
from attnlab.report.page import write as write_report
from attnlab.study import load_study, run
from attnlab.study.cellwork import Workplace
from attnlab.study.store import Cell, Store
from attnlab.study.study import slug
from tests.adapt.distil.tiny_chat import WORDS, chat_llama

from .small import InProcess, measured
from .small_distillation import write_study

pytest.importorskip("transformers")
pytest.importorskip("rouge_score")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A teacher, dialogues, and the declaration."""
    folder = tmp_path_factory.mktemp("distillation")
    write_study(folder)
    return folder


@pytest.fixture(scope="module")
def results(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        return run(made / "tiny.toml", out=made / "out", on=InProcess())


def result(made: Path, arm: str, seed: int = 0) -> RunResult:
    found = Store(made / "out").result(Cell(arm, seed))
    assert found is not None
    return found


def test_every_arm_ends_well_and_is_judged(results: Any) -> None:
    assert results.is_clean, results.failed
    assert [arm["status"] for arm in results.plain["arms"]] == ["ok"] * 5
    assert {v["arm"]: v["metric"] for v in results.verdicts} == dict.fromkeys(
        ["teacher", "untuned", "teacher's", "logits"], "test_rouge_1"
    )
    checks = {arm["name"]: [c["name"] for c in arm["audit"]["checks"]] for arm in results.plain["arms"]}
    assert checks["people's"] == ["padding", "cache", "answers-only"]
    assert checks["teacher"] == ["padding", "cache"]
    cut, whole = results.plain["arms"][0]["parameters"], results.plain["arms"][1]["parameters"]
    assert cut < whole
    for arm in results.plain["arms"]:
        assert all(one["evaluation_seconds"] > 0 for one in arm["runs"])
        assert sum(row["count"] for row in arm["parameter_rows"]) == arm["parameters"]


def test_every_arm_is_held_against_the_opening_words(made: Path, results: Any) -> None:
    found = results.plain["floor_verdicts"]
    assert [(one["baseline"], one["arm"]) for one in found] == [
        ("opening words", arm["name"]) for arm in results.plain["arms"]
    ]
    floor = json.loads((made / "out" / "study.json").read_text())["floors"]["opening words"]["rouge_1"]
    mean = result(made, "teacher").metrics["test_rouge_1"]
    (teacher,) = (one for one in found if one["arm"] == "teacher")
    assert teacher["effect"] == pytest.approx(mean - floor)


def test_items_are_documents_with_every_measure(made: Path, results: Any) -> None:
    items = result(made, "people's").items["test"]
    assert len(items.names) == 8
    measures = {"rouge_1", "rouge_2", "rouge_l", "rouge_lsum", "words", "copied", "repeated"}
    assert set(items.values) == measures
    metrics = result(made, "people's").metrics
    assert {f"test_{name}": items.mean(name) for name in measures}.items() <= metrics.items()


def test_who_is_trained_learns_and_who_is_not_does_not(made: Path, results: Any) -> None:
    for arm in ("people's", "teacher's", "logits"):
        rows = [
            json.loads(line)
            for line in (made / "out" / "runs" / slug(arm) / "0" / "metrics.jsonl").read_text().splitlines()
        ]
        assert rows[-1]["loss"] < rows[0]["loss"]
        assert (result(made, arm).metrics == result(made, arm, 1).metrics) is False
    for arm in ("teacher", "untuned"):
        assert result(made, arm).items == result(made, arm, 1).items
        assert result(made, arm).steps == 0


def test_texts_are_kept_beside_peoples(made: Path, results: Any) -> None:
    rows = [
        json.loads(line)
        for line in (made / "out" / "runs" / "teacher" / "0" / "texts.jsonl").read_text("utf-8").splitlines()
    ]
    assert [row["name"] for row in rows] == list(result(made, "teacher").items["test"].names)
    assert all(len(row["references"]) == 2 for row in rows)
    shown = result(made, "teacher").exhibits["summaries"]["shown"]
    by_name = {row["name"]: row["text"] for row in rows}
    assert all(by_name[one["name"]] == one["text"] for one in shown)


def test_the_report_shows_the_table_and_the_texts(made: Path, results: Any) -> None:
    page = write_report(made / "out").read_text("utf-8")
    for words in (
        "ROUGE-Lsum",
        "people, one against the others",
        "Side by side",
        "The arms against the floors",
    ):
        assert words in page, words


def test_it_goes_on_bit_for_bit_wherever_it_was_stopped(
    made: Path, results: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped again and again: while the teacher writes, while the student learns, while it writes."""
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    study = load_study(made / "tiny.toml")
    store = Store(tmp_path / "out")
    store.open_for(study, {"environment": {}})
    cell, stops = Cell("teacher's", 1), 0
    while store.result(cell) is None:
        wish = _After(9)
        Workplace(store, study, save_seconds=0.0).work_on(cell, lambda event, about: None, wish)
        stops += store.result(cell) is None
        assert stops < 60
    assert stops > 4
    found, whole = store.result(cell), result(made, cell.arm, cell.seed)
    assert found is not None
    assert (found.metrics, found.items, found.exhibits) == (whole.metrics, whole.items, whole.exhibits)


class _After:
    """Asks for a stop after so many looks, as someone would with Ctrl-C."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    @property
    def to_stop(self) -> bool:
        self.looks -= 1
        return self.looks < 0


def test_a_second_run_writes_nothing_anew(made: Path, results: Any) -> None:
    executor = InProcess()
    again = run(made / "tiny.toml", out=made / "out", on=executor)
    assert executor.worked_on == []
    assert measured(again.plain) == measured(results.plain)


# ---- mistakes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["teacher.checkpoint=./nowhere"], r"there is no directory '\./nowhere' "),
        (["corpus.train=absent.jsonl"], r"absent\.jsonl"),
        (["corpus.references=[]"], "say which columns hold what people wrote under corpus.references"),
        (["corpus.text=dialog"], "did you mean 'dialogue'"),
        (["student.layers_kept=[0, 7]"], "names layer 7; there are 3, 0 to 2"),
        (["prompt.longest=5"], "the instruction alone takes 5 tokens"),
        (["lesson=teachers-text"], "did you mean 'teachers-texts'"),
        (["lesson={part='teachers-logits', temperature=0}"], "greater than 0"),
        (["lesson={part='teachers-logits', divergence='backward'}"], r"backward.*valid: forward, reverse"),
        (["lesson={part='teachers-texts', references=1.5}"], "less than or equal to 1"),
        (["training.precision=bfloat16-head"], "valid: float32"),
        (["precision=float16"], "did you mean 'bfloat16'"),
        (["metric=test_rouge"], "valid: test_rouge_1, test_rouge_2, test_rouge_l, test_rouge_lsum"),
        (["writing.recipe=greedily"], "did you mean 'greedy'"),
    ],
)
def test_a_mistake_is_explained_before_anything_runs(
    made: Path, tmp_path: Path, settings: list[str], message: str
) -> None:
    executor = InProcess()
    with pytest.raises(AttnlabError, match=message):
        run(made / "tiny.toml", out=tmp_path / "out", settings=settings, on=executor)
    assert executor.worked_on == []


def test_logits_of_another_vocabulary_are_refused_before_anything_runs(made: Path, tmp_path: Path) -> None:
    chat_llama(made / "other", words=(*WORDS[:5], *WORDS[:4:-1]))
    executor = InProcess()
    with pytest.raises(RequestError, match="only where both have one vocabulary"):
        run(
            made / "tiny.toml",
            out=tmp_path / "out",
            settings=["teacher.checkpoint=other"],
            on=executor,
        )
    assert executor.worked_on == []


def test_without_the_package_for_rouge_it_says_what_to_install(
    made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RequestError, match=r"pip install 'attnlab\[text\]'"):
        run(made / "tiny.toml", out=tmp_path / "out", on=InProcess())


def test_the_built_in_study_is_sound_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = load_study("distillation")
    assert study.base == tmp_path
    assert [study.setup_of(arm.name).plain()["lesson"]["part"] for arm in study.arms] == [
        "references",
        "the-teacher",
        "nothing",
        "teachers-texts",
        "teachers-logits",
    ]
    with pytest.raises(AttnlabError, match=r"3 problems(?s:.*)corpus: .*train\.jsonl(?s:.*)'\./smollm2'"):
        run("distillation", out=tmp_path / "out", on=InProcess())
