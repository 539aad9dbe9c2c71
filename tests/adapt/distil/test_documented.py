"""docs/distilling.md names every lesson and every section with its fields, and its examples hold."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from attnlab.adapt.distil.lessons import Lesson
from attnlab.corpus import Corpus
from attnlab.spec import Spec
from attnlab.study import built_in_studies, load_study
from attnlab.study.declaration import study_from_plain
from attnlab.study.kinds.distillation import Distillation
from attnlab.training import Training

PAGE = (Path(__file__).parents[3] / "docs" / "distilling.md").read_text(encoding="utf-8")
LINES = re.finditer(r"^\| `([\w-]+)` \|(.*)\|$", PAGE, re.MULTILINE)
ROWS = {line[1]: line[2] for line in LINES if line[1] != "lesson"}
SECTIONS = PAGE.split("## The sections")[1].split("\n## ")[0]
EXAMPLES = [tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]


def named(text: str) -> set[str]:
    return {name for span in re.findall(r"`([^`\n]+)`", text) for name in re.findall(r"[a-z_]+", span)}


def test_every_lesson_has_a_row_with_its_fields() -> None:
    ours = {name: cls for name, cls in Lesson.members.items() if cls.__module__.startswith("attnlab.")}
    assert set(ROWS) == set(ours)
    for name, cls in ours.items():
        fields = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
        assert fields == named(ROWS[name].rsplit("|", 1)[1]), name


def test_every_section_is_told_with_its_fields() -> None:
    told = named(SECTIONS)
    assert set(Distillation.model_fields) <= told
    for name, field in Distillation.model_fields.items():
        kind: Any = field.annotation
        if isinstance(kind, type) and issubclass(kind, Spec) and not issubclass(kind, Training):
            assert set(kind.model_fields) <= told, name


def test_the_examples_are_a_study_and_a_corpus() -> None:
    study, corpus = EXAMPLES
    made = study_from_plain(study, source="the page", base=None)
    assert isinstance(made.setup, Distillation)
    assert Corpus.resolve(corpus["corpus"]).name == "hub"


@pytest.mark.parametrize("name", Distillation.metric_names())
def test_every_metric_is_named(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_the_student_of_the_built_in_study_is_the_one_that_is_explained() -> None:
    declared = tomllib.loads(built_in_studies()["distillation"].read_text("utf-8"))
    assert declared["student"] == EXAMPLES[0]["student"]
    assert len(declared["student"]["layers_kept"]) == 20
    assert load_study("distillation").setup.default_metric == Distillation.metric_names()[0]


def test_the_commands_in_the_built_in_study_hold() -> None:
    text = built_in_studies()["distillation"].read_text("utf-8")
    settings = re.findall(r"^#   attnlab run distillation --set '?(.*?)'?$", text, re.MULTILINE)
    parts = [load_study("distillation", [setting]).setup.plain()["corpus"]["part"] for setting in settings]
    assert parts == ["table", "hub"]
