"""Overlap between splits."""

from __future__ import annotations

import random

import pytest

from attnlab.corpus.document import Document
from attnlab.corpus.overlap import CONTAINED, STRETCH, overlaps


def _words(rng: random.Random, n: int) -> list[str]:
    return [f"w{rng.randrange(1000)}" for _ in range(n)]


def _slow(train: list[str], text: str) -> tuple[bool, bool | None]:
    """The definition, one text at a time."""

    def stretches(t: str) -> list[tuple[str, ...]]:
        words = t.lower().split()
        return [tuple(words[i : i + STRETCH]) for i in range(len(words) - STRETCH + 1)]

    seen = {s for t in train for s in stretches(t)}
    own = stretches(text)
    near = sum(s in seen for s in own) >= CONTAINED * len(own) if own else None
    return text.lower() in {t.lower() for t in train}, near


@pytest.mark.parametrize("seed", range(5))
def test_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    train = [" ".join(_words(rng, rng.randrange(1, 30))) for _ in range(50)]
    held_out = []
    for _ in range(60):
        words = rng.choice(train).split()
        change = rng.randrange(4)
        if change == 1:
            words[rng.randrange(len(words))] = "changed"
        elif change == 2:
            words = [*words, *_words(rng, rng.randrange(20))]
        elif change == 3:
            words = _words(rng, rng.randrange(1, 30))
        held_out.append(" ".join(words).upper())
    found = overlaps(
        [Document(str(i), tuple(train[i::5])) for i in range(5)], {"dev": [Document("d", tuple(held_out))]}
    )["dev"]
    slow = [_slow(train, text) for text in held_out]
    assert found.texts == 60
    assert found.exact == pytest.approx(sum(exact for exact, _ in slow) / 60)
    near = [n for _, n in slow if n is not None]
    assert found.long_texts == len(near)
    assert found.near == pytest.approx(sum(near) / len(near))
    assert 0 < found.near < 1


def test_stretches_do_not_cross_texts() -> None:
    train = [Document("t", ("a b c d", "e f g h"))]
    assert overlaps(train, {"dev": [Document("d", ("a b c d e f g h",))]})["dev"].near == 0.0


def test_short_texts_only() -> None:
    found = overlaps([Document("t", ("one",))], {"dev": [Document("d", ("One", "two"))]})["dev"]
    assert found.plain() == {"exact": 0.5, "near": 0.0, "texts": 2, "long_texts": 0}


def test_the_second_text_of_a_pair_counts() -> None:
    train = [Document("t", ("is it so",), pair="a passage")]
    held_out = [Document("d", ("was it so",), pair="A  passage")]
    assert overlaps(train, {"dev": held_out})["dev"].exact == 0.5
