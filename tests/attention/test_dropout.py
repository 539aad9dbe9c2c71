"""Dropout: the right share, the right scale, the right gradient, the same numbers for the same seed."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from attnlab.attention.dropout import dropout


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_the_share_and_the_mean_are_those_asked_for(share: float) -> None:
    torch.manual_seed(0)
    dropped = dropout(torch.ones(1_000_003), share, training=True)
    zeros = int((dropped == 0).sum())
    assert stats.binomtest(zeros, dropped.numel(), share).pvalue > 1e-3
    assert dropped[dropped != 0].unique().numel() == 1
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.01)


def test_neighbours_are_dropped_independently() -> None:
    torch.manual_seed(1)
    zeros = (dropout(torch.ones(400_000), 0.5, training=True) == 0).double()
    for lag in (1, 2, 3, 4, 8):
        together = (zeros[lag:] * zeros[:-lag]).mean().item()
        assert together == pytest.approx(0.25, abs=0.005), lag


def test_the_gradient_goes_where_the_values_went() -> None:
    x = torch.ones(1000, dtype=torch.float64, requires_grad=True)
    y = dropout(x, 0.3, training=True)
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(grad, y.detach())


def test_nothing_happens_outside_training_or_without_a_share() -> None:
    x = torch.randn(10)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0, training=True) is x


def test_the_same_seed_drops_the_same() -> None:
    x = torch.randn(3, 7, 5)
    torch.manual_seed(3)
    first = dropout(x, 0.4, training=True)
    torch.manual_seed(3)
    assert torch.equal(first, dropout(x, 0.4, training=True))
