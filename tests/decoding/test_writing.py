"""Texts token by token with a state that remembers, against the whole text again at every step."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from attnlab.attention import Absent, Additive, Attention, Causal, LinearAttention, Mixer, Position, Rotary
from attnlab.decoding import OwnWriter, Recipe, Writer, write
from attnlab.decoding.strategies.plain import pick
from attnlab.errors import RequestError
from tests.decoding.models import STOP, hub_writer, model_with, own_writer, vocabulary


@torch.no_grad()
def by_full_passes(
    writer: Writer, prompt: Sequence[int], recipe: Recipe, *, seed: int, longest: int
) -> tuple[int, ...]:
    """One continuation, by the definition."""
    generator = torch.Generator().manual_seed(seed)
    uniform = torch.rand(longest, generator=generator, dtype=torch.double)
    written = list(prompt)
    for step in range(longest):
        logits = writer.logits(torch.tensor([written]))[:, -1].double()
        logits[:, list(writer.never)] = float("-inf")
        for change in recipe.filters:
            logits = change(logits, torch.tensor([written]))
        drawn = pick(logits.softmax(-1), uniform[step : step + 1])
        token = int(drawn if recipe.search.draws else logits.argmax())
        if token in writer.stops:
            break
        written.append(token)
    return tuple(written[len(prompt) :])


MODELS: dict[str, tuple[Mixer, Position | None]] = {
    "fused": (Attention(), None),
    "stages": (Attention(kernel="stages"), None),
    "additive": (Attention(score=Additive()), None),
    "renormalised": (Attention(mask=Causal(where="renormalised")), None),
    "rotary": (Attention(), Rotary()),
    "linear": (LinearAttention(), Absent()),
}
RECIPES = ["plain", "greedy", "repetition-penalty=1.5+temperature=0.9+top-k=9"]


@pytest.mark.parametrize("notation", RECIPES)
@pytest.mark.parametrize(("mixer", "position"), MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("prompt", [[0], [0, 5, 9, 4]], ids=["start", "text"])
def test_with_a_state_it_is_as_with_the_whole_text(
    mixer: Mixer, position: Position | None, prompt: list[int], notation: str
) -> None:
    writer, recipe = own_writer(mixer=mixer, position=position), Recipe.read(notation)
    ours = [c.tokens for c in write(writer, prompt, recipe, count=9, longest=24, seed=8)]
    seeds = [8 * 1_000_003 + row for row in range(9)]
    assert ours == [by_full_passes(writer, prompt, recipe, seed=seed, longest=24) for seed in seeds]
    if notation == "plain":
        assert len(set(ours)) > 3  # draws, and not one text over and over
        assert len({len(text) for text in ours}) > 1  # so that rows left while others went on


@pytest.mark.parametrize("notation", RECIPES)
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_model_of_transformers_with_its_cache(family: str, notation: str) -> None:
    pytest.importorskip("transformers", reason="the models are of transformers")
    writer, recipe = hub_writer(family), Recipe.read(notation)
    ours = [c.tokens for c in write(writer, [5, 9, 4], recipe, count=4, longest=20, seed=2)]
    seeds = [2 * 1_000_003 + row for row in range(4)]
    assert ours == [by_full_passes(writer, [5, 9, 4], recipe, seed=seed, longest=20) for seed in seeds]


@pytest.mark.parametrize("notation", ["plain", "top-p=0.9", "beam=2", "contrastive=0.5,k=3"])
def test_how_many_are_drawn_together_changes_none_of_them(notation: str) -> None:
    writer, recipe = own_writer(), Recipe.read(notation)
    many = write(writer, [0], recipe, count=9, longest=20, seed=3)
    assert len(many) == 9
    for count in (0, 1, 4):
        assert write(writer, [0], recipe, count=count, longest=20, seed=3) == many[:count]
    same = write(writer, [0], recipe, count=9, longest=20, seed=4) == many
    assert same is not recipe.search.draws


def test_what_is_never_written_is_not_and_what_ends_says_so() -> None:
    writer = own_writer()
    writer.never = (0, 5, 6)
    texts = write(writer, [0], Recipe(), count=30, longest=20, seed=3)
    drawn = {token for text in texts for token in text.tokens}
    assert not drawn & {0, STOP, 5, 6}
    assert len(drawn) > 8
    assert all(text.ended == (len(text.tokens) < 20) for text in texts)
    assert {text.ended for text in texts} == {True, False}


@pytest.mark.parametrize("notation", ["plain", "greedy", "beam=3", "contrastive"])
def test_a_model_that_always_stops_writes_nothing(notation: str) -> None:
    model = model_with()
    with torch.no_grad():
        model.norm.weight.zero_()
        model.norm.bias.copy_(model.head.weight[STOP] * 1000)
    texts = write(OwnWriter(model, vocabulary()), [0], Recipe.read(notation), count=3, longest=20, seed=3)
    assert [(text.tokens, text.ended) for text in texts] == [((), True)] * 3


@pytest.mark.parametrize("notation", ["plain", "greedy", "beam=3", "contrastive"])
def test_a_text_ends_where_the_context_does(notation: str) -> None:
    writer = own_writer(context=12)
    writer.stops = frozenset()
    (text,) = write(writer, [0], Recipe.read(notation), count=1, longest=100, seed=3)
    # 12 inputs give 12 predictions; contrastive search reads its candidates too.
    assert len(text.tokens) == 12 - (notation == "contrastive")
    assert not text.ended
    for text in write(writer, [0] * 20, Recipe.read(notation), count=2, longest=5, seed=3):
        assert text.tokens == ()


def test_a_model_is_left_as_it_was() -> None:
    model = model_with().train()
    state = torch.random.get_rng_state()
    write(OwnWriter(model, vocabulary()), [0], Recipe(), count=2, longest=5, seed=3)
    assert model.training
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_prompt_that_the_model_cannot_read_is_refused() -> None:
    with pytest.raises(RequestError, match="the prompt holds the token 23, which the model does not have"):
        write(own_writer(), [0, 23], Recipe(), count=1, longest=5, seed=3)
    with pytest.raises(RequestError, match="the prompt holds no tokens"):
        write(own_writer(), [], Recipe(), count=1, longest=5, seed=3)
