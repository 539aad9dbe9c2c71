"""Weighings against the entmax package, PyTorch and their formulas; keys hidden, whole rows hidden."""

from __future__ import annotations

import entmax
import pytest
import torch
from torch import Tensor

from attnlab.attention import (
    Argmax,
    Entmax15,
    Relu,
    Sigmoid,
    Softmax,
    SoftmaxPlusOne,
    Sparsemax,
    StraightThroughArgmax,
    Weigh,
)

SCORES = 3 * torch.randn(2, 3, 6, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
ALL = torch.ones(6, 9, dtype=torch.bool)
EVERY = [
    Argmax(),
    Entmax15(),
    Relu(),
    Sigmoid(),
    Softmax(),
    SoftmaxPlusOne(),
    Sparsemax(),
    StraightThroughArgmax(),
]


def with_gradient(function, scores: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[no-untyped-def]
    scores = scores.clone().requires_grad_()
    weights = function(scores)
    upstream = torch.linspace(-1, 2, weights.numel(), dtype=weights.dtype).view_as(weights)
    return weights, torch.autograd.grad((weights * upstream).sum(), scores)[0]


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Sparsemax(), lambda s: entmax.sparsemax(s, dim=-1)),
        (Entmax15(), lambda s: entmax.entmax15(s, dim=-1)),
    ],
    ids=["sparsemax", "entmax15"],
)
def test_against_the_entmax_package(ours: Weigh, theirs, scale: float) -> None:  # type: ignore[no-untyped-def]
    mine, my_gradient = with_gradient(lambda s: ours(s, ALL), scale * SCORES)
    other, other_gradient = with_gradient(theirs, scale * SCORES)
    torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(my_gradient, other_gradient, rtol=1e-7, atol=1e-9)


def test_softmax_plus_one() -> None:
    mine, gradient = with_gradient(lambda s: SoftmaxPlusOne()(s, ALL), SCORES)
    exact, exact_gradient = with_gradient(lambda s: s.exp() / (1 + s.exp().sum(-1, keepdim=True)), SCORES)
    torch.testing.assert_close(mine, exact)
    torch.testing.assert_close(gradient, exact_gradient)


def test_softmax_plus_one_is_torchs_zero_attention() -> None:
    """PyTorch's `add_zero_attn` adds a key and a value of zeros: the same one in the denominator."""
    q, k, v = torch.randn(3, 7, 2, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    eye, none = torch.eye(12, dtype=torch.float64), torch.zeros(36, dtype=torch.float64)
    theirs, weights = torch.nn.functional.multi_head_attention_forward(
        *(q, k, v, 12, 3, torch.cat([eye] * 3), none, None, None, True, 0.0, eye, none[:12]),
        average_attn_weights=False,
    )
    heads = (x.unflatten(-1, (3, 4)).permute(1, 2, 0, 3) for x in (q, k, v))
    q_BHTd, k_BHTd, v_BHTd = heads
    ours = SoftmaxPlusOne()(q_BHTd @ k_BHTd.mT / 2, torch.ones(7, 7, dtype=torch.bool))
    torch.testing.assert_close(ours, weights[..., :-1])
    torch.testing.assert_close((ours @ v_BHTd).permute(2, 0, 1, 3).flatten(2), theirs)


def test_sigmoid_and_relu() -> None:
    torch.testing.assert_close(
        Sigmoid()(torch.zeros_like(SCORES), ALL).sum(-1), torch.full((2, 3, 6), 0.9).double()
    )
    torch.testing.assert_close(Relu()(SCORES, ALL), SCORES.clamp_min(0) / 9)


def test_argmax_gives_no_gradient_and_straight_through_gives_softmaxs() -> None:
    best = torch.nn.functional.one_hot(SCORES.argmax(-1), 9).double()
    assert torch.equal(Argmax()(SCORES, ALL), best)
    assert not Argmax()(SCORES.clone().requires_grad_(), ALL).requires_grad
    weights, gradient = with_gradient(lambda s: StraightThroughArgmax()(s, ALL), SCORES)
    assert torch.equal(weights, best)
    torch.testing.assert_close(gradient, with_gradient(lambda s: s.softmax(-1), SCORES)[1])


@pytest.mark.parametrize("weigh", EVERY, ids=lambda w: w.name)
def test_hidden_keys_weigh_nothing_and_change_nothing(weigh: Weigh) -> None:
    visible = torch.rand(6, 9, generator=torch.Generator().manual_seed(1)) > 0.4
    visible[2] = False
    weights = weigh(SCORES, visible)
    assert (weights[..., ~visible] == 0).all()
    for row in range(6):
        seen = visible[row]
        if seen.any():
            alone = weigh(SCORES[..., row : row + 1, seen], torch.ones(1, int(seen.sum()), dtype=torch.bool))
            torch.testing.assert_close(weights[..., row : row + 1, seen], alone)
    wild = SCORES.masked_fill(~visible, 1e30)
    torch.testing.assert_close(weigh(wild, visible), weights)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("weigh", EVERY, ids=lambda w: w.name)
def test_finite_with_large_scores_and_empty_rows(weigh: Weigh, dtype: torch.dtype) -> None:
    visible = torch.ones(6, 9, dtype=torch.bool).tril()
    visible[0] = False
    scores = (1e4 * SCORES).to(dtype).requires_grad_()
    weights = weigh(scores, visible)
    assert weights.isfinite().all()
    assert (weights[..., 0, :] == 0).all()
    if weights.requires_grad:
        weights.sum().backward()
        assert scores.grad is not None
        assert scores.grad.isfinite().all()


def test_large_scores_keep_the_entmax_family_on_the_simplex() -> None:
    for weigh in (Sparsemax(), Entmax15()):
        weights = weigh((1e6 * SCORES).float(), ALL)
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 6))
