"""The operator, stage by stage and whole, against `torch.nn.functional.multi_head_attention_forward`."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.attention import (
    Absent,
    Attention,
    AttentionLayer,
    Causal,
    Dims,
    Dot,
    Everything,
    Layout,
    Softmax,
)

B, T, D = 3, 7, 24
TOLERANCE = {torch.float32: {"rtol": 1e-5, "atol": 1e-6}, torch.float64: {"rtol": 1e-12, "atol": 1e-13}}


def torch_attention(layer: AttentionLayer, x_BTD: Tensor, heads: int, causal: bool) -> tuple[Tensor, Tensor]:
    """PyTorch's own forward with our weights: output (B, T, D) and weights (B, H, T, T)."""
    project, merge = layer.project, layer.merge
    parts = (project.query, project.key, project.value)
    hidden = torch.triu(torch.ones(T, T, dtype=torch.bool), 1) if causal else None
    x_TBD = x_BTD.transpose(0, 1)
    out, weights = F.multi_head_attention_forward(
        x_TBD,
        x_TBD,
        x_TBD,
        D,
        heads,
        torch.cat([part.weight for part in parts]),
        torch.cat([part.bias for part in parts]),
        None,
        None,
        False,
        0.0,
        merge.weight,
        merge.bias,
        attn_mask=hidden,
        average_attn_weights=False,
    )
    return out.transpose(0, 1), weights


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("heads", "causal"), [(1, False), (1, True), (4, False), (4, True)])
@pytest.mark.parametrize("kernel", ["fused", "stages"])
def test_whole_operator_forward_and_backward(
    dtype: torch.dtype, heads: int, causal: bool, kernel: str
) -> None:
    torch.manual_seed(0)
    attention = Attention(mask=Causal() if causal else Everything(), kernel=kernel)
    layer = attention.build(Dims(width=D, heads=heads, context=T)).to(dtype)
    position = Absent().build(Dims(width=D, heads=heads, context=T))
    x = torch.randn(B, T, D, dtype=dtype, requires_grad=True)

    ours = layer(x.flatten(0, 1), Layout([T] * B), position).view(B, T, D)
    theirs, their_weights = torch_attention(layer, x, heads, causal)
    torch.testing.assert_close(ours, theirs, **TOLERANCE[dtype])
    our_weights = layer.weights(x.flatten(0, 1), Layout([T] * B), position)
    torch.testing.assert_close(our_weights, their_weights, **TOLERANCE[dtype])

    upstream = torch.randn_like(ours)
    wanted = [x, *layer.parameters()]
    ours_grad = torch.autograd.grad((ours * upstream).sum(), wanted)
    theirs_grad = torch.autograd.grad((theirs * upstream).sum(), wanted)
    for mine, other in zip(ours_grad, theirs_grad, strict=True):
        torch.testing.assert_close(
            mine, other, rtol=TOLERANCE[dtype]["rtol"], atol=10 * TOLERANCE[dtype]["atol"]
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_stage(dtype: torch.dtype) -> None:
    """Project, split, score, mask, weigh, mix, merge: each against the step PyTorch's forward takes."""
    torch.manual_seed(1)
    heads = 4
    layer = Attention(kernel="stages").build(Dims(width=D, heads=heads, context=T)).to(dtype)
    x = torch.randn(B * T, D, dtype=dtype)
    tolerance = TOLERANCE[dtype]

    projected = layer.project(x)
    packed = torch.cat([getattr(layer.project, name).weight for name in ("query", "key", "value")])
    theirs = (x @ packed.T).chunk(3, -1)
    biases = torch.cat([getattr(layer.project, name).bias for name in ("query", "key", "value")]).chunk(3)
    for mine, other, bias in zip(projected, theirs, biases, strict=True):
        torch.testing.assert_close(mine.flatten(1), other + bias, **tolerance)

    q, k, v = (Layout([T] * B).pad(part).transpose(1, 2) for part in projected)
    scores = Dot()(q, k)
    torch.testing.assert_close(
        scores, torch.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(D // heads), **tolerance
    )

    seen = Causal().visible(torch.arange(T), torch.arange(T))
    assert torch.equal(~seen, torch.nn.Transformer.generate_square_subsequent_mask(T) == float("-inf"))

    weights = Softmax()(scores, seen)
    torch.testing.assert_close(weights, scores.masked_fill(~seen, float("-inf")).softmax(-1), **tolerance)

    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(weights @ v, mixed, **tolerance)
    whole = layer(x, Layout([T] * B), Absent().build(Dims(width=D, heads=heads, context=T)))
    merged = F.linear(mixed.transpose(1, 2).reshape(B * T, D), layer.merge.weight, layer.merge.bias)
    torch.testing.assert_close(whole, merged, **tolerance)


def test_padding_and_documents_need_no_mask() -> None:
    """Documents of a layout are kept apart exactly as a block-diagonal mask over one long row would."""
    torch.manual_seed(2)
    lengths = [4, 1, 6]
    dims = Dims(width=D, heads=3, context=16)
    position = Absent().build(dims)
    for mask in (Causal(), Everything()):
        layer = Attention(mask=mask).build(dims).double()
        x = torch.randn(sum(lengths), D, dtype=torch.float64)
        document = torch.repeat_interleave(torch.arange(3), torch.tensor(lengths))
        place = torch.arange(sum(lengths))
        allowed = (document[:, None] == document) & mask.visible(place, place)
        q, k, v = (part.transpose(0, 1)[None] for part in layer.project(x))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        expected = layer.merge(mixed[0].transpose(0, 1).flatten(1))
        torch.testing.assert_close(layer(x, Layout(lengths), position), expected, rtol=1e-12, atol=1e-13)
