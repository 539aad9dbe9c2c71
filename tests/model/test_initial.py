"""Initial values: shared between the arms of a seed, different between seeds, of the right size."""

from __future__ import annotations

import math

import pytest
import torch

from attnlab.attention import Additive, Attention, Differential, Grouped, Rotary
from attnlab.model import Decoder, DecoderModel
from attnlab.model.initial import stream

BASE = Decoder()
ARMS = {
    "additive": Decoder(mixer=Attention(score=Additive())),
    "rotary": Decoder(position=Rotary()),
    "grouped": Decoder(mixer=Attention(project=Grouped(key_value_heads=1))),
    "differential": Decoder(heads=2, mixer=Differential()),
    "tied": Decoder(tied=True),
    "longer": Decoder(context=200),
}


def values(model: DecoderModel) -> dict[str, torch.Tensor]:
    return dict(model.named_parameters())


@pytest.mark.parametrize("arm", ARMS)
def test_arms_of_a_seed_share_what_they_have_in_common(arm: str) -> None:
    ours, theirs = values(BASE.build(300, seed=4)), values(ARMS[arm].build(300, seed=4))
    common = [n for n in ours if n in theirs and ours[n].shape == theirs[n].shape]
    assert {"embedding.weight", "blocks.2.mlp.down.weight", "norm.weight"} <= set(common)
    assert [name for name in common if not torch.equal(ours[name], theirs[name])] == []


def test_another_seed_draws_everything_anew() -> None:
    ours, theirs = values(BASE.build(300, seed=4)), values(BASE.build(300, seed=5))
    drawn = [name for name in ours if ours[name].dim() == 2]
    assert len(drawn) == 3 + 3 * 6
    assert not any(torch.equal(ours[name], theirs[name]) for name in drawn)


def test_the_same_seed_gives_the_same_model_whatever_was_drawn_before() -> None:
    ours = values(BASE.build(300, seed=4))
    torch.manual_seed(99)
    torch.rand(5)
    theirs = values(BASE.build(300, seed=4))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_sizes_are_gpt2s() -> None:
    model = BASE.build(3000, seed=0)
    residual = 0.02 / math.sqrt(2 * BASE.layers)
    for name, value in values(model).items():
        if name.endswith("bias"):
            assert value.abs().max() == 0
        elif "norm" in name:
            assert torch.equal(value, torch.ones_like(value))
        else:
            expected = residual if name.endswith(("merge.weight", "down.weight")) else 0.02
            error = 5 / math.sqrt(2 * value.numel())  # five standard errors of a deviation
            assert value.std().item() == pytest.approx(expected, rel=error)


def test_a_tied_head_is_the_embedding() -> None:
    model = ARMS["tied"].build(300, seed=4)
    assert model.head.weight is model.embedding.weight
    assert sum(p.numel() for p in model.parameters()) == sum(
        p.numel() for p in BASE.build(300).parameters()
    ) - (300 * 48)


def test_streams_are_told_apart() -> None:
    streams = {stream(seed, name, step) for seed in range(5) for name in "ab" for step in range(5)}
    assert len(streams) == 50
    assert stream(1, 2) == stream(1, 2)
    assert all(0 <= number < 2**63 for number in streams)
