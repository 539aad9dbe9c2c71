"""Measures of written texts against sacrebleu, by hand, and against cross entropy over whole passes."""

from __future__ import annotations

import random

import pytest
import torch

from attnlab.decoding import Continuation
from attnlab.evaluation import written
from tests.decoding.models import STOP, hub_writer, own_writer

SAID = [["the", "cat", "sat", "on", "the", "mat"], ["the", "cat", "sat", "on", "the", "dog"], ["a", "bird"]]


def test_words_are_in_lower_case_and_marks_stand_alone() -> None:
    assert written.words("The cat's mat, twice.") == ["the", "cat", "'", "s", "mat", ",", "twice", "."]


def test_distinct_is_what_counting_gives() -> None:
    assert written.distinct(SAID, 1) == 8 / 14  # the cat sat on mat dog a bird
    assert written.distinct(SAID, 2) == 7 / 11
    assert written.distinct([["a"]], 2) == 0.0


def test_repetition_is_what_stood_in_the_same_text_before() -> None:
    again = ["a", "b", "c", "d", "a", "b", "c", "d", "a", "b", "c", "d"]
    assert written.repetition([again]) == 5 / 9  # nine 4-grams, four of them different
    assert written.repetition([again, SAID[0]]) == 5 / 18
    assert written.repetition(SAID) == 0.0  # that two texts say the same is not repetition
    assert written.repetition([["a", "a"]]) == 0.0


def sentences(seed: int) -> list[list[str]]:
    draw = random.Random(seed)
    return [
        draw.choices("abcdefg", k=draw.choice([1, 2, 3, 5, 9, 14])) for _ in range(draw.choice([2, 4, 7]))
    ]


@pytest.mark.parametrize("seed", range(30))
def test_bleu_is_sacrebleus(seed: int) -> None:
    sacrebleu = pytest.importorskip("sacrebleu", reason="BLEU to compare with is in sacrebleu")
    texts = sentences(seed)
    joined = [" ".join(text) for text in texts]
    theirs = [
        sacrebleu.sentence_bleu(text, [*joined[:at], *joined[at + 1 :]], tokenize="none").score
        for at, text in enumerate(joined)
    ]
    assert written.self_bleu(texts) == pytest.approx(sum(theirs) / len(theirs), abs=1e-9)


def test_self_bleu_of_one_text_over_and_over_is_the_whole() -> None:
    assert written.self_bleu([SAID[0]] * 3) == pytest.approx(100)
    assert written.self_bleu([["a", "b"], ["c", "d"]]) == 0.0
    assert written.self_bleu([SAID[0]]) == 0.0
    assert written.self_bleu([[], ["a"]]) == 0.0


@torch.no_grad()
def test_the_loss_is_the_cross_entropy_of_what_was_chosen() -> None:
    writer, prompt = own_writer(), [0, 5, 9]
    logs = writer.logits(torch.tensor([[0, 5, 9, 7, 7]]))[0].log_softmax(-1)
    by_hand = -float(logs[2, 7] + logs[3, 7])
    assert written.own_loss(writer, prompt, Continuation((7, 7), ended=False)) == pytest.approx((by_hand, 2))
    stopped = by_hand - float(logs[4, STOP])
    assert written.own_loss(writer, prompt, Continuation((7, 7), ended=True)) == pytest.approx((stopped, 3))
    assert written.own_loss(writer, prompt, Continuation((), ended=False)) == (0.0, 0)


def test_a_model_with_the_same_tokens_reads_those() -> None:
    one, other = own_writer(), own_writer(context=40)
    made = Continuation((7, 8), ended=True)
    found = written.loss_elsewhere(other, one, [0, 5], made, ("not looked at", "either"))
    assert found == written.own_loss(other, [0, 5], made)


def test_a_model_with_other_tokens_reads_the_text() -> None:
    pytest.importorskip("transformers", reason="the model is of transformers")
    reader = hub_writer("gpt2")
    found = written.loss_elsewhere(
        reader, own_writer(), [0, 3], Continuation((4, 5), ended=True), ("cab", "de")
    )
    letters = [ord(letter) - ord("a") + 3 for letter in "cabde"]
    assert found == written.own_loss(reader, letters[:3], Continuation(tuple(letters[3:]), ended=True))
    assert found[1] == 3
