"""Documents into sequences."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.corpus import Document
from attnlab.errors import DeclarationError, RequestError
from attnlab.tokens import Blocks, Bpe, Characters, Encoded, Framing, Sentences, Tokenizer, Vocabulary, Words

DOCUMENTS = [
    Document("one", ("a b c d e f", "a b", "naïve  b é ")),
    Document("two", ("c", "!?")),
]
WORDS = Words(minimum=1, split="space")


def _vocabulary(tokenizer: Tokenizer = WORDS) -> Vocabulary:
    return tokenizer.fit(unit for d in DOCUMENTS for unit in d.units)


def _sequences(encoded: Encoded, vocabulary: Vocabulary) -> list[str]:
    bounds = zip(encoded.starts[:-1], encoded.starts[1:], strict=True)
    return [" ".join(vocabulary.piece(i) for i in encoded.ids[s:e]) for s, e in bounds]


def test_sentences() -> None:
    v = _vocabulary()
    encoded = Sentences().frame(DOCUMENTS, v, 10)
    assert _sequences(encoded, v) == [
        "<START> a b c d e f <STOP>",
        "<START> a b <STOP>",
        "<START> naïve b é <STOP>",
        "<START> c <STOP>",
        "<START> !? <STOP>",
    ]
    assert encoded.document.tolist() == [0, 0, 0, 1, 1]
    assert encoded.names == ("one", "two")
    # The text of a unit, and one byte for the gap after it.
    assert encoded.bytes.tolist() == [12, 4, 14, 2, 3]
    assert (encoded.cut_sequences, encoded.cut_tokens) == (0, 0)
    assert (encoded.n_sequences, encoded.n_targets) == (5, 18)
    assert encoded.targets_per_sequence.tolist() == [7, 3, 4, 2, 2]


def test_sentences_are_cut_at_the_limit() -> None:
    v = _vocabulary()
    for framing, context in ((Sentences(), 3), (Sentences(limit=3), 10)):
        encoded = framing.frame(DOCUMENTS, v, context)
        assert _sequences(encoded, v)[:3] == ["<START> a b c", "<START> a b <STOP>", "<START> naïve b é"]
        assert encoded.bytes.tolist() == [5, 4, 13, 2, 3]
        assert (encoded.cut_sequences, encoded.cut_tokens) == (2, 5)
        assert encoded.targets_per_sequence.max() == 3


def test_a_stop_that_just_fits_is_kept() -> None:
    v = _vocabulary()
    encoded = Sentences().frame(DOCUMENTS, v, 7)
    assert _sequences(encoded, v)[0].endswith("f <STOP>")
    assert encoded.cut_sequences == 0


def test_a_limit_beyond_the_context() -> None:
    with pytest.raises(RequestError, match="cut at 11 tokens, but the model reads only 10"):
        Sentences(limit=11).frame(DOCUMENTS, _vocabulary(), 10)
    with pytest.raises(DeclarationError, match="greater than 0"):
        Framing.resolve({"part": "sentences", "limit": 0})


def test_blocks() -> None:
    v = _vocabulary()
    encoded = Blocks().frame(DOCUMENTS, v, 4)
    assert _sequences(encoded, v) == [
        "<START> a b c d",
        "d e f <STOP> a",
        "a b <STOP> naïve b",
        "b é <STOP>",
        "<START> c <STOP> !? <STOP>",
    ]
    assert encoded.document.tolist() == [0, 0, 0, 0, 1]
    assert encoded.bytes.tolist() == [7, 6, 12, 5, 5]


@pytest.mark.parametrize("tokenizer", [WORDS, Words(minimum=1), Characters(), Bpe(size=260)])
@pytest.mark.parametrize("framing", [Sentences(), Blocks()])
def test_bytes_are_the_same_for_every_tokenizer_and_framing(tokenizer: Tokenizer, framing: Framing) -> None:
    encoded = framing.frame(DOCUMENTS, _vocabulary(tokenizer), 64)
    per_document = np.bincount(encoded.document, weights=encoded.bytes)
    expected = [sum(len(unit.encode()) + 1 for unit in d.units) for d in DOCUMENTS]
    assert per_document.tolist() == expected


@pytest.mark.parametrize("context", [1, 2, 3, 5, 8, 64])
def test_every_token_is_predicted_once(context: int) -> None:
    v = _vocabulary()
    stream = [[id for u in d.units for id in (*v.encode(u), v.stop)] for d in DOCUMENTS]
    encoded = Blocks().frame(DOCUMENTS, v, context)
    assert encoded.targets.tolist() == [id for ids in stream for id in ids]
    assert encoded.targets_per_sequence.max() <= context
    assert encoded.is_target.sum() == encoded.n_targets == len(encoded.targets)


def test_the_rate_of_unknown_words() -> None:
    v = Words(minimum=2, split="space").fit(["a a b b c"])
    encoded = Sentences().frame([Document("d", ("a b c", "d a"))], v, 10)
    assert encoded.unknown_rate == 2 / 5
    nothing_unknown = Bpe().fit(["a"])
    assert Sentences().frame([Document("d", ("z",))], nothing_unknown, 10).unknown_rate == 0.0


def test_types_are_as_promised() -> None:
    for framing in (Sentences(), Blocks()):
        encoded = framing.frame(DOCUMENTS, _vocabulary(), 4)
        types = [getattr(encoded, name).dtype for name in ("ids", "starts", "document", "bytes")]
        assert types == [np.int32, np.int64, np.int32, np.int64]
