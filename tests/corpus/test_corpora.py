"""The corpora in the user's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from attnlab.corpus import Corpus, Labelled, Table, Text, Tokens
from attnlab.errors import CorpusError, DeclarationError

TEXT = "".join(f"Line {i} says so. It means it.\n" + ("\n" if i % 4 == 3 else "") for i in range(40))


def _write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("declared", "documents", "first", "name"),
    [
        ({"block": 4}, 10, ("Line 0 says so. It means it.", "Line 3 says so. It means it."), "a.txt:1-4"),
        ({"document": "unit"}, 40, ("Line 0 says so. It means it.",) * 2, "a.txt:1"),
        ({"unit": "sentence", "block": 8}, 10, ("Line 0 says so.", "It means it."), "a.txt:1-8"),
        ({"unit": "paragraph", "document": "unit"}, 10, ("Line 0 says so. It", "means it."), "a.txt:1"),
    ],
)
def test_text(tmp_path: Path, declared: Any, documents: int, first: tuple[str, str], name: str) -> None:
    _write(tmp_path, a_txt=TEXT)
    corpus = Corpus.resolve({"part": "text", "train": "a.txt", **declared})
    splits = corpus.load(tmp_path)
    found = sorted(
        (d for _, side in splits.items() for d in side), key=lambda d: int(d.name.split(":")[1].split("-")[0])
    )
    assert len(found) == documents
    assert found[0].name == name
    assert found[0].units[0].startswith(first[0])
    assert found[0].units[-1].endswith(first[1])
    units = [u for d in found for u in d.units]
    assert " ".join(units) == " ".join(TEXT.split())


def test_files_of_their_own_are_used_as_they_are(tmp_path: Path) -> None:
    _write(tmp_path, a_txt="a\nb\n", b_txt="c\n", c_txt="d\n", e_txt="e\nf\n")
    corpus = Text(
        train=("a.txt", "e.txt"), dev="b.txt", test="c.txt", extra={"more": "e.txt"}, document="file"
    )
    splits = corpus.load(tmp_path)
    assert [(d.name, d.units) for d in splits.train] == [("a.txt:1-2", ("a", "b")), ("e.txt:1-2", ("e", "f"))]
    assert [d.units for _, side in splits.items() for d in side][2:] == [("c",), ("d",), ("e", "f")]
    assert splits.provenance.split == "dev from b.txt; test from c.txt; more from e.txt"
    assert splits.provenance.counts["train"] == {"documents": 2, "units": 4}


def test_what_is_held_out_is_said(tmp_path: Path) -> None:
    _write(tmp_path, a_txt=TEXT, b_txt="test\n")
    splits = Text(train="a.txt", test="b.txt", document="unit", dev_share=0.25, split_seed=7).load(tmp_path)
    assert len(splits.dev) == 10
    assert [d.units for d in splits.test] == [("test",)]
    assert "10 of 40 held out for dev and 0 for test" in splits.provenance.split
    assert "seed 7" in splits.provenance.split


def test_the_digest_follows_the_text(tmp_path: Path) -> None:
    _write(tmp_path, a_txt=TEXT)
    corpus = Text(train="a.txt", document="unit")
    before = corpus.digest(tmp_path)
    assert before == corpus.load(tmp_path).provenance.sha256
    _write(tmp_path, a_txt=TEXT + "x\n")
    assert corpus.digest(tmp_path) != before


def test_one_file_twice_in_a_split(tmp_path: Path) -> None:
    _write(tmp_path, a_txt="a\nb\n")
    with pytest.raises(CorpusError, match=r"occur more than once, such as 'a\.txt:1-2'"):
        Text(train=("a.txt", "a.txt"), dev="a.txt", test="a.txt").load(tmp_path)


def test_declarations_that_contradict_themselves() -> None:
    for wrong, message in (
        ({"part": "text", "train": "a", "extra": {"dev": "b"}}, "cannot be called 'dev'"),
        ({"part": "text", "train": "a", "dev_share": 1.0}, "less than 1"),
        ({"part": "text", "train": "a", "unit": "lines"}, "did you mean 'line'"),
        ({"part": "text"}, "train: is missing"),
        ({"part": "table", "train": "a", "document": "id", "label": "x"}, "cannot have a label"),
        ({"part": "table", "train": "a", "text": 0}, "numbered from 1"),
        ({"part": "table", "train": "a", "lable": "x"}, "did you mean 'label'"),
    ):
        with pytest.raises(DeclarationError, match=message):
            Corpus.resolve(wrong)


def test_tokens(tmp_path: Path) -> None:
    _write(tmp_path, a_tokens="a b  c .\n\nd 's\n", b_tokens="x\n")
    splits = Tokens(train="a.tokens", dev="b.tokens", test="b.tokens").load(tmp_path)
    assert [d.units for d in splits.train] == [("a b c .",), ("d 's",)]


def test_labelled(tmp_path: Path) -> None:
    _write(tmp_path, a_txt="0 good  film\n\npos\tfine\n", b_txt="1 x\n")
    splits = Labelled(train="a.txt", dev="b.txt", test="b.txt").load(tmp_path)
    assert [(d.label, d.units) for d in splits.train] == [("0", ("good  film",)), ("pos", ("fine",))]
    _write(tmp_path, a_txt="0 a\nalone\n")
    with pytest.raises(CorpusError, match=r"a\.txt:2: a label and a text are needed, there is only 'alone'"):
        Labelled(train="a.txt", dev="b.txt", test="b.txt").load(tmp_path)


def _table(tmp_path: Path, name: str, content: str, /, **fields: Any) -> Any:
    (tmp_path / name).write_text(content, encoding="utf-8")
    return Table(train=name, dev=name, test=name, **fields).load(tmp_path).train


def test_tsv_has_no_quotes(tmp_path: Path) -> None:
    text = 'label\ttext\n1\t"He said\n0\tit" was\n'
    assert [(d.label, d.units) for d in _table(tmp_path, "a.tsv", text, label="label")] == [
        ("1", ('"He said',)),
        ("0", ('it" was',)),
    ]


def test_numbered_columns_without_a_header(tmp_path: Path) -> None:
    found = _table(tmp_path, "a.tsv", "1\tx\n0\ty\n", header=False, label=1, text=2)
    assert [(d.name, d.label, d.units) for d in found] == [("a.tsv:1", "1", ("x",)), ("a.tsv:2", "0", ("y",))]


def test_csv_has_quotes(tmp_path: Path) -> None:
    text = 'text,label\n"a, ""b""\nc",x\n' + '"' + "long " * 40_000 + '",y\n'
    found = _table(tmp_path, "a.csv", text, label="label")
    assert found[0].units == ('a, "b"\nc',)
    assert len(found[1].units[0]) == 199_999


def test_jsonl(tmp_path: Path) -> None:
    rows = [
        {"q": "is it?", "p": "It is.", "yes": True, "s1": "one", "s2": "two"},
        {"q": "was it?", "p": "No.", "yes": False, "s": ["three", "four"]},
    ]
    text = "\n".join(map(json.dumps, rows))
    found = _table(tmp_path, "a.jsonl", text, text="q", pair="p", label="yes", references=("s", "s1", "s2"))
    assert [(d.pair, d.label, d.references) for d in found] == [
        ("It is.", "true", ("one", "two")),
        ("No.", "false", ("three", "four")),
    ]


def test_rows_into_documents(tmp_path: Path) -> None:
    text = "id\ttext\na\tone. Two.\nb\tthree\na\t\na\tfour\n"
    found = _table(tmp_path, "a.tsv", text, document="id", unit="sentence")
    assert [(d.name, d.units) for d in found] == [("a", ("one.", "Two.", "four")), ("b", ("three",))]


@pytest.mark.parametrize(
    ("name", "text", "fields", "message"),
    [
        (
            "a.tsv",
            "lable\ttext\n1\tx\n",
            {"label": "label"},
            "a.tsv:2: no column is called 'label'; did you mean",
        ),
        ("a.tsv", "1\tx\n", {"header": False}, r"no column is called 'text' \(valid: 1, 2\)"),
        ("a.tsv", "1\tx\n", {"header": False, "text": 3}, "no column is called '3'"),
        ("a.tsv", "a\ttext\n1\tx\n1\n", {}, "a.tsv:3: 1 columns where 2 are expected"),
        ("a.tsv", "a\ta\n1\tx\n", {}, "two columns are called 'a'"),
        ("a.tsv", "label\ttext\n1\t\n", {"label": "label"}, "a.tsv:2: the column 'text' is empty"),
        ("a.tsv", "label\ttext\n\tx\n", {"label": "label"}, "the column 'label' holds nothing"),
        ("a.csv", 'text\n"open\n', {}, "not a CSV row"),
        ("a.jsonl", '{"text": "x"}\n{"text"\n', {}, "a.jsonl:2: not a line of JSON"),
        ("a.jsonl", "[1, 2]\n", {}, "not a JSON object"),
        ("a.jsonl", "[" * 100_000, {}, "not a line of JSON"),
        ("a.jsonl", '{"text": 5}\n', {}, "the column 'text' holds 5, not text"),
        ("a.jsonl", '{"text": "x", "l": [1]}\n', {"label": "l"}, r"the column 'l' holds \[1\]; a text or"),
        ("a.jsonl", '{"text": "x"}\n', {"references": ("s",)}, "no column is called 's'"),
        ("a.jsonl", '{"text": " "}\n', {}, "there is no text in it"),
        ("a.xlsx", "x\n", {}, "no table format is called 'xlsx'.*valid: csv, jsonl, tsv"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path: Path, name: str, text: str, fields: Any, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        _table(tmp_path, name, text, **fields)


def test_the_format_may_be_said(tmp_path: Path) -> None:
    assert _table(tmp_path, "a.dat", "text\nx\n", format="csv")[0].units == ("x",)


def test_a_declaration_goes_through_its_plain_form() -> None:
    for corpus in (
        Text(train=("a", "b"), extra={"x": ("c",)}),
        Table(train="a", text=2, references=("s", 3)),
        Tokens(train="a"),
        Labelled(train="a"),
    ):
        plain = json.loads(json.dumps(corpus.plain()))
        assert Corpus.resolve(plain) == corpus
