"""The compiled kernel against the way in PyTorch that every model has."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from attnlab.attention import Additive, Attention, Causal, LinearAttention, Rotary, Window
from attnlab.decoding import OwnWriter, Recipe, write
from attnlab.decoding import own as own_module
from attnlab.decoding.compiled import CompiledReading, kernel, not_compiled_because
from attnlab.decoding.own import StatefulReading
from attnlab.model import Decoder, DecoderModel
from tests.decoding.models import VOCABULARY, vocabulary

pytestmark = pytest.mark.skipif(kernel() is None, reason="there is no C++ compiler")


def model_of(**sizes: Any) -> DecoderModel:
    """In fp32, with every weight away from its initial value."""
    fields: dict[str, Any] = {"layers": 2, "heads": 3, "width": 24, "context": 140, "dropout": 0.0, **sizes}
    model = Decoder(**fields).build(VOCABULARY, seed=1)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def tokens(*shape: int) -> torch.Tensor:
    return torch.randint(VOCABULARY, shape, generator=torch.Generator().manual_seed(2))


SIZES: list[dict[str, Any]] = [
    {},
    {"width": 48},
    {"heads": 1, "width": 20, "layers": 1},
    {"mlp_ratio": 0},
    {"tied": True},
    {"dropout": 0.3},
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("batch", [1, 3, 13])
@torch.inference_mode()
def test_it_reads_as_pytorch_does(sizes: dict[str, Any], batch: int) -> None:
    model = model_of(**sizes)
    read, oracle = CompiledReading(model), StatefulReading(model)
    text = tokens(batch, 120)  # further than the cache reaches at first
    for piece in (text[:, :5], *text[:, 5:].split(1, dim=1)):
        logits, expected = read.read(piece), oracle.read(piece)
        torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(read.vectors_BTD, oracle.vectors_BTD, rtol=1e-4, atol=1e-4)
    # The tolerance is one that a wrong token does not pass.
    other = text.clone()
    other[:, 60] = (other[:, 60] + 1) % VOCABULARY
    changed = CompiledReading(model).read(other)
    assert not torch.allclose(changed, logits, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_rows_are_kept_and_repeated() -> None:
    model = model_of()
    read, oracle = CompiledReading(model), StatefulReading(model)
    for reading in (read, oracle):
        reading.read(tokens(5, 8))
        reading.keep(torch.tensor([4, 1, 1]))
    torch.testing.assert_close(read.read(tokens(3, 2)), oracle.read(tokens(3, 2)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("width", [24, 48])
@torch.inference_mode()
def test_a_row_is_the_same_to_the_last_bit_in_any_batch(width: int) -> None:
    model, text = model_of(width=width), tokens(13, 40)
    together = CompiledReading(model).read(text)
    for first, count in ((0, 1), (3, 2), (5, 7), (4, 9)):
        some = slice(first, first + count)
        assert torch.equal(CompiledReading(model).read(text[some]), together[some])


def test_a_text_is_the_same_whatever_is_written_beside_it() -> None:
    writer = OwnWriter(model_of(), vocabulary())
    for notation in ("plain", "temperature=1.3+top-p=0.95"):
        many = write(writer, [0, 5], Recipe.read(notation), count=17, longest=100, seed=3)
        assert len(set(many)) > 10
        for count in (1, 4, 9):
            assert (
                write(writer, [0, 5], Recipe.read(notation), count=count, longest=100, seed=3) == many[:count]
            )


@pytest.mark.parametrize("notation", ["plain", "greedy", "beam=3", "contrastive=0.5,k=3"])
def test_without_a_compiler_the_texts_are_the_same(notation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, recipe = OwnWriter(model_of(), vocabulary()), Recipe.read(notation)
    compiled = write(writer, [0, 9, 4], recipe, count=5, longest=40, seed=1)
    monkeypatch.setattr(own_module, "kernel", lambda: None)
    assert isinstance(writer.begin(), StatefulReading)
    assert write(writer, [0, 9, 4], recipe, count=5, longest=40, seed=1) == compiled


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])  # the latter counts no changes
def test_weights_that_changed_are_packed_again(mode: Any) -> None:
    with mode():
        _read_and_changed_and_read()


def _read_and_changed_and_read() -> None:
    model = model_of()
    before = CompiledReading(model).read(tokens(2, 9))
    model.blocks[1].norm_mix.bias += 0.5
    after = CompiledReading(model).read(tokens(2, 9))
    assert not torch.allclose(before, after, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(after, StatefulReading(model).read(tokens(2, 9)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({"mixer": LinearAttention(), "position": {"part": "absent"}}, "its mixer is 'linear-attention'"),
        ({"mixer": Attention(score=Additive())}, "its score is 'additive'"),
        ({"mixer": Attention(mask=Window())}, "its mask is 'window'"),
        ({"mixer": Attention(mask=Causal(where="after"))}, "its mask is 'causal', or has other settings"),
        ({"mixer": Attention(kernel="stages")}, "it is to be computed in stages"),
        ({"position": Rotary()}, "its positions are 'rotary'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_other_models_go_the_way_that_all_can(sizes: dict[str, Any], reason: str) -> None:
    model = model_of(width=24, heads=2, **sizes)
    assert reason in str(not_compiled_because(model))
    assert isinstance(OwnWriter(model, vocabulary()).begin(), StatefulReading)
    assert not_compiled_because(model_of()) is None
    assert "fp32" in str(not_compiled_because(model_of().double()))


@torch.inference_mode()
def test_what_lies_outside_is_refused() -> None:
    model = model_of(context=8)
    with pytest.raises(IndexError, match="tokens from 0 to 23 are not all among the 23"):
        CompiledReading(model).read(torch.tensor([[0, VOCABULARY]]))
    reading = CompiledReading(model)
    reading.read(tokens(1, 8))
    with pytest.raises(IndexError, match="position 8 is beyond the 8"):
        reading.read(tokens(1, 1))
    several = CompiledReading(model)
    several.read(tokens(2, 3))
    for count in (1, 3):  # what is not in the cache cannot be read on
        with pytest.raises(IndexError, match=f"{count} texts go on where 2 are read"):
            several.read(tokens(count, 1))


@torch.inference_mode()
def test_tokens_of_any_width_and_layout_are_read_as_what_they_are() -> None:
    model, text = model_of(), tokens(3, 10)
    expected = CompiledReading(model).read(text)
    assert torch.equal(CompiledReading(model).read(text.int()), expected)
    assert torch.equal(CompiledReading(model).read(text.T.contiguous().T), expected)
