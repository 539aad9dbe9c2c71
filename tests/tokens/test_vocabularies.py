"""Tokenizers and the vocabularies they make."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.errors import CorpusError, DeclarationError, StoreError
from attnlab.tokens import Bpe, Characters, Tokenizer, Vocabulary, Words

TEXT = [
    'Mr. Smith said, "I won\'t pay $1,000.50 to the U.S. (or so)."',
    "The nation's well-known rivers: they're 3,000 miles long; it's true!",
    "naïve “quotes”—and 日本 too…",
] * 3
EVERY: list[Tokenizer] = [Words(minimum=1), Words(minimum=1, split="space"), Characters(), Bpe(size=300)]


@pytest.mark.parametrize("tokenizer", EVERY, ids=lambda t: f"{t.name}-{getattr(t, 'split', '')}")
def test_text_comes_back(tokenizer: Tokenizer) -> None:
    vocabulary = tokenizer.fit(TEXT)
    for text in TEXT:
        assert vocabulary.decode(vocabulary.encode(text)) == text


@pytest.mark.parametrize("tokenizer", EVERY, ids=lambda t: f"{t.name}-{getattr(t, 'split', '')}")
@settings(max_examples=60, deadline=None)
@given(text=st.text())
def test_any_text_has_ids_and_ends(tokenizer: Tokenizer, text: str) -> None:
    vocabulary = _fitted(tokenizer)
    ids, ends = vocabulary.encode(text), vocabulary.ends(text)
    assert len(ids) == len(ends)
    assert ends == sorted(ends)
    assert not ids or ends[-1] == len(text.encode())
    assert all(2 <= id < vocabulary.size for id in ids)
    assert isinstance(vocabulary.decode(ids), str)


_VOCABULARIES: dict[Tokenizer, Vocabulary] = {}


def _fitted(tokenizer: Tokenizer) -> Vocabulary:
    if tokenizer not in _VOCABULARIES:
        _VOCABULARIES[tokenizer] = tokenizer.fit(TEXT)
    return _VOCABULARIES[tokenizer]


@pytest.mark.parametrize("tokenizer", EVERY, ids=lambda t: f"{t.name}-{getattr(t, 'split', '')}")
def test_kept_and_read_again(tokenizer: Tokenizer) -> None:
    vocabulary = tokenizer.fit(TEXT)
    again = Vocabulary.from_json(vocabulary.to_json())
    assert again == vocabulary
    assert again.fingerprint == vocabulary.fingerprint != tokenizer.fit(TEXT[:2] * 3).fingerprint
    assert again.encode(TEXT[0]) == vocabulary.encode(TEXT[0])
    assert [again.piece(i) for i in range(again.size)] == [vocabulary.piece(i) for i in range(again.size)]


@pytest.mark.parametrize("tokenizer", EVERY, ids=lambda t: f"{t.name}-{getattr(t, 'split', '')}")
def test_no_text_spells_a_special_token(tokenizer: Tokenizer) -> None:
    vocabulary = tokenizer.fit([*TEXT, "<START> a <STOP> b <UNK> <START> <STOP> <UNK>"])
    ids = vocabulary.encode("<START> a <STOP> b <UNK>")
    assert not {vocabulary.start, vocabulary.stop} & set(ids)


@pytest.mark.parametrize("tokenizer", EVERY, ids=lambda t: f"{t.name}-{getattr(t, 'split', '')}")
def test_start_is_left_out_and_a_stop_between_texts_is_a_line_break(tokenizer: Tokenizer) -> None:
    v = tokenizer.fit(TEXT)
    one, two = v.encode("Smith pay"), v.encode("the miles")
    assert v.decode([v.start, *one, v.stop, *two, v.stop]) == "Smith pay\nthe miles"
    assert (v.piece(v.start), v.piece(v.stop)) == ("<START>", "<STOP>")


@pytest.mark.parametrize(
    ("tokenizer", "units"),
    [
        (Words(), []),
        (Characters(), []),
        (Bpe(), []),
        (Words(), ["", " \n"]),
        (Bpe(), ["", " \n"]),
        (Characters(), [""]),
    ],
)
def test_a_vocabulary_of_nothing(tokenizer: Tokenizer, units: list[str]) -> None:
    with pytest.raises(CorpusError, match="the vocabulary would be empty"):
        tokenizer.fit(units)


def test_words_are_counted() -> None:
    vocabulary = Words(minimum=2).fit(["a b a", "c b a d"])
    assert [vocabulary.piece(i) for i in range(vocabulary.size)] == ["<START>", "<STOP>", "<UNK>", "a", "b"]
    assert vocabulary.encode("a d b e") == [3, 2, 4, 2]
    assert vocabulary.decode([3, 2, 4]) == "a <UNK> b"
    with pytest.raises(CorpusError, match=r"no word occurs 4 times .* the most frequent occurs 3 times"):
        Words(minimum=4).fit(["a b a", "c b a d"])


def test_at_most_so_many_words() -> None:
    words = ["a b c d", "d c d", "b"]
    assert Words(minimum=1, maximum=2).fit(words).size == 5
    # b and c occur equally often: the alphabet decides.
    assert Words(minimum=1, maximum=2).fit(words).decode([3, 4]) == "d b"


def test_lower_case() -> None:
    vocabulary = Words(minimum=2, lowercase=True).fit(["The the"])
    assert vocabulary.encode("THE İ") == [3, 2, 2][: len(vocabulary.encode("THE İ"))]
    assert vocabulary.ends("THE İ")[-1] == len("THE İ".encode())


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("It's the nation's.", ["It", "'s", "the", "nation", "'s", "."]),
        ("They won't; we'll see o'clock", ["They", "won't", ";", "we", "'ll", "see", "o'clock"]),
        ("In the U.S. at 9 a.m. sharp", ["In", "the", "U.S.", "at", "9", "a.m.", "sharp"]),
        ("$1,000.50 is 3% (12:30)", ["$", "1,000.50", "is", "3", "%", "(", "12:30", ")"]),
        ("the 20th--no, 21st... well-to-do", ["the", "20th", "--", "no", ",", "21st", "...", "well-to-do"]),
        ("He’s “here”.", ["He", "’s", "“", "here", "”", "."]),
        ("a_b ___ c", ["a", "_", "b", "___", "c"]),
    ],
)
def test_where_words_end(text: str, tokens: list[str]) -> None:
    vocabulary = Words(minimum=1).fit([text])
    assert [vocabulary.piece(i) for i in vocabulary.encode(text)] == tokens


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (
            "it 's looking , I think , like Reps who won 't talk .",
            "it's looking, I think, like Reps who won't talk.",
        ),
        ('he said " yes " and " no " .', 'he said "yes" and "no".'),
        ("I do n't know ( yet ) !", "I don't know (yet)!"),
        ("$ 5 and 3 %", "$5 and 3%"),
    ],
)
def test_tokens_are_shown_as_text(tokens: str, text: str) -> None:
    vocabulary = Words(minimum=1, split="space").fit([tokens])
    assert vocabulary.decode(vocabulary.encode(tokens)) == text


def test_characters() -> None:
    vocabulary = Characters(minimum=2).fit(["ab a", "b  c"])
    assert [vocabulary.piece(i) for i in range(vocabulary.size)][3:] == ["␣", "a", "b"]
    assert vocabulary.encode("c a") == [2, 3, 4]


def test_byte_pairs_know_everything() -> None:
    vocabulary = Bpe(size=300).fit(TEXT)
    text = "Ω 🙂 unseen\tthings"
    assert vocabulary.unknown is None
    assert vocabulary.decode(vocabulary.encode(text)) == text
    assert 258 <= vocabulary.size <= 300
    with pytest.raises(DeclarationError, match="greater than or equal to 258"):
        Tokenizer.resolve({"part": "bpe", "size": 100})


def test_byte_pairs_are_the_most_frequent_ones() -> None:
    text = "low low low lower lower newest newest newest newest widest widest"
    vocabulary = Bpe(size=258 + 4, minimum=2).fit([text])
    merged = [vocabulary.piece(i) for i in range(258, vocabulary.size)]
    # Counted by hand: no pair occurs more often than e-s, and what follows it is always t.
    pairs = Counter(p for word in text.replace(" ", " ␣").split() for p in pairwise(word))
    assert pairs.most_common(1)[0][1] == pairs["e", "s"] == 6
    assert "es" in merged
    assert "est" in merged


def test_byte_pairs_are_the_same_in_every_process() -> None:
    code = (
        "from attnlab.tokens import Bpe; import random; r = random.Random(0); "
        "words = [''.join(r.choice('abcdef') for _ in range(r.randrange(1, 8))) for _ in range(3000)]; "
        "print(Bpe(size=600).fit([' '.join(words[i:i+9]) for i in range(0, 3000, 9)]).fingerprint)"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads},
        ).stdout
        for seed, threads in (("1", "1"), ("2", "2"), ("3", "2"))
    }
    assert len(prints) == 1


def test_a_kind_that_is_not_there() -> None:
    with pytest.raises(StoreError, match="did you mean 'words'"):
        Vocabulary.from_json(json.dumps({"kind": "wrods"}))
