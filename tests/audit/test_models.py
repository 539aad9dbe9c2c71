"""Checks of models: each catches its broken twin, and a sound model passes them all."""

from __future__ import annotations

import time

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attnlab.audit as audit
from attnlab.audit import models
from attnlab.audit.models.learning import memorises, random_floor
from attnlab.model.decoder import Decoder

from .models_broken import BROKEN, VOCABULARY, TinyLM


def failing(target) -> set[str]:
    (result,) = audit.run_audit(target)
    return {check.name for check in result.checks if check.status in ("fail", "error")}


def test_a_sound_model_passes_every_check():
    start = time.process_time()
    (result,) = audit.run_audit(TinyLM())
    assert result.passed, audit.as_text([result])
    assert {check.name for check in result.checks if check.status == "skip"} == {"accumulation"}
    assert time.process_time() - start < 6.0  # twice the promise, for machines that are slower than ours


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_model_is_caught(fault):
    assert failing(TinyLM(fault)) & BROKEN[fault]


@pytest.mark.parametrize("tied", [False, True])
def test_our_decoder_passes(tied):
    model = Decoder(layers=2, heads=2, width=32, context=40, tied=tied).build(30)
    assert failing(model) == set()


class Bigrams(nn.Module):
    """Sees nothing but the present token."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, VOCABULARY)

    def forward(self, tokens):
        return self.table(tokens)


class Constant(nn.Module):
    """Frequencies only."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.row = nn.Embedding(VOCABULARY, 1), nn.Parameter(torch.zeros(VOCABULARY))

    def forward(self, tokens):
        return self.row + 0 * self.table(tokens)


class Peeking(nn.Module):
    """Sees the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, VOCABULARY)

    def forward(self, tokens):
        return self.table(tokens.roll(-1, 1))


def test_what_cannot_learn_is_caught_by_one_batch():
    assert memorises(models.model_from(Constant(), "constant")).status == "fail"
    assert memorises(models.model_from(TinyLM(), "tiny")).status == "pass"


def test_what_sees_the_answer_is_caught_by_random_tokens():
    seen = random_floor(models.model_from(Peeking(), "peeking"))
    assert seen.status == "fail"
    assert seen.detail["loss"] < seen.detail["floor"]
    assert random_floor(models.model_from(Bigrams(), "bigrams")).status == "pass"


def test_a_loss_alone_is_audited():
    def shifted(logits, labels):
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())

    def not_shifted(logits, labels):
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    def given_targets(logits, targets):
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def shifted_again(logits, targets):
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten())

    assert failing(shifted) == failing(given_targets) == set()
    assert "label-shift" in failing(not_shifted)
    assert "label-shift" in failing(shifted_again)


class LastPositionOnly(TinyLM):
    """As nanoGPT: without targets there are logits for the last position only, and -1 is not counted."""

    def forward(self, idx, targets=None):
        logits = super().forward(idx).logits
        if targets is None:
            return logits[:, [-1]], None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


def test_a_model_that_has_to_be_asked_with_targets():
    assert failing(LastPositionOnly()) == set()
    assert "causality" in failing(LastPositionOnly("no mask"))


def test_a_loss_that_counts_its_padding_however_it_is_marked():
    def counts(logits, targets):
        kept = targets.clamp_min(0)  # -1 becomes token 0
        if (targets < -1).any():
            raise IndexError("no such label")
        return F.cross_entropy(logits.flatten(0, 1), kept.flatten())

    assert "padding-loss" in failing(counts)


class Remembers(TinyLM):
    """Every call sees what the one before it was about."""

    def forward(self, tokens):
        logits = super().forward(tokens).logits
        before, self.memory = getattr(self, "memory", 0.0), logits.detach().mean((0, 1))
        return logits + 0.1 * before


def test_state_between_calls_is_no_leak_of_the_future():
    assert "determinism" in failing(Remembers())
    assert "causality" not in failing(Remembers())
