"""Losses and accuracy on hidden words, against torch with all logits written down; worst lists by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attnlab.attention import Layout
from attnlab.corpus import Document
from attnlab.evaluation.answering import by_document, names_in
from attnlab.evaluation.classified import Classified
from attnlab.evaluation.masking import masked_score, most_frequent
from attnlab.evaluation.worst import worst_answered, worst_read
from attnlab.model import Encoder, MaskedModel
from attnlab.tokens import Masking, Reading, Sentences, Words
from attnlab.tokens.examples import examples_of
from attnlab.tokens.masking import MaskedSplit

TEXTS = ("the sea is wide", "the road is long and the field is green", "a ship", "the sea the sea")
DOCUMENTS = [Document("one", TEXTS[:2], label="x"), Document("two", TEXTS[2:], label="y")]
VOCABULARY = Words(minimum=1).fit(TEXTS)


def split() -> MaskedSplit:
    examples = examples_of(DOCUMENTS, VOCABULARY, ("x", "y"), Reading(), 12)
    return MaskedSplit(examples, Masking(rate=0.4), VOCABULARY.size)


def test_the_score_is_torchs_cross_entropy_at_the_hidden_places() -> None:
    torch.manual_seed(0)
    model = MaskedModel(Encoder(layers=1, heads=2, width=16, context=12, dropout=0.1), VOCABULARY.size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    losses, right = [], []
    model.eval()
    for batch in split().held_out(10_000):
        hidden_ND = model.encoder.hidden(torch.from_numpy(batch.inputs_N), Layout(batch.lengths_B.tolist()))
        logits = hidden_ND[batch.places_M] @ model.encoder.embedding.weight[:-1].T
        targets = torch.from_numpy(batch.targets_M)
        losses += F.cross_entropy(logits, targets, reduction="none").tolist()
        right += (logits.argmax(-1) == targets).tolist()
    model.train()
    found = masked_score(model, split())
    assert found.places == len(losses) > 4
    assert found.loss == pytest.approx(np.mean(losses), rel=1e-5)
    assert found.accuracy == pytest.approx(np.mean(right))
    assert model.training


def test_the_most_frequent_word_is_the_floor() -> None:
    found = most_frequent(split(), split())
    (the,) = VOCABULARY.encode("the")
    targets = np.concatenate([batch.targets_M for batch in split().held_out(10_000)])
    assert found.accuracy == pytest.approx((targets == the).mean())
    assert found.places == len(targets)


def test_examples_of_a_document_are_one_item() -> None:
    examples = examples_of(DOCUMENTS, VOCABULARY, ("x", "y"), Reading(), 12)
    found = Classified.of(names_in(examples), ("x", "y"), examples.labels, [[0.9, 0.1]] * 3 + [[0.2, 0.8]])
    items = by_document(found, examples)
    assert names_in(examples) == ("one, 1", "one, 2", "two, 1", "two, 2")
    assert items.names == ("one", "two")
    assert items["correct"] == (1.0, 0.5)
    assert items["examples"] == (2, 2)
    assert items.mean("correct", "examples") == found.items.mean("correct")


def test_the_surest_mistake_comes_first_and_what_is_right_never() -> None:
    examples = examples_of(DOCUMENTS, VOCABULARY, ("x", "y"), Reading(), 12)
    found = Classified.of(
        names_in(examples), ("x", "y"), examples.labels, [[0.4, 0.6], [0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]
    )
    told = worst_answered(found, examples, 2)
    assert [(one["text"], one["label"], one["answer"]) for one in told] == [
        (TEXTS[2], "y", "x"),
        (TEXTS[3], "y", "x"),
    ]
    assert len(worst_answered(found, examples, 9)) == 3


def test_the_hardest_text_is_the_one_of_the_highest_mean() -> None:
    encoded = Sentences().frame(DOCUMENTS, VOCABULARY, 12)
    sums = encoded.targets_per_sequence * np.array([1.0, 3.0, 9.0, 2.0])
    told = worst_read(encoded, sums, VOCABULARY, 2)
    # The third is too short for a mean to say much.
    assert [one["text"] for one in told] == [TEXTS[1], TEXTS[3]]
    assert told[0]["loss"] == pytest.approx(3.0)
    assert told[0]["tokens"] == 10
