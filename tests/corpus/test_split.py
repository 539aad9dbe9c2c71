"""Which documents are held out."""

from __future__ import annotations

from itertools import pairwise

import pytest

from attnlab.corpus.document import Document
from attnlab.corpus.split import divide, spread
from attnlab.errors import CorpusError


def _documents(n: int) -> list[Document]:
    return [Document(f"d{i}", (f"text {i}",)) for i in range(n)]


@pytest.mark.parametrize("n", [3, 4, 10, 97, 1000])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_document_is_on_one_side(n: int, seed: int) -> None:
    d = divide(_documents(n), dev=0.1, test=0.2, seed=seed, source="x")
    names = [doc.name for side in (d.train, d.dev, d.test) for doc in side]
    assert sorted(names) == sorted(doc.name for doc in _documents(n))
    assert len(d.dev) == max(1, round(0.1 * n))
    assert len(d.test) == max(1, round(0.2 * n))


def test_the_seed_alone_decides() -> None:
    first, again, other = (
        divide(_documents(200), dev=0.1, test=0.1, seed=seed, source="x") for seed in (5, 5, 6)
    )
    assert first == again
    assert first.test != other.test


@pytest.mark.parametrize("seed", range(5))
def test_held_out_documents_are_spread_over_the_whole_order(seed: int) -> None:
    d = divide(_documents(200), dev=0.1, test=0.1, seed=seed, source="x")
    for side in (d.dev, d.test):
        places = [int(doc.name[1:]) for doc in side]
        assert len(places) == 20
        # One in every two neighbouring stretches of five documents: no gap is longer than four stretches.
        assert max(b - a for a, b in pairwise(places)) < 20
        assert min(places) < 10
        assert max(places) >= 190


def test_a_group_stays_together() -> None:
    documents = _documents(60)
    groups = [str(i // 3) for i in range(60)]
    d = divide(documents, dev=0.2, test=0.2, seed=0, source="x", groups=groups)
    sides = {doc.name: side for side in ("train", "dev", "test") for doc in getattr(d, side)}
    for g in range(20):
        assert len({sides[f"d{i}"] for i in range(3 * g, 3 * g + 3)}) == 1


def test_no_documents() -> None:
    with pytest.raises(CorpusError, match="there is no text"):
        divide([], dev=0.0, test=0.0, seed=0, source="x")


@pytest.mark.parametrize("n", [1, 2])
def test_too_few_documents(n: int) -> None:
    with pytest.raises(CorpusError, match="too few to hold out 1 for dev and 1 for test"):
        divide(_documents(n), dev=0.1, test=0.1, seed=0, source="x")


def test_a_share_of_nothing_takes_nothing() -> None:
    d = divide(_documents(10), dev=0.0, test=0.2, seed=0, source="x")
    assert d.dev == ()
    assert len(d.test) == 2


def test_spread() -> None:
    assert spread(10, 5) == [0, 2, 4, 6, 8]
    assert spread(3, 3) == [0, 1, 2]
