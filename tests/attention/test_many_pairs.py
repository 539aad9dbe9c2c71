"""Where the weights would be large they are worked out some queries at a time, to the same numbers."""

from __future__ import annotations

import pytest
import torch

from attnlab.attention import Attention, Dims, Layout, Position, operator

DIMS = Dims(width=16, heads=2, context=64, dropout=0.3)


@pytest.mark.parametrize("score", ["additive", "dot"])
@pytest.mark.parametrize("position", ["t5-bias", "absent"])
@pytest.mark.parametrize("training", [False, True])
def test_pieces_are_the_whole(
    score: str, position: str, training: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    layer = Attention.resolve({"part": "attention", "score": score, "kernel": "stages"}).build(DIMS).double()
    scheme = Position.resolve(position).build(DIMS).double()
    layer.dropout = 0.0  # another piece draws other numbers, so only without dropout are they equal
    x = torch.randn(40, 16, dtype=torch.float64, requires_grad=True)
    wanted = [x, *layer.parameters(), *scheme.parameters()]
    found = []
    for most in (1 << 20, 4000, 200):
        monkeypatch.setattr(operator, "_MOST_PAIRS", most)
        monkeypatch.setattr(operator, "_PIECE", most)
        y = layer.train(training)(x, Layout([30, 6, 4]), scheme)
        found.append([y, *torch.autograd.grad(y.square().sum(), wanted, allow_unused=True)])
    for whole, rows, queries in zip(*found, strict=True):  # at once, by sequences, by queries too
        torch.testing.assert_close(rows, whole)
        torch.testing.assert_close(queries, whole)


def test_dropout_is_the_same_forward_and_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient is that of the output there was: what was dropped stays dropped the second time."""
    monkeypatch.setattr(operator, "_MOST_PAIRS", 200)
    monkeypatch.setattr(operator, "_PIECE", 200)
    torch.manual_seed(0)
    layer = Attention(kernel="stages").build(DIMS).double().train()
    scheme = Position.resolve("absent").build(DIMS)
    x, along = torch.randn(2, 40, 16, dtype=torch.float64)

    def output(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(7)
        return layer(x, Layout([30, 6, 4]), scheme).square().sum()

    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(output(leaf), leaf)
    measured = (output(x + 1e-6 * along) - output(x - 1e-6 * along)) / 2e-6
    torch.testing.assert_close((gradient * along).sum(), measured.detach(), rtol=1e-6, atol=1e-6)


def test_no_square_of_t_is_kept() -> None:
    layer = Attention.resolve({"part": "attention", "score": "additive", "kernel": "stages"}).build(DIMS)
    kept: list[int] = []
    x = torch.randn(8 * 512, 16, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
        layer(x, Layout([512] * 8), Position.resolve("absent").build(DIMS))
    assert max(kept) <= 8 * 512 * 16 * 3  # the projections; one map alone would be 512 * 512 a head
