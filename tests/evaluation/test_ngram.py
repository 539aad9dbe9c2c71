"""N-gram floors: proper distributions, equal to slow and readable counting, and to NLTK."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.corpus import Document
from attnlab.errors import RequestError
from attnlab.evaluation.floors import floors, floors_kept
from attnlab.evaluation.ngram import KneserNey, Unigram, estimate
from attnlab.tokens import Blocks, Encoded, Framing, Prepared, Sentences, Vocabulary, Words


def _split(
    framing: Framing, context: int, words: int = 40, seed: int = 0
) -> tuple[Vocabulary, Encoded, Encoded]:
    """Random text in which a word depends on the one before it; the held-out part has unknown words."""
    rng = np.random.default_rng(seed)
    follow = rng.dirichlet(np.full(words, 0.1), size=words)
    frequency = rng.zipf(1.3, size=10_000) % words

    def document(name: str, units: int) -> Document:
        texts = []
        for _ in range(units):
            chain = [int(rng.choice(frequency))]
            for _ in range(int(rng.integers(0, 12))):
                chain.append(int(rng.choice(words, p=follow[chain[-1]])))
            texts.append(" ".join(f"w{i}" for i in chain))
        return Document(name, tuple(texts))

    train, held_out = document("a", 300), document("b", 60)
    vocabulary = Words(minimum=3, split="space").fit(train.units)
    return (
        vocabulary,
        framing.frame([train], vocabulary, context),
        framing.frame([held_out], vocabulary, context),
    )


def _sequences(encoded: Encoded) -> list[list[int]]:
    return [encoded.ids[s:e].tolist() for s, e in zip(encoded.starts[:-1], encoded.starts[1:], strict=True)]


class _Oracle:
    """The same model with dictionaries, one n-gram at a time, as the formulas are written."""

    def __init__(self, train: Encoded, order: int) -> None:
        self.size, self.start, self.order = train.size, train.start, order
        triples: Counter[tuple[int, int, int]] = Counter()
        pairs: Counter[tuple[int, int]] = Counter()
        left_of_pair: dict[tuple[int, int], set[int | str]] = defaultdict(set)
        for ids in _sequences(train):
            for t in range(1, len(ids)):
                pairs[ids[t - 1], ids[t]] += 1
                left_of_pair[ids[t - 1], ids[t]].add(ids[t - 2] if t > 1 else "edge")
                if t > 1:
                    triples[ids[t - 2], ids[t - 1], ids[t]] += 1
        left_of_word: dict[int, set[int]] = defaultdict(set)
        for previous, word in pairs:
            left_of_word[word].add(previous)
        lower = {pair: n if pair[0] == self.start else len(left_of_pair[pair]) for pair, n in pairs.items()}
        self.words = {(word,): len(left) for word, left in left_of_word.items()}
        self.pairs = lower if order == 3 else dict(pairs)
        self.triples = dict(triples)

    def _interpolate(self, counts: Mapping[Any, int], gram: tuple[int, ...], lower: float) -> float:
        discounts = estimate(np.array(list(counts.values())))
        total, given, kept = 0, 0.0, 0.0
        for other, n in counts.items():
            if other[:-1] == gram[:-1]:
                total += n
                given += discounts[min(n, 3) - 1]
                if other == gram:
                    kept = n - discounts[min(n, 3) - 1]
        return lower if total == 0 else kept / total + given / total * lower

    def probability(self, before: list[int], word: int) -> float:
        p = 0.0 if word == self.start else 1 / (self.size - 1)
        p = self._interpolate(self.words, (word,), p)
        p = self._interpolate(self.pairs, (before[-1], word), p)
        if self.order == 3 and len(before) > 1:
            p = self._interpolate(self.triples, (before[-2], before[-1], word), p)
        return p


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize(("framing", "context"), [(Sentences(), 30), (Sentences(), 5), (Blocks(), 7)])
def test_kneser_ney_is_what_slow_counting_says(order: int, framing: Framing, context: int) -> None:
    _, train, held_out = _split(framing, context)
    oracle = _Oracle(train, order)
    expected = [
        -math.log(oracle.probability(ids[:t], ids[t]))
        for ids in _sequences(held_out)[:25]
        for t in range(1, len(ids))
    ]
    losses = KneserNey.fit(train, order).losses(held_out)
    assert len(losses) == held_out.n_targets
    np.testing.assert_allclose(losses[: len(expected)], expected, rtol=1e-12)


def test_kneser_ney_with_one_discount_is_nltks() -> None:
    lm = pytest.importorskip("nltk.lm", reason="NLTK is not installed")
    _, train, held_out = _split(Sentences(), 30)
    sequences = _sequences(train)
    grams = [
        tuple(map(str, ids[i : i + n]))
        for ids in sequences
        for n in (1, 2, 3)
        for i in range(len(ids) - n + 1)
    ]
    theirs = lm.KneserNeyInterpolated(3, discount=0.75)
    theirs.fit([grams], vocabulary_text=map(str, range(train.size)))
    # NLTK's lowest order is not discounted, and its trigrams need two tokens of context.
    flat = (0.75, 0.75, 0.75)
    ours = KneserNey.fit(train, 3, discounts=[(0.0, 0.0, 0.0), flat, flat])
    compared = 0
    for ids in _sequences(held_out)[:20]:
        for t in range(2, len(ids)):
            one = (np.array([i]) for i in ids[t - 2 : t + 1])
            expected = theirs.score(str(ids[t]), tuple(map(str, ids[t - 2 : t])))
            assert ours.probability(*one)[0] == pytest.approx(expected, rel=1e-12)
            compared += 1
    assert compared > 50


@pytest.mark.parametrize("order", [2, 3])
def test_probabilities_sum_to_one(order: int) -> None:
    vocabulary, train, _ = _split(Sentences(), 30)
    model = KneserNey.fit(train, order)
    every = np.arange(vocabulary.size)
    contexts = [(-1, 0), (-1, 5), (0, 5), (0, 0), (5, 7), (7, 2), (vocabulary.size - 1, vocabulary.size - 1)]
    for earlier, previous in contexts:
        p = model.probability(np.full_like(every, earlier), np.full_like(every, previous), every)
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        assert p[train.start] == 0.0
        assert (np.delete(p, train.start) > 0).all()


def test_unigram_is_counts_plus_one() -> None:
    vocabulary, train, held_out = _split(Sentences(), 30)
    counts = Counter(id for ids in _sequences(train) for id in ids[1:])
    total = sum(counts.values()) + vocabulary.size - 1
    losses = Unigram.fit(train).losses(held_out)
    expected = [-math.log((counts[id] + 1) / total) for ids in _sequences(held_out) for id in ids[1:]]
    np.testing.assert_allclose(losses, expected, rtol=1e-12)


def test_more_context_helps_where_words_depend_on_each_other() -> None:
    _, train, held_out = _split(Sentences(), 30, seed=3)
    found = floors(train, held_out)
    assert list(found) == ["unigram", "bigram", "trigram"]
    assert found["bigram"]["loss"] < found["unigram"]["loss"] - 0.3
    for floor in found.values():
        assert floor["perplexity"] == pytest.approx(math.exp(floor["loss"]))


def test_a_text_too_small_for_three_discounts() -> None:
    assert estimate(np.array([1, 1, 1])) == (0.5, 0.5, 0.5)
    assert estimate(np.array([1, 1, 2])) == (0.5, 0.5, 0.5)
    assert estimate(np.array([1, 2, 2])) == (0.2, 0.2, 0.2)
    assert estimate(np.array([1] * 8 + [2] * 4 + [3] * 2 + [4])) == (0.5, 1.25, 2.0)
    vocabulary = Words(minimum=1).fit(["a b"])
    tiny = Sentences().frame([Document("d", ("a b",))], vocabulary, 8)
    for floor in floors(tiny, tiny).values():
        assert math.isfinite(floor["loss"])


def test_a_vocabulary_too_large_for_the_keys() -> None:
    _, train, _ = _split(Sentences(), 30)
    fields = {**vars(train), "size": 3_000_000}
    with pytest.raises(RequestError, match="3,000,000 is too large"):
        KneserNey.fit(Encoded(**fields), 3)


def test_an_order_that_is_not_there() -> None:
    _, train, _ = _split(Sentences(), 30)
    with pytest.raises(RequestError, match="order 2 or 3, not 4"):
        KneserNey.fit(train, 4)


def test_floors_are_made_once_for_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path))
    vocabulary, train, held_out = _split(Sentences(), 30, seed=3)
    prepared = Prepared(vocabulary, {"train": train, "test": held_out}, {"text": "one"})
    found = floors_kept(prepared)
    assert found == floors(train, held_out)
    (file,) = tmp_path.glob("*.floors")
    monkeypatch.setattr("attnlab.evaluation.floors.floors", lambda *_: {"made": "anew"})
    assert floors_kept(prepared) == found
    assert floors_kept(replace(prepared, facts={"text": "two"})) == {"made": "anew"}
    file.write_bytes(file.read_bytes()[:-1] + b" ")  # damaged
    assert floors_kept(prepared) == {"made": "anew"}
