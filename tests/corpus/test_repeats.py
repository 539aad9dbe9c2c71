"""Random words said twice."""

from __future__ import annotations

import pytest

from attnlab.corpus import Repeats
from attnlab.corpus.repeats import spelling
from attnlab.errors import DeclarationError

SMALL = Repeats(words=12, shortest=3, longest=6, train=50, held_out=10)


def test_every_sequence_is_a_passage_of_different_words_and_then_the_same() -> None:
    splits = SMALL.load()
    lengths = set()
    for _, documents in splits.items():
        for document in documents:
            (unit,) = document.units
            words = unit.split()
            half = len(words) // 2
            assert words[:half] == words[half:]
            assert len(set(words)) == half
            lengths.add(half)
    assert lengths == {3, 4, 5, 6}
    assert [len(documents) for _, documents in splits.items()] == [50, 10, 10]


def test_what_is_drawn_follows_from_the_declaration_alone() -> None:
    assert SMALL.load() == SMALL.load()
    assert SMALL.digest() != Repeats(words=12, shortest=3, longest=6, train=50, held_out=10, seed=1).digest()
    more = Repeats(words=12, shortest=3, longest=6, train=60, held_out=10).load()
    assert more.train[:50] == SMALL.load().train  # more of the same
    assert more.test == SMALL.load().test


def test_held_out_sequences_are_not_in_the_training_split() -> None:
    splits = Repeats().load()
    seen = {unit for document in splits.train for unit in document.units}
    assert not any(unit in seen for side in (splits.dev, splits.test) for d in side for unit in d.units)


@pytest.mark.parametrize("words", [2, 80, 81, 6401])
def test_every_word_is_spelled_differently(words: int) -> None:
    found = {spelling(number, words) for number in range(words)}
    assert len(found) == words
    assert len({len(word) for word in found}) == 1


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"shortest": 9, "longest": 4}, "shortest .9. is longer than longest .4."),
        ({"words": 10, "longest": 11}, "passage of 11 different words cannot be made of 10"),
        ({"words": 1}, "words: .*greater than or equal to 2"),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong: dict[str, int], told: str) -> None:
    with pytest.raises(DeclarationError, match=told):
        Repeats.resolve({"part": "repeats", **wrong})
