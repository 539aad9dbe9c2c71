"""Labelled texts and pairs as sequences: their marks, their labels, and what the context cuts off."""

from __future__ import annotations

import numpy as np
import pytest
from transformers import BertTokenizerFast

from attnlab.corpus import Document
from attnlab.errors import CorpusError
from attnlab.tokens import Reading, Words
from attnlab.tokens.examples import (
    ExampleBatches,
    Examples,
    classes_of,
    examples_by_length,
    examples_of,
    shortened,
    take_examples,
)

TEXTS = ("a b c", "c b a d", "d d", "a")
DOCUMENTS = [Document(f"{i}", (text,), label="xy"[i % 2]) for i, text in enumerate(TEXTS)]
PAIRS = [Document("p", ("a b c",), label="x", pair="d c"), Document("q", ("d",), label="y", pair="a a")]
VOCABULARY = Words(minimum=1).fit(TEXTS)


def read(documents: list[Document], context: int = 20, **reading: object) -> Examples:
    return examples_of(documents, VOCABULARY, ("x", "y"), Reading.model_validate(reading), context)


def pieces(split: Examples) -> list[str]:
    rows = [split.ids[a:b] for a, b in zip(split.starts, split.starts[1:], strict=False)]
    names = {0: "[", 1: "]"}
    return ["".join(names.get(i, "") or VOCABULARY.piece(i) for i in row.tolist()) for row in rows]


def test_a_text_has_its_marks_and_its_label() -> None:
    split = read(DOCUMENTS)
    assert pieces(split) == ["[abc]", "[cbad]", "[dd]", "[a]"]
    assert split.labels.tolist() == [0, 1, 0, 1]
    assert split.lengths.tolist() == [5, 6, 4, 3]
    assert pieces(read(DOCUMENTS, start=False, stop=False)) == ["abc", "cbad", "dd", "a"]


def test_a_pair_has_a_separator_whatever_else_is_left_out() -> None:
    assert pieces(read(PAIRS)) == ["[abc]dc]", "[d]aa]"]
    assert pieces(read(PAIRS, start=False, stop=False)) == ["abc]dc", "d]aa"]


def test_what_is_cut_is_counted_and_the_marks_stay() -> None:
    split = read(DOCUMENTS, context=4)
    assert pieces(split) == ["[ab]", "[cb]", "[dd]", "[a]"]
    assert (split.cut_sequences, split.cut_tokens) == (2, 3)
    assert pieces(read(PAIRS, context=6)) == ["[ab]d]", "[d]aa]"]
    assert pieces(read(PAIRS, context=6, shorten="second")) == ["[abc]]", "[d]aa]"]
    assert pieces(read(PAIRS, context=6, shorten="first")) == ["[a]dc]", "[d]aa]"]


@pytest.mark.parametrize("which", ["longer", "first", "second"])
def test_pairs_are_shortened_as_transformers_does(which: str) -> None:
    strategy = {"longer": "longest_first", "first": "only_first", "second": "only_second"}[which]
    other = BertTokenizerFast(
        vocab={"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5, "b": 6}
    )
    rng = np.random.default_rng(0)
    for _ in range(60):
        first, second = rng.integers(3, 12, 2)
        room = int(rng.integers(max(first, second) + 1, first + second + 3)) if which != "longer" else 9
        encoded = other(
            "a " * int(first),
            "b " * int(second),
            truncation=strategy,
            max_length=room,
            add_special_tokens=False,
        )
        ids = encoded["input_ids"]
        kept = shortened([[5] * int(first), [6] * int(second)], room, which)
        assert sum(map(len, kept)) == len(ids)
        # Of an odd number of places, one of two long texts has one more; which is of no consequence.
        assert abs(len(kept[0]) - ids.count(5)) <= (which == "longer")


def test_units_of_a_document_share_its_label() -> None:
    split = read([Document("address", ("a b", "c"), label="y")])
    assert split.labels.tolist() == [1, 1]
    assert split.document.tolist() == [0, 0]


def test_labels_that_will_not_do_are_told() -> None:
    with pytest.raises(CorpusError, match="d has no label"):
        classes_of([Document("d", ("a",))], "corpus")
    with pytest.raises(CorpusError, match="every label is 'x'"):
        classes_of([Document("d", ("a",), label="x")], "corpus")
    with pytest.raises(CorpusError, match="'z', which no training document has"):
        read([Document("d", ("a",), label="z")])
    assert classes_of(DOCUMENTS, "corpus") == ("x", "y")


def test_a_batch_is_its_examples_and_splits_into_them() -> None:
    split = read(DOCUMENTS)
    batch = take_examples(split, np.array([2, 0]))
    assert (batch.tokens, batch.targets) == (9, 2)
    halves = list(batch.split(2))
    assert [half.labels_B.tolist() for half in halves] == [[0], [0]]
    assert np.array_equal(np.concatenate([half.tokens_N for half in halves]), batch.tokens_N)


def test_an_epoch_is_every_example_once() -> None:
    batches = ExampleBatches(read(DOCUMENTS), 3, seed=1)
    assert batches.per_epoch == 2
    assert sorted(i for step in (0, 1) for i in batches[step].sequences_B.tolist()) == [0, 1, 2, 3]
    assert sorted(i for b in examples_by_length(read(DOCUMENTS), 8) for i in b.sequences_B.tolist()) == [
        0,
        1,
        2,
        3,
    ]
