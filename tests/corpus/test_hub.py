"""Data sets through the package `datasets`: here from a directory, without a network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from attnlab.corpus import Corpus, Hub
from attnlab.errors import CorpusError

datasets = pytest.importorskip("datasets", reason="the extra 'hf' is not installed")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    data = tmp_path / "data"
    data.mkdir()
    for split, n in (("train", 20), ("test", 4)):
        rows = [{"text": f"{split} {i} is. It was.", "label": i % 2} for i in range(n)]
        (data / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def test_a_directory(folder: Path) -> None:
    corpus = Corpus.resolve({"part": "hub", "dataset": "data", "test": "test", "label": "label"})
    splits = corpus.load(folder)
    assert [len(splits.train), len(splits.dev), len(splits.test)] == [18, 2, 4]
    assert splits.test[1].units == ("test 1 is. It was.",)
    assert splits.test[1].label == "1"
    assert splits.provenance.split.startswith("test is the data set's 'test'; by document: 2 of 20")
    assert corpus.digest(folder) == splits.provenance.sha256
    with (folder / "data" / "test.jsonl").open("a") as file:
        file.write("\n" + json.dumps({"text": "one more", "label": 0}))
    assert corpus.digest(folder) != splits.provenance.sha256


def test_units_and_fewer_rows(folder: Path) -> None:
    splits = Hub(dataset="data", unit="sentence", rows=10).load(folder)
    assert sum(len(side) for _, side in splits.items()) == 10
    assert splits.train[0].units[1] == "It was."


def test_class_labels_have_names() -> None:
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    table = datasets.Dataset.from_dict({"text": ["x", "y"], "label": [1, 0]}, features=features)
    documents = Hub(dataset="d", label="label")._documents(table, "train")
    assert [d.label for d in documents] == ["good", "bad"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"train": "trian"}, "no split is called 'trian'; did you mean 'train'"),
        ({"text": "txt"}, "no column is called 'txt'; did you mean 'text'"),
        ({"label": "lable"}, "no column is called 'lable'; did you mean 'label'"),
    ],
)
def test_names_that_are_not_there(folder: Path, fields: Any, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        Hub(dataset="data", **fields).load(folder)


def test_a_name_that_cannot_be_reached(tmp_path: Path) -> None:
    code = "from attnlab.corpus import Hub; Hub(dataset='nobody/nothing').load()"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert "CorpusError: the data set 'nobody/nothing' could not be loaded" in done.stderr


def test_the_extra_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(CorpusError, match=r"pip install 'attnlab\[hf\]'"):
        Hub(dataset="x").load()
