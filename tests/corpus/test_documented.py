"""docs/corpora.md names every corpus, tokenizer and framing with all their fields, and its examples hold."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from attnlab.corpus import Corpus
from attnlab.corpus.filed import FileCorpus
from attnlab.spec import Part
from attnlab.tokens import Framing, Tokenizer

PAGE = (Path(__file__).parents[2] / "docs" / "corpora.md").read_text(encoding="utf-8")
SECTIONS = {
    m[1]: m[2] for m in re.finditer(r"^### `([\w-]+)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
}
SHARED = PAGE.split("### Fields that all corpora in files share")[1].split("\n### ")[0]
MEMBERS = {**Corpus.members, **Tokenizer.members, **Framing.members}
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
FAMILIES: dict[str, Any] = {"corpus": Corpus, "tokens": Tokenizer, "framing": Framing}


def _mentioned(text: str) -> set[str]:
    return {name for span in re.findall(r"`([^`\n]+)`", text) for name in re.findall(r"[a-z_]+", span)}


def test_every_member_has_a_section_and_every_section_a_member() -> None:
    ours = {name for name, cls in MEMBERS.items() if cls.__module__.startswith("attnlab.")}
    assert set(SECTIONS) == ours


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_every_field_is_mentioned(name: str) -> None:
    cls: Any = MEMBERS[name]
    told = _mentioned(SECTIONS[name]) | (_mentioned(SHARED) if issubclass(cls, FileCorpus) else set())
    assert {f.name for f in dataclasses.fields(cls)} <= told


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_is_a_declaration(number: int) -> None:
    declared = tomllib.loads(EXAMPLES[number])
    assert declared
    for key, value in declared.items():
        assert isinstance(FAMILIES[key].resolve(value), Part)


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_every_section_has_an_example_of_its_part(name: str) -> None:
    assert f'part = "{name}"' in SECTIONS[name]


def test_the_defaults_that_are_stated() -> None:
    assert "0.1 each" in SHARED
    shares = {f.name: f.default for f in dataclasses.fields(FileCorpus)}
    assert shares["dev_share"] == shares["test_share"] == 0.1
