"""The studies' own formats, read from the real files; the counts are those of the folder's description."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.corpus import Corpus, Labelled, Splits, Table, Text, Tokens

PRESIDENTS = {name: f"speeches/test_LM_{name}.txt" for name in ("obama", "hbush", "wbush")}


def _load(corpus: Corpus, folder: Path, *files: str) -> Splits:
    if not all((folder / name).is_file() for name in files):
        pytest.skip(f"{files[0]} is not in the shared data folder")
    return corpus.load(folder)


def _units(splits: Splits) -> dict[str, int]:
    return {name: sum(len(d.units) for d in documents) for name, documents in splits.items()}


def test_news(shared_data: Path) -> None:
    files = ("news/1b_benchmark.dev.tokens", "news/1b_benchmark.test.tokens")
    splits = _load(Tokens(train=files[0], test=files[1]), shared_data, *files)
    units = _units(splits)
    assert units["train"] + units["dev"] == 12_216
    assert units["test"] == 12_105
    words = {name: sum(len(u.split()) for d in side for u in d.units) for name, side in splits.items()}
    assert words["train"] + words["dev"] == 310_490
    # The description counts words as `wc` does, which leaves out one token: a control character by itself.
    assert words["test"] == 306_180 + 1
    assert sum("\x92" in u.split() for d in splits.test for u in d.units) == 1


def test_shakespeare(shared_data: Path) -> None:
    splits = _load(Text(train="shakespeare/input.txt"), shared_data, "shakespeare/input.txt")
    text = (shared_data / "shakespeare/input.txt").read_text()
    lines = [line for line in text.split("\n") if line.strip()]
    assert sum(_units(splits).values()) == len(lines)
    assert len(splits.test) == len(splits.dev) == 33


def test_speeches_as_text_with_a_split_per_president(shared_data: Path) -> None:
    corpus = Text(
        train="speeches/train_LM.txt", test=tuple(PRESIDENTS.values()), extra=PRESIDENTS, document="unit"
    )
    units = _units(_load(corpus, shared_data, "speeches/train_LM.txt", *PRESIDENTS.values()))
    assert units["train"] + units["dev"] == 1_553
    assert units["test"] == 750
    assert [units[name] for name in PRESIDENTS] == [250, 250, 250]


def test_speeches_with_labels(shared_data: Path) -> None:
    files = ("speeches/train_CLS.tsv", "speeches/test_CLS.tsv")
    corpus = Table(train=files[0], test=files[1], header=False, label=1, text=2)
    splits = _load(corpus, shared_data, *files)
    units = _units(splits)
    assert (units["train"] + units["dev"], units["test"]) == (2_092, 750)
    assert {d.label for d in splits.train} == {d.label for d in splits.test} == {"0", "1", "2"}


def test_sst2(shared_data: Path) -> None:
    files = {split: f"sst2/stsa.binary.{split}" for split in ("train", "dev", "test")}
    corpus = Labelled(train=files["train"], dev=files["dev"], test=files["test"])
    splits = _load(corpus, shared_data, *files.values())
    assert _units(splits) == {"train": 6_920, "dev": 872, "test": 1_821}
    assert {d.label for d in splits.train} == {"0", "1"}


def test_boolq(shared_data: Path) -> None:
    corpus = Table(train="boolq/dev.jsonl", text="question", pair="passage", label="answer")
    splits = _load(corpus, shared_data, "boolq/dev.jsonl")
    every = [d for _, side in splits.items() for d in side]
    assert len(every) == 3_270
    assert sum(d.label == "true" for d in every) == 2_033
    assert all(d.pair for d in every)


def test_dialogsum(shared_data: Path) -> None:
    files = {split: f"dialogsum/{split}.jsonl" for split in ("train", "dev", "test")}
    references = ("summary", "summary1", "summary2", "summary3")
    corpus = Table(
        train=files["train"],
        dev=files["dev"],
        test=files["test"],
        text="dialogue",
        references=references,
        unit="line",
    )
    splits = _load(corpus, shared_data, *files.values())
    assert {name: len(side) for name, side in splits.items()} == {"train": 12_460, "dev": 500, "test": 500}
    assert {len(d.references) for d in splits.train} == {1}
    assert {len(d.references) for d in splits.test} == {3}
