"""The head's loss without the logits, against its definition."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.training import head_loss as rooms
from attnlab.training.head_loss import head_loss, head_loss_by_definition, head_losses

V, D = 211, 24


def some(N: int, dtype: torch.dtype, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(N)
    hidden_ND = torch.randn(N, D, generator=generator, dtype=dtype) * scale
    weight_VD = torch.randn(V, D, generator=generator, dtype=dtype)
    return hidden_ND, weight_VD, torch.randint(V, (N,), generator=generator)


def with_gradients(
    loss_of: Callable[..., Tensor], hidden_ND: Tensor, weight_VD: Tensor, *rest: object
) -> tuple[Tensor, Tensor, Tensor]:
    hidden_ND, weight_VD = hidden_ND.clone().requires_grad_(), weight_VD.clone().requires_grad_()
    loss = loss_of(hidden_ND, weight_VD, *rest)
    (loss / 7).backward()  # as the loop does: by a number of tokens
    assert hidden_ND.grad is not None
    assert weight_VD.grad is not None
    return loss.detach(), hidden_ND.grad, weight_VD.grad


@pytest.fixture(params=[0, 1 << 20], ids=["in chunks of 128", "at once"])
def chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few words make large chunks; with many, some hundred tokens go through several."""
    monkeypatch.setattr(rooms, "_LOGITS", request.param)


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("N", [1, 31, 32, 33, 128, 129, 300])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 300.0])
def test_loss_and_gradients_are_the_definitions(N: int, scale: float) -> None:
    """At a scale of 300 the logits reach thousands, and the shares of most targets underflow."""
    hidden_ND, weight_VD, targets_N = some(N, torch.float64, scale)
    ours = with_gradients(head_loss, hidden_ND, weight_VD, targets_N, torch.float64)
    definition = with_gradients(head_loss_by_definition, hidden_ND, weight_VD, targets_N)
    for mine, theirs in zip(ours, definition, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("scale", [1.0, 1e-6, 300.0])
def test_the_loss_of_every_token(scale: float) -> None:
    hidden_ND, weight_VD, targets_N = some(300, torch.float64, scale)
    reference = F.cross_entropy(hidden_ND @ weight_VD.T, targets_N, reduction="none")
    ours = head_losses(hidden_ND, weight_VD, targets_N)
    torch.testing.assert_close(ours, reference, rtol=1e-11, atol=1e-11)
    in_fp32 = head_losses(hidden_ND.float(), weight_VD.float(), targets_N)
    torch.testing.assert_close(in_fp32.double(), reference, rtol=1e-5, atol=1e-5)


def test_a_share_that_underflows_has_a_finite_loss() -> None:
    hidden_ND, weight_VD, targets_N = some(64, torch.float32, 300.0)
    logits = hidden_ND @ weight_VD.T
    assert (logits.softmax(-1).gather(1, targets_N[:, None]) == 0).any()
    loss = head_loss(hidden_ND, weight_VD, targets_N)
    assert loss.isfinite()
    torch.testing.assert_close(
        loss, head_loss_by_definition(hidden_ND, weight_VD, targets_N), rtol=1e-5, atol=1e-3
    )


def test_in_fp32_and_in_bf16_it_is_close() -> None:
    hidden_ND, weight_VD, targets_N = some(300, torch.float32)
    weight_VD = weight_VD * 0.1
    exact = with_gradients(head_loss_by_definition, hidden_ND.double(), weight_VD.double(), targets_N)
    for product, relative in ((torch.float32, 1e-6), (torch.bfloat16, 1e-2)):
        ours = with_gradients(head_loss, hidden_ND, weight_VD, targets_N, product)
        assert ours[0].dtype == ours[1].dtype == ours[2].dtype == torch.float32
        assert ours[0].item() == pytest.approx(exact[0].item(), rel=relative)
        for mine, theirs in zip(ours[1:], exact[1:], strict=True):
            assert (mine - theirs).norm() <= relative * theirs.norm()


def test_a_number_that_is_none_is_not_hidden() -> None:
    hidden_ND, weight_VD, targets_N = some(40, torch.float32)
    hidden_ND[17, 3] = float("nan")
    assert head_loss(hidden_ND, weight_VD, targets_N).isnan()
    assert head_losses(hidden_ND, weight_VD, targets_N).isnan().nonzero().tolist() == [[17]]
