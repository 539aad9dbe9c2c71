"""Texts that are kept as they are written: after an interruption, damage, other settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from attnlab.adapt.distil.models import Teacher
from attnlab.adapt.distil.prompt import Prompt, ask
from attnlab.adapt.distil.texts import Text, Texts, Writing
from attnlab.corpus import Document
from attnlab.decoding import HubWriter, Recipe, write
from attnlab.training import Interrupted
from attnlab.wholefile import claimed

from .tiny_chat import chat_llama

pytest.importorskip("transformers")
DOCUMENTS = [
    Document(f"d{n}", (" ".join(["tom asks ann about rain and tea"] * (1 + n * 7 % 4)),)) for n in range(10)
]


class Listener:
    """Lets so many steps happen."""

    def __init__(self, steps: int = 10**9) -> None:
        self.left, self.notes = steps, list[str]()

    def begin(self, step: int) -> None: ...

    def row(self, row: Mapping[str, Any]) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)

    def should_save(self) -> bool:
        return False

    def should_stop(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> HubWriter:
    loaded = Teacher(checkpoint=str(chat_llama(tmp_path_factory.mktemp("chat")))).load(None)
    return HubWriter(loaded.model, loaded.tokenizer)


def texts_in(folder: Path, writer: HubWriter, **changes: Any) -> Texts:
    asked = ask(writer.tokenizer, DOCUMENTS, Prompt(instruction="say {text}"), "it")
    return Texts(folder, asked, Writing(**{"longest": 7, "batch": 3, **changes}), {"of": "this"})


def never() -> HubWriter:
    raise AssertionError("the model was opened, and nothing is missing")


def test_texts_are_those_of_each_request_alone_in_its_order(tmp_path: Path, writer: HubWriter) -> None:
    texts, told = texts_in(tmp_path, writer), Listener()
    found = texts.write(lambda: writer, told, "ten texts")
    assert [text.name for text in found] == [f"d{n}" for n in range(10)]
    for text, ids in zip(found, texts.asked.ids, strict=True):
        (alone,) = write(writer, ids, texts.writing.recipe, count=1, longest=7, seed=0)
        assert text == Text(text.name, writer.decode(alone.tokens).strip(), len(alone.tokens), alone.ended)
    assert told.notes[-1] == "ten texts: 4 of 4 batches written"
    assert texts.write(never, Listener(), "again") == found


def test_drawn_texts_do_not_depend_on_how_many_are_written_together(
    tmp_path: Path, writer: HubWriter
) -> None:
    drawn = {"recipe": Recipe.read("temperature=1.5"), "seed": 3}
    one, two = (
        texts_in(tmp_path / f"{batch}", writer, batch=batch, **drawn).write(lambda: writer, Listener(), "")
        for batch in (2, 5)
    )
    assert one == two
    other = texts_in(tmp_path / "other", writer, **{**drawn, "seed": 4}).write(lambda: writer, Listener(), "")
    assert other != one


def test_after_an_interruption_only_what_is_missing_is_written(tmp_path: Path, writer: HubWriter) -> None:
    whole = texts_in(tmp_path / "whole", writer).write(lambda: writer, Listener(), "")
    texts = texts_in(tmp_path / "parts", writer)
    with pytest.raises(Interrupted):
        texts.write(lambda: writer, Listener(steps=20), "")
    files = sorted(texts.folder.glob("*.jsonl"))
    assert 0 < len(files) < 4
    assert texts.kept() is None
    before = [file.stat().st_mtime_ns for file in files]
    assert texts.write(lambda: writer, Listener(), "") == whole
    assert [file.stat().st_mtime_ns for file in files] == before


@pytest.mark.parametrize("damage", ["cut", "changed", "another's"])
def test_what_is_damaged_is_written_again(tmp_path: Path, writer: HubWriter, damage: str) -> None:
    texts = texts_in(tmp_path, writer)
    whole = texts.write(lambda: writer, Listener(), "")
    file = tmp_path / "00001.jsonl"
    text = file.read_text("utf-8")
    if damage == "cut":
        file.write_text(text[: len(text) // 2])
    elif damage == "changed":
        file.write_text(text.replace('"tokens": 7', '"tokens": 6'))
    else:
        file.write_text((tmp_path / "00002.jsonl").read_text("utf-8"))
    assert texts.kept() is None
    assert texts.write(lambda: writer, Listener(), "") == whole
    assert file.read_text("utf-8") == text


def test_texts_of_other_settings_are_not_taken(tmp_path: Path, writer: HubWriter) -> None:
    texts = texts_in(tmp_path, writer)
    texts.write(lambda: writer, Listener(), "")
    for other in (
        texts_in(tmp_path, writer, longest=8),
        texts_in(tmp_path, writer, recipe=Recipe.read("plain")),
        Texts(tmp_path, texts.asked, texts.writing, {"of": "another"}),
    ):
        assert other.key != texts.key
        assert other.kept() is None
    settings = json.loads((tmp_path / "settings.json").read_text("utf-8"))
    assert settings["key"] == texts.key
    assert settings["writing"]["longest"] == 7


def test_a_batch_that_another_has_is_waited_for(
    tmp_path: Path, writer: HubWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.adapt.distil.texts._BUSY_WAIT", 0.01)
    texts = texts_in(tmp_path, writer)
    lock = tmp_path / "00000.lock"
    with claimed(lock) as ours, claimed(lock) as theirs:
        assert ours
        assert not theirs
        with pytest.raises(Interrupted):
            texts.write(lambda: writer, Listener(steps=60), "")
        assert not (tmp_path / "00000.jsonl").exists()
        assert (tmp_path / "00003.jsonl").exists()
    assert texts.write(lambda: writer, Listener(), "")
