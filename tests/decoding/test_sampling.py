"""Sampling with a state that remembers, against the whole text again at every step."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from attnlab.attention import Absent, Additive, Attention, Causal, LinearAttention, Mixer, Position, Rotary
from attnlab.decoding import sample
from attnlab.model import Decoder, DecoderModel

VOCABULARY = 23
STOP = 1


def model_with(mixer: Mixer, position: Position | None = None) -> DecoderModel:
    """Weights large enough that tokens matter, and some randomness remains."""
    spec = Decoder(layers=2, heads=2, width=16, context=32, mixer=mixer)
    if position is not None:
        spec = spec.model_copy(update={"position": position})
    model = spec.build(VOCABULARY, seed=1).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(
                parameter.shape,
                generator=torch.Generator().manual_seed(parameter.numel()),
                dtype=torch.double,
            )
    return model.eval()


@torch.no_grad()
def one_by_full_passes(
    model: DecoderModel, prompt: Sequence[int], generator: torch.Generator, longest: int, never: Sequence[int]
) -> list[int]:
    written = list(prompt)
    while len(written) <= longest:
        logits_V = model(torch.tensor([written]))[0, -1]
        logits_V[list(never)] = float("-inf")
        token = int(torch.multinomial(logits_V.softmax(-1), 1, generator=generator))
        if token == STOP:
            break
        written.append(token)
    return written[len(prompt) :]


MODELS = {
    "fused": (Attention(), None),
    "stages": (Attention(kernel="stages"), None),
    "additive": (Attention(score=Additive()), None),
    "renormalised": (Attention(mask=Causal(where="renormalised")), None),
    "rotary": (Attention(), Rotary()),
    "linear": (LinearAttention(), Absent()),
}


@pytest.mark.parametrize(("mixer", "position"), MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("prompt", [[0], [0, 5, 9, 4]], ids=["start", "text"])
def test_with_a_state_it_is_as_with_the_whole_text(
    mixer: Mixer, position: Position | None, prompt: list[int]
) -> None:
    model = model_with(mixer, position)
    ours = sample(model, prompt, count=6, longest=24, stop=STOP, seed=7, never=[0])
    generators = [torch.Generator().manual_seed(7 * 1_000_003 + row) for row in range(6)]
    theirs = [one_by_full_passes(model, prompt, g, 24, [0]) for g in generators]
    assert ours == theirs
    assert len({tuple(text) for text in ours}) > 3  # draws, and not one text over and over
    assert len({len(text) for text in ours}) > 1  # so that rows left while others went on


def test_how_many_are_drawn_together_changes_none_of_them() -> None:
    model = model_with(Attention())
    many = sample(model, [0], count=9, longest=20, stop=STOP, seed=3)
    for count in (0, 1, 4):
        assert sample(model, [0], count=count, longest=20, stop=STOP, seed=3) == many[:count]
    assert sample(model, [0], count=9, longest=20, stop=STOP, seed=4) != many


def test_stop_and_what_is_never_drawn_are_not_in_a_text() -> None:
    texts = sample(model_with(Attention()), [0], count=30, longest=20, stop=STOP, seed=3, never=[0, 5, 6])
    drawn = {token for text in texts for token in text}
    assert not drawn & {0, 1, 5, 6}
    assert len(drawn) > 8
    assert any(len(text) < 20 for text in texts)


def test_a_model_that_always_stops_writes_nothing() -> None:
    model = model_with(Attention())
    with torch.no_grad():
        model.norm.weight.zero_()
        model.norm.bias.copy_(model.head.weight[STOP] * 1000)
    assert sample(model, [0], count=3, longest=20, stop=STOP, seed=3) == [[], [], []]


def test_a_text_ends_where_the_context_does() -> None:
    model = model_with(Attention())
    never_stops = sample(model, [0], count=3, longest=32, stop=STOP, seed=3, never=[STOP])
    assert [len(text) for text in never_stops] == [32, 32, 32]  # 32 inputs give 32 predictions
    assert sample(model, [0] * 40, count=2, longest=32, stop=STOP, seed=3) == [[], []]


def test_a_model_is_left_as_it_was() -> None:
    model = model_with(Attention()).train()
    state = torch.random.get_rng_state()
    sample(model, [0], count=2, longest=5, stop=STOP, seed=3)
    assert model.training
    assert torch.equal(state, torch.random.get_rng_state())
