"""w·tanh(a + c) for every pair, and its gradients, without ever holding a number per pair and hidden unit.

By a compiled kernel for fp32 on the CPU; otherwise in PyTorch, some queries at a time.

tanh(a + c) = 1 - 2·r with r = 1 / (1 + e) and e = e^(2a)·e^(2c): one exponential per token instead of one
tanh per pair. Where arguments are so large that the product could overflow, e is taken pair by pair.

Shapes: B batch, H heads, T queries, S keys, h hidden units of the score.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnlab.attention import compiled

# e^(2·20)·e^(2·20) is still finite in fp32, and tanh(40) is 1 to the last bit of fp64.
_LARGEST_ARGUMENT = 20.0
_PAIR_BUFFER = 1 << 21  # elements of (…, t, S, h) held at once: small enough to stay in the cache


def additive_by_definition(a_BHTh: Tensor, c_BHSh: Tensor, w_h: Tensor) -> Tensor:
    """The oracle: w·tanh(a + c) for every pair, with the whole (…, T, S, h) tensor in memory."""
    return torch.tanh(a_BHTh.unsqueeze(-2) + c_BHSh.unsqueeze(-3)) @ w_h


# It has nothing to fuse with. The public `torch.compiler.disable` would load the whole compiler here and now,
# and everyone who imports attention would wait for it.
@torch._disable_dynamo  # type: ignore[attr-defined]
def additive_pairs(a_BHTh: Tensor, c_BHSh: Tensor, w_h: Tensor) -> Tensor:
    """(B, H, T, S): the scores of all pairs, computed in fp32 at least."""
    kept_as = a_BHTh.dtype
    a, c, w = (x.to(torch.promote_types(kept_as, torch.float32)) for x in (a_BHTh, c_BHSh, w_h))
    compilable = a.dtype == torch.float32 and a.device.type == "cpu"
    function: type[torch.autograd.Function] = _Compiled if compilable and kernel() else _InPyTorch
    scores: Tensor = function.apply(a, c, w)
    return scores.to(kept_as)


@cache
def kernel() -> ctypes.CDLL | None:
    """The compiled kernel; None, said once, where it cannot be had."""
    made = compiled.library_or_warning(
        Path(__file__).with_name("additive_kernel.cpp"),
        "additive attention runs in PyTorch, some three times slower",
    )
    if made is None:
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    made.additive_forward.argtypes = [pointer] * 4 + [number] * 5
    made.additive_backward.argtypes = [pointer] * 7 + [number] * 5
    return made


class _Compiled(torch.autograd.Function):
    """By the kernel."""

    @staticmethod
    def forward(ctx: Any, a_BHTh: Tensor, c_BHSh: Tensor, w_h: Tensor) -> Tensor:
        a, c, w = a_BHTh.contiguous(), c_BHSh.contiguous(), w_h.contiguous()
        ctx.save_for_backward(a, c, w)
        scores = a.new_empty(*a.shape[:-1], c.shape[-2])
        _call("additive_forward", a, c, w, scores, like=scores)
        return scores

    @staticmethod
    def backward(ctx: Any, grad_BHTS: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a, c, w = ctx.saved_tensors
        grad = grad_BHTS.contiguous()
        grad_a, grad_c = torch.empty_like(a), torch.empty_like(c)
        grad_w = w.new_zeros(torch.get_num_threads(), len(w))
        _call("additive_backward", grad, a, c, w, grad_a, grad_c, grad_w, like=grad)
        return grad_a, grad_c, grad_w.sum(0)


def _call(name: str, *tensors: Tensor, like: Tensor) -> None:
    """The function of that name, for scores of the shape of `like`."""
    (T, S), hidden = like.shape[-2:], tensors[1].shape[-1]
    sizes = (like.numel() // (T * S), T, S, hidden, torch.get_num_threads())
    getattr(kernel(), name)(*(tensor.data_ptr() for tensor in tensors), *sizes)


class _InPyTorch(torch.autograd.Function):
    """The same in any precision, on any device."""

    @staticmethod
    def forward(ctx: Any, a_BHTh: Tensor, c_BHSh: Tensor, w_h: Tensor) -> Tensor:
        ctx.save_for_backward(a_BHTh, c_BHSh, w_h)
        chunks = [w_h.sum() - 2 * (e.add_(1).reciprocal_() @ w_h) for e in _powers(a_BHTh, c_BHSh)]
        return torch.cat(chunks, dim=-2)

    @staticmethod
    def backward(ctx: Any, grad_BHTS: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a_BHTh, c_BHSh, w_h = ctx.saved_tensors
        grad_a, grad_c, grad_w = [], torch.zeros_like(c_BHSh), torch.zeros_like(w_h)
        start = 0
        for e_BHtSh in _powers(a_BHTh, c_BHSh):
            g_BHtS = grad_BHTS[..., start : start + e_BHtSh.shape[-3], :]
            start += e_BHtSh.shape[-3]
            r_BHtSh = (1 + e_BHtSh).reciprocal_()
            # d tanh = 1 - tanh² = 4·r·(1 - r); e·r is 1 - r without the rounding at 1
            slope_BHtSh = e_BHtSh.mul_(r_BHtSh).mul_(r_BHtSh).mul_(g_BHtS.unsqueeze(-1))
            grad_a.append(slope_BHtSh.sum(-2))
            grad_c += slope_BHtSh.sum(-3)
            tanh_BHtSh = r_BHtSh.mul_(-2).add_(1)
            grad_w += g_BHtS.reshape(-1) @ tanh_BHtSh.reshape(-1, w_h.numel())
        factor = 4 * w_h
        return torch.cat(grad_a, dim=-2) * factor, grad_c * factor, grad_w


def _powers(a_BHTh: Tensor, c_BHSh: Tensor) -> Iterator[Tensor]:
    """e^(2a + 2c), some queries at a time."""
    large = bool(max(a_BHTh.abs().max(), c_BHSh.abs().max()) > _LARGEST_ARGUMENT)
    some = max(1, _PAIR_BUFFER // max(1, c_BHSh.numel()))
    if large:
        for a in a_BHTh.split(some, dim=-2):
            both = (a.unsqueeze(-2) + c_BHSh.unsqueeze(-3)).mul_(2)
            yield both.clamp_(max=4 * _LARGEST_ARGUMENT).exp_()
    else:
        ec_BHSh = (2 * c_BHSh).exp()
        for ea in (2 * a_BHTh).exp().split(some, dim=-2):
            yield ea.unsqueeze(-2) * ec_BHSh.unsqueeze(-3)
