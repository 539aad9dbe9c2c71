"""The head's loss without the logits, against its definition."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.attention import compiled
from attnlab.training import head_kernel
from attnlab.training import head_loss as rooms
from attnlab.training.head_loss import head_loss, head_loss_by_definition, head_losses

V, D = 211, 24
SOURCE = Path(head_kernel.__file__).with_suffix(".cpp")


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


@pytest.fixture(params=["kernel", "PyTorch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By the compiled kernel, where there is a compiler, and without it."""
    if request.param == "PyTorch":
        monkeypatch.setattr(head_kernel, "kernel", lambda: None)
    elif not isinstance(compiled.library(SOURCE), ctypes.CDLL):
        pytest.skip(str(compiled.library(SOURCE)))
    return str(request.param)


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


def test_a_share_that_underflows_has_a_finite_loss(way: str) -> None:
    hidden_ND, weight_VD, targets_N = some(64, torch.float32, 300.0)
    logits = hidden_ND @ weight_VD.T
    assert (logits.softmax(-1).gather(1, targets_N[:, None]) == 0).any()
    loss = head_loss(hidden_ND, weight_VD, targets_N)
    assert loss.isfinite()
    torch.testing.assert_close(
        loss, head_loss_by_definition(hidden_ND, weight_VD, targets_N), rtol=1e-5, atol=1e-3
    )


def test_in_fp32_and_in_bf16_it_is_close(way: str) -> None:
    hidden_ND, weight_VD, targets_N = some(300, torch.float32)
    weight_VD = weight_VD * 0.1
    exact = with_gradients(head_loss_by_definition, hidden_ND.double(), weight_VD.double(), targets_N)
    for product, relative in ((torch.float32, 1e-6), (torch.bfloat16, 1e-2)):
        ours = with_gradients(head_loss, hidden_ND, weight_VD, targets_N, product)
        assert ours[0].dtype == ours[1].dtype == ours[2].dtype == torch.float32
        assert ours[0].item() == pytest.approx(exact[0].item(), rel=relative)
        for mine, theirs in zip(ours[1:], exact[1:], strict=True):
            assert (mine - theirs).norm() <= relative * theirs.norm()


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("N", "words", "width"), [(1, 1, 1), (64, 96, 16), (65, 97, 17), (200, 203, 48), (130, 300, 80)]
)
@pytest.mark.parametrize("scale", [0.1, 5.0, 300.0])
def test_in_fp32_it_errs_no_more_than_the_definition(
    N: int, words: int, width: int, scale: float, threads: int, way: str
) -> None:
    """Both in fp32, held against fp64 on the same numbers; at most four times the definition's error, and
    four roundings of the largest value besides."""
    generator = torch.Generator().manual_seed(words)
    hidden_ND = torch.randn(N, width, generator=generator) * scale
    weight_VD = torch.randn(words, width, generator=generator)
    targets_N = torch.randint(words, (N,), generator=generator)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        ours = with_gradients(head_loss, hidden_ND, weight_VD, targets_N)
        each = head_losses(hidden_ND, weight_VD, targets_N)
    finally:
        torch.set_num_threads(before)
    plain = with_gradients(head_loss_by_definition, hidden_ND, weight_VD, targets_N)
    exact = with_gradients(head_loss_by_definition, hidden_ND.double(), weight_VD.double(), targets_N)
    each_plain = F.cross_entropy(hidden_ND @ weight_VD.T, targets_N, reduction="none")
    logits_NV = hidden_ND.double() @ weight_VD.double().T
    each_exact = F.cross_entropy(logits_NV, targets_N, reduction="none")
    # Losses are differences of numbers as large as the largest logit; gradients, of hidden states and words.
    logit, size = (
        float(logits_NV.abs().max()) + 1,
        float(hidden_ND.abs().max()) + float(weight_VD.abs().max()),
    )
    sizes = (logit * N, size, size * N, logit)
    rounding = 4 * torch.finfo(torch.float32).eps
    both = zip((*ours, each), (*plain, each_plain), (*exact, each_exact), sizes, strict=True)
    for mine, definition, right, largest in both:
        allowed = 4 * float((definition - right).abs().max()) + rounding * largest
        assert float((mine - right).abs().max()) <= allowed


def test_what_does_not_lie_in_a_row_is_read_as_what_it_is(way: str) -> None:
    hidden_ND, weight_VD, targets_N = some(70, torch.float32)
    wanted = with_gradients(head_loss, hidden_ND, weight_VD, targets_N)
    apart = hidden_ND.T.contiguous().T, torch.cat([weight_VD, weight_VD], dim=1)[:, :D], targets_N.int()
    assert not apart[0].is_contiguous()
    assert not apart[1].is_contiguous()
    loss = head_loss(*apart)
    assert loss.item() == pytest.approx(wanted[0].item(), rel=1e-6)
    torch.testing.assert_close(head_losses(*apart), head_losses(hidden_ND, weight_VD, targets_N))
    for mine, theirs in zip(with_gradients(head_loss, *apart), wanted, strict=True):
        torch.testing.assert_close(mine, theirs)


needs_kernel = pytest.mark.skipif(
    not isinstance(compiled.library(SOURCE), ctypes.CDLL), reason="the kernel cannot be compiled here"
)


@needs_kernel
@pytest.mark.parametrize("target", [-1, V])
def test_a_target_that_is_no_word_is_left_to_pytorch(target: int) -> None:
    """Which has an error for it; the kernel would read memory that is not there."""
    hidden_ND, weight_VD, targets_N = some(40, torch.float32)
    assert head_kernel.losses(hidden_ND, weight_VD, targets_N) is not None
    targets_N[17] = target
    assert head_kernel.losses(hidden_ND, weight_VD, targets_N) is None
    assert head_kernel.gradients(hidden_ND, weight_VD, targets_N) is None


@needs_kernel
def test_threads_of_its_own_give_what_pytorchs_give() -> None:
    """Where OpenMP has fewer threads than are asked for, as under a limit, the kernel starts its own."""
    program = (
        "import torch; from attnlab.training import head_kernel;"
        "torch.manual_seed(0); torch.set_num_threads(2); assert torch.get_num_threads() == 2;"
        "made = head_kernel.gradients(torch.randn(200, 48), torch.randn(300, 48), torch.arange(200));"
        "print([float(x.double().sum()) for x in made])"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **limit},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for limit in ({}, {"OMP_THREAD_LIMIT": "1"})
    ]
    assert told[0] == told[1] != ""


def test_without_a_compiler_it_says_that_it_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "library", lambda source: "there is no C++ compiler")
    head_kernel.kernel.cache_clear()
    try:
        with pytest.warns(UserWarning, match="slower: there is no C\\+\\+ compiler"):
            assert head_kernel.kernel() is None
    finally:
        head_kernel.kernel.cache_clear()


def test_a_second_backward_through_the_same_loss_is_an_error_and_no_wrong_gradient() -> None:
    hidden_ND, weight_VD, targets_N = some(40, torch.float32)
    loss = head_loss(hidden_ND.requires_grad_(), weight_VD.requires_grad_(), targets_N)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_number_that_is_none_is_not_hidden(way: str) -> None:
    hidden_ND, weight_VD, targets_N = some(40, torch.float32)
    hidden_ND[17, 3] = float("nan")
    assert head_loss(hidden_ND, weight_VD, targets_N).isnan()
    assert head_losses(hidden_ND, weight_VD, targets_N).isnan().nonzero().tolist() == [[17]]
