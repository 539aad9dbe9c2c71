"""Position schemes against transformers, x-transformers and their formulas."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from attnlab.attention import Alibi, Dims, Position, Rotary, Sinusoidal, T5Bias
from attnlab.attention.position.alibi import published_slopes
from attnlab.errors import RequestError

PLACES = torch.arange(40)


def dims(heads: int = 4, head_width: int = 16) -> Dims:
    return Dims(width=heads * head_width, heads=heads, context=40)


def test_sinusoidal_is_the_published_formula() -> None:
    scheme = Sinusoidal().build(dims())
    table = scheme.embed(torch.zeros(40, 64, dtype=torch.float64), PLACES)
    for p in (0, 1, 39):
        for i in (0, 1, 30, 63):
            angle = p / 10_000 ** (2 * (i // 2) / 64)
            assert table[p, i].item() == pytest.approx(
                math.cos(angle) if i % 2 else math.sin(angle), abs=1e-12
            )


def test_rotary_is_llamas() -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama", reason="transformers is not here")
    config = llama.LlamaConfig(hidden_size=64, num_attention_heads=4, max_position_embeddings=64)
    q, k = torch.randn(2, 2, 4, 40, 16)
    cos, sin = llama.LlamaRotaryEmbedding(config)(q, PLACES[None])
    their_q, their_k = llama.apply_rotary_pos_emb(q, k, cos, sin)
    scheme = Rotary().build(dims())
    torch.testing.assert_close(scheme.turn(q, PLACES), their_q, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(scheme.turn(k, PLACES), their_k, rtol=1e-4, atol=1e-5)


def test_rotary_is_x_transformers_with_pairs_side_by_side() -> None:
    x_transformers = pytest.importorskip("x_transformers.x_transformers", reason="x-transformers is not here")
    q = torch.randn(2, 4, 40, 16)
    freqs, scale = x_transformers.RotaryEmbedding(16)(PLACES)
    side_by_side = q.unflatten(-1, (2, 8)).transpose(-2, -1).flatten(-2)  # theirs pairs (x_2i, x_2i+1)
    theirs = x_transformers.apply_rotary_pos_emb(side_by_side, freqs, scale)
    ours = Rotary().build(dims()).turn(q, PLACES).unflatten(-1, (2, 8)).transpose(-2, -1).flatten(-2)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_rotary_products_depend_on_distance_only() -> None:
    scheme = Rotary().build(dims())
    q, k = torch.randn(2, 1, 1, 1, 16, dtype=torch.float64)

    def product(t: int, s: int) -> Tensor:
        return (scheme.turn(q, torch.tensor([t])) * scheme.turn(k, torch.tensor([s]))).sum()

    torch.testing.assert_close(product(7, 3), product(104, 100), rtol=1e-9, atol=1e-9)


def test_rotary_refuses_an_odd_head() -> None:
    with pytest.raises(RequestError, match="head of width 5"):
        Rotary().build(Dims(width=15, heads=3, context=8))


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 8, 12, 20])
def test_alibi_is_x_transformers(heads: int) -> None:
    x_transformers = pytest.importorskip("x_transformers.x_transformers", reason="x-transformers is not here")
    theirs = x_transformers.AlibiPositionalBias(heads, heads)
    ours = Alibi().build(dims(heads)).bias(PLACES, PLACES)
    torch.testing.assert_close(ours, theirs(40, 40).view_as(ours))


def test_alibi_slopes_are_the_published_ones() -> None:
    assert published_slopes(8) == [2.0**-h for h in range(1, 9)]
    one = Alibi(slopes="one").build(dims(8)).bias(PLACES, PLACES)
    assert torch.equal(one, one[:1].expand_as(one))
    assert Alibi(slopes="one").plain() == {"part": "alibi", "slopes": "one"}


@pytest.mark.parametrize("sees", ["past", "both"])
@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (8, 20)])
def test_t5_bias_is_transformers(sees: str, buckets: int, furthest: int) -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5", reason="transformers is not here")
    ours = Position.resolve(
        {"part": "t5-bias", "buckets": buckets, "furthest": furthest, "sees": sees}
    ).build(dims())
    far = torch.arange(300)
    theirs = t5.T5Attention._relative_position_bucket(
        far - far[:, None], bidirectional=sees == "both", num_buckets=buckets, max_distance=furthest
    )
    expected = ours.table.weight[theirs].permute(2, 0, 1)
    torch.testing.assert_close(ours.bias(far, far), expected, rtol=0, atol=0)


def test_t5_bias_refuses_sizes_that_give_no_buckets() -> None:
    with pytest.raises(RequestError, match="1 buckets give 0 distances"):
        T5Bias(buckets=1).build(dims())


@pytest.mark.parametrize("position", [Alibi(), T5Bias(), Rotary(), Sinusoidal()], ids=lambda p: p.name)
def test_any_position_can_be_asked_for(position: Position) -> None:
    scheme = position.build(dims())
    far = torch.tensor([100_000])
    assert scheme.longest is None
    assert scheme.embed(torch.zeros(1, 64), far).isfinite().all()
    assert scheme.turn(torch.ones(1, 1, 1, 16), far).isfinite().all()
