"""Attention by the softmax of additive scores, in one go: no score is ever written down.

By a compiled kernel, for fp32 on the CPU. Weights are worked out a query at a time, and again for the
backward pass; what is dropped of them follows from one random number, so that is not kept either. It is held
against the stages, part by part (`kernel = "stages"`).

Shapes: B batch, H heads, T queries, S keys, h hidden units of the score, d head width.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from attnlab.attention import compiled
from attnlab.attention.score import additive_pairs

_STEPS = 1 << 16  # a share of dropped weights is kept to within one in so many


def takes(*tensors: Tensor) -> bool:
    """Whether the kernel can be used."""
    plain = all(x.dtype == torch.float32 and x.device.type == "cpu" for x in tensors)
    return plain and additive_pairs.kernel() is not None and kernel() is not None


@cache
def kernel() -> ctypes.CDLL | None:
    """The compiled kernel; None, said once, where it cannot be had."""
    made = compiled.library_or_warning(
        Path(__file__).with_suffix(".cpp"),
        "additive attention runs in stages, which takes longer",
    )
    if made is None:
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    made.attend_forward.argtypes = [pointer] * 7 + [number] * 9
    made.attend_backward.argtypes = [pointer] * 11 + [number] * 9
    return made


@torch._disable_dynamo  # type: ignore[attr-defined]  # as in `additive_pairs`
def attend(
    a_BTHh: Tensor, c_BSHh: Tensor, w_h: Tensor, v_BSHd: Tensor, seen_TS: Tensor, real_BS: Tensor, drop: float
) -> Tensor:
    """(B, T, H, d): the values, mixed by softmax(w·tanh(a + c)) over the keys that a query sees."""
    share = min(round(drop * _STEPS), _STEPS - 1)
    seed = int(torch.empty((), dtype=torch.int64).random_()) if share else 0
    a, c, w, v = (x.float() for x in (a_BTHh, c_BSHh, w_h, v_BSHd))
    mixed: Tensor = _Attend.apply(a, c, w, v, seen_TS, real_BS, seed, share)
    return mixed


class _Attend(torch.autograd.Function):
    """By the kernel."""

    @staticmethod
    def forward(ctx: Any, *tensors_and_dropout: Any) -> Tensor:
        tensors = [x.contiguous() for x in tensors_and_dropout[:6]]
        ctx.dropout = tensors_and_dropout[6:]
        ctx.save_for_backward(*tensors)
        a, c, w, v, seen, real = tensors
        mixed = v.new_empty(*a.shape[:3], v.shape[3])
        _call("attend_forward", a, c, w, v, seen, real, mixed, sizes=(*_sizes(a, v), *ctx.dropout))
        return mixed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BTHd: Tensor) -> tuple[Tensor | None, ...]:
        a, c, w, v, seen, real = ctx.saved_tensors
        grad_a, grad_c, grad_v = torch.empty_like(a), torch.empty_like(c), torch.empty_like(v)
        grad_w = w.new_zeros(torch.get_num_threads(), len(w))
        tensors = (grad_BTHd.contiguous(), a, c, w, v, seen, real, grad_a, grad_c, grad_w, grad_v)
        _call("attend_backward", *tensors, sizes=(*_sizes(a, v), *ctx.dropout))
        return grad_a, grad_c, grad_w.sum(0), grad_v, None, None, None, None


def _sizes(a_BTHh: Tensor, v_BSHd: Tensor) -> tuple[int, ...]:
    """B, H, T, S, h, d."""
    (B, T, H, h), (_, S, _, d) = a_BTHh.shape, v_BSHd.shape
    return B, H, T, S, h, d


def _call(name: str, *tensors: Tensor, sizes: tuple[int, ...]) -> None:
    function = getattr(kernel(), name)
    function(*(tensor.data_ptr() for tensor in tensors), *sizes, torch.get_num_threads())
