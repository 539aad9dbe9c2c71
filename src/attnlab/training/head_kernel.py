"""The head's exponentials and gradients by a compiled kernel, for fp32 on the CPU.

Nine tenths of the multiplications that the processor could do in the time, in full precision; PyTorch's own
products, which go through memory, reach half of it. Where there is no compiler, `head_loss` does the same in
PyTorch.

Shapes: N tokens, filled up to whole strips, S strips, D model width, filled up to whole lines, V vocabulary.
"""

from __future__ import annotations

import ctypes
import warnings
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.attention import compiled

SAFE = 60.0  # the largest logit whose exponential, summed over any vocabulary, is finite in fp32
_STRIP = 64  # tokens that the kernel takes at once
_LINE = 16  # numbers of a cache line
_ROWS = 4  # words whose gradients it works out at once


@cache
def kernel() -> ctypes.CDLL | None:
    """The compiled kernel; None, said once, where it cannot be had."""
    made = compiled.library(Path(__file__).with_suffix(".cpp"))
    if isinstance(made, str):
        warnings.warn(f"the head's loss runs in PyTorch, up to three times slower: {made}", stacklevel=2)
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    made.head_totals.argtypes = [pointer] * 5 + [number] * 4
    made.head_gradients.argtypes = [pointer] * 7 + [number] * 4
    return made


def takes(hidden_ND: Tensor, weight_VD: Tensor) -> bool:
    """Whether it can be used: the kernel reckons with numbers only, and a NaN must not be lost in it."""
    if hidden_ND.device.type != "cpu" or not (hidden_ND.dtype == weight_VD.dtype == torch.float32):
        return False
    all_numbers = bool((hidden_ND.detach().sum() + weight_VD.detach().sum()).isfinite())
    return all_numbers and len(hidden_ND) > 0 and kernel() is not None


def log_totals(hidden_ND: Tensor, weight_VD: Tensor) -> Tensor:
    """(N,) the logarithm of Σ e^logit of every token."""
    hidden, weight, large_S = _filled(hidden_ND, weight_VD)
    shift_N, total_N = hidden.new_empty(2, len(hidden))
    _call("head_totals", hidden, weight, large_S, shift_N, total_N)
    return (total_N.log() + shift_N)[: len(hidden_ND)]


def gradients(hidden_ND: Tensor, weight_VD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same; Σ share·word of every token (N, D); and Σ share·hidden of every word (V, D)."""
    (N, D), V = hidden_ND.shape, len(weight_VD)
    hidden, weight, large_S = _filled(hidden_ND, weight_VD)
    shift_N, total_N = hidden.new_empty(2, len(hidden))
    of_hidden = torch.empty_like(hidden)
    of_weight = weight.new_zeros(_threads(hidden), V + -V % _ROWS, weight.shape[1])
    _call("head_gradients", hidden, weight, large_S, shift_N, total_N, of_hidden, of_weight)
    summed = of_weight[0] if len(of_weight) == 1 else of_weight.sum(0)
    return (total_N.log() + shift_N)[:N], of_hidden[:N, :D], summed[:V, :D]


def _filled(hidden_ND: Tensor, weight_VD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states and weight as the kernel wants them; which strips may have logits too large for e^x."""
    N, D = hidden_ND.shape
    beyond = (0, -D % _LINE)
    hidden = F.pad(hidden_ND, (*beyond, 0, -N % _STRIP)).contiguous()
    weight = F.pad(weight_VD, beyond).contiguous() if beyond[1] else weight_VD.contiguous()
    bound_N = hidden.norm(dim=1) * weight.norm(dim=1).max()
    return hidden, weight, (bound_N.view(-1, _STRIP) > SAFE).any(1)


def _threads(hidden: Tensor) -> int:
    """No more than there are strips: each has gradients of the whole weight to itself."""
    return min(torch.get_num_threads(), len(hidden) // _STRIP)


def _call(name: str, hidden: Tensor, weight: Tensor, *others: Tensor) -> None:
    sizes = (len(hidden), len(weight), weight.shape[1], _threads(hidden))
    getattr(kernel(), name)(*(tensor.data_ptr() for tensor in (hidden, weight, *others)), *sizes)
