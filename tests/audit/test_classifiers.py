"""Checks on classifiers: ours pass, and each broken twin is caught by the check that is made for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from attnlab.attention import Attention, Causal, Layout, Nearby
from attnlab.audit.classifiers import RULES, Classifier
from attnlab.model import ClassifierModel, ClassToken, Encoder, Head, Mean

LABELS, VOCABULARY = 3, 40
Answer = Callable[[Sequence[Tensor]], Tensor]


def ours(encoder: Encoder, head: Head) -> Answer:
    model = ClassifierModel(encoder, head, VOCABULARY, LABELS).double().eval()
    return lambda sequences: model(torch.cat(list(sequences)), Layout([len(s) for s in sequences]))


ENCODER = Encoder(layers=2, heads=2, width=16, context=40)
torch.manual_seed(0)
TABLE, OUT = torch.randn(VOCABULARY, 8).double(), torch.randn(8, LABELS).double()


def padded(sequences: Sequence[Tensor]) -> Tensor:
    """(B, T, 8), as one does it by hand, with token 5 for padding."""
    return TABLE[nn.utils.rnn.pad_sequence(list(sequences), batch_first=True, padding_value=5)]


def attends_to_padding(sequences: Sequence[Tensor]) -> Tensor:
    x = padded(sequences)
    return ((x @ x.mT).softmax(-1) @ x)[:, 0] @ OUT


def pools_padding(sequences: Sequence[Tensor]) -> Tensor:
    return padded(sequences).mean(1) @ OUT


def norms_over_the_batch(sequences: Sequence[Tensor]) -> Tensor:
    means = torch.stack([TABLE[s].mean(0) for s in sequences])
    return (means - means.mean(0)) @ OUT + means @ OUT


def rolls_dice(sequences: Sequence[Tensor]) -> Tensor:
    return nn.functional.dropout(torch.stack([TABLE[s].mean(0) for s in sequences]), 0.5) @ OUT


def reads_the_first(sequences: Sequence[Tensor]) -> Tensor:
    return torch.stack([TABLE[s[0]] for s in sequences]) @ OUT


def reads_nothing(sequences: Sequence[Tensor]) -> Tensor:
    return torch.ones(len(sequences), LABELS)


def is_no_number(sequences: Sequence[Tensor]) -> Tensor:
    return torch.full((len(sequences), LABELS), torch.nan)


def seen(answer: Answer) -> dict[str, str]:
    subject = Classifier(answer=answer, vocabulary=VOCABULARY, longest=40, labels=LABELS)
    return {check.name: check.status for check in (rule(subject) for rule in RULES)}


@pytest.mark.parametrize("pool", [Mean(), ClassToken()])
def test_ours_pass(pool: Mean | ClassToken) -> None:
    assert set(seen(ours(ENCODER, Head(pool=pool))).values()) == {"pass"}


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        (attends_to_padding, "padding"),
        (pools_padding, "padding"),
        (norms_over_the_batch, "batch"),
        (rolls_dice, "determinism"),
        (reads_the_first, "reads"),
        (reads_nothing, "reads"),
        (is_no_number, "shape"),
    ],
)
def test_a_broken_twin_is_caught(answer: Answer, check: str) -> None:
    assert seen(answer)[check] == "fail"


def test_a_class_token_behind_a_causal_mask_sees_nothing() -> None:
    causal = ENCODER.model_copy(update={"mixer": Attention(mask=Causal())})
    assert seen(ours(causal, Head(pool=ClassToken())))["reads"] == "fail"
    assert seen(ours(causal, Head(pool=Mean())))["reads"] == "pass"


def test_tokens_out_of_reach_are_told_and_not_held_against_it() -> None:
    near = ENCODER.model_copy(update={"layers": 1, "mixer": Attention(mask=Nearby(reach=3))})
    assert seen(ours(near, Head(pool=ClassToken())))["reads"] == "skip"
