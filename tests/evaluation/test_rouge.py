"""ROUGE against the reference implementation, and beyond ASCII, where its own tokenizer finds nothing."""

from __future__ import annotations

import random

import pytest

from attnlab.evaluation.rouge import MEASURES, rouge, words

pytest.importorskip("rouge_score")

from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import DefaultTokenizer

ASCII = "the cat's 2 dogs, A-team; U.S. (x_y) 'quoted' 3.5% don't \t THE end!? e-mail@home.org"


def drawn(draw: random.Random, longest: int = 30) -> str:
    pieces = [*ASCII.split(), "\n", "--", "..."]
    return " ".join(draw.choice(pieces) for _ in range(draw.randrange(longest)))


def test_on_ascii_the_words_are_the_packages_own() -> None:
    draw, theirs = random.Random(0), DefaultTokenizer(use_stemmer=False)
    for _ in range(200):
        text = drawn(draw)
        assert words(text) == theirs.tokenize(text), text


def test_on_ascii_the_scores_are_the_packages_own() -> None:
    draw, theirs = random.Random(1), RougeScorer(["rouge1", "rouge2", "rougeL"])
    for _ in range(100):
        text, references = drawn(draw), [drawn(draw) or "x" for _ in range(draw.randrange(1, 4))]
        wanted = theirs.score_multi(references, text)
        found = rouge(text, references)
        for ours, name in MEASURES.items():
            if name in wanted:
                assert found[ours] == wanted[name].fmeasure


def test_lsum_takes_sentences_as_lines() -> None:
    theirs = RougeScorer(["rougeLsum", "rougeL"])
    text, reference = "Tom calls. Dr. Ann is out.", "Dr. Ann is out today. Tom calls her."
    lines = theirs.score("Dr. Ann is out today.\nTom calls her.", "Tom calls.\nDr. Ann is out.")
    assert rouge(text, [reference])["rouge_lsum"] == lines["rougeLsum"].fmeasure
    assert rouge(text, [reference])["rouge_lsum"] > rouge(text, [reference])["rouge_l"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Кошка пришла домой. Собака спит.", ["кошка", "пришла", "домой", "собака", "спит"]),
        ("天气很好。我们走吧。", list("天气很好我们走吧")),
        ("हिन्दी में लिखा", ["हिन्दी", "में", "लिखा"]),
        ("naïve café, Straße", ["naïve", "café", "straße"]),
        ("cafe\u0301", ["café"]),  # the accent as a mark of its own
        ("ภาษา", ["ภ", "า", "ษ", "า"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("ok ☎\ufe0f go", ["ok", "go"]),  # a mark on a sign is no part of the word before it
        ("", []),
    ],
)
def test_words_of_any_script(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize("text", ["Кошка пришла домой. Собака спит.", "天气很好。我们走吧。", "हिन्दी में लिखा"])
def test_a_text_is_like_itself_in_any_script(text: str) -> None:
    assert rouge(text, [text]) == dict.fromkeys(MEASURES, 1.0)
    # What the package does by itself, and why its tokenizer is not used.
    assert RougeScorer(["rouge1"]).score(text, text)["rouge1"].fmeasure == 0.0


def test_chinese_sentences_are_sentences() -> None:
    swapped = rouge("我们走吧。天气很好。", ["天气很好。我们走吧。"])
    assert swapped["rouge_lsum"] == 1.0
    assert swapped["rouge_l"] == 0.5


def test_the_nearest_reference_counts() -> None:
    assert rouge("tom calls ann", ["something else", "tom calls ann"])["rouge_1"] == 1.0
    assert rouge("", ["tom calls ann"])["rouge_1"] == 0.0
