"""The fast path of the additive score against its definition, also where its identity would overflow."""

from __future__ import annotations

import pytest
import torch

from attnlab.attention.score.additive import AdditiveScore, additive_by_definition


def scores_and_gradients(function, score: AdditiveScore, q: torch.Tensor, k: torch.Tensor):  # type: ignore[no-untyped-def]
    q, k = q.clone().requires_grad_(), k.clone().requires_grad_()
    scores = function(q, k)
    weight = torch.linspace(-1, 1, scores.numel(), dtype=scores.dtype).view_as(scores)
    return scores, torch.autograd.grad((scores * weight).sum(), [q, k, *score.parameters()])


@pytest.mark.parametrize("size", [1.0, 10.0, 1e3])
@pytest.mark.parametrize(("T", "S"), [(1, 9), (9, 9), (130, 40)])
def test_fast_path_is_the_definition(size: float, T: int, S: int) -> None:
    torch.manual_seed(0)
    score = AdditiveScore(8, 12).double()
    score.init_weights()
    q, k = size * torch.randn(2, 3, T, 8, dtype=torch.float64), torch.randn(2, 3, S, 8, dtype=torch.float64)

    def by_definition(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return additive_by_definition(score.from_query(q), score.from_key(k), score.out)

    fast, fast_grads = scores_and_gradients(score, score, q, k)
    slow, slow_grads = scores_and_gradients(by_definition, score, q, k)
    torch.testing.assert_close(fast, slow, rtol=1e-11, atol=1e-11)
    for mine, oracle in zip(fast_grads, slow_grads, strict=True):
        torch.testing.assert_close(mine, oracle, rtol=1e-9, atol=1e-9 * float(oracle.abs().max()))


@pytest.mark.parametrize("size", [1.0, 19.0, 30.0, 1e4])
def test_fp32_stays_finite_and_near_the_definition(size: float) -> None:
    torch.manual_seed(0)
    score = AdditiveScore(8, 8)
    score.init_weights()
    q, k = size * torch.randn(1, 2, 20, 8), size * torch.randn(1, 2, 20, 8)
    fast, grads = scores_and_gradients(score, score, q, k)
    exact = additive_by_definition(
        score.from_query(q).double(), score.from_key(k).double(), score.out.double()
    )
    torch.testing.assert_close(fast.double(), exact, rtol=1e-4, atol=1e-5)
    assert all(grad.isfinite().all() for grad in grads)
