"""The losses of a head and their gradients by a compiled kernel, for fp32 on the CPU.

Nine tenths of the multiplications that the processor could do in the time, in full precision; PyTorch's own
products, which go through memory, reach half of it. Where there is no compiler, `head_loss` does the same in
PyTorch.

Shapes: N tokens, D model width, filled up to whole lines, V vocabulary.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.attention import compiled

_LINE = 16  # numbers of a cache line
_ROWS = 4  # words whose gradients the kernel works out at once
_REFUSED, _NO_MEMORY = 1, 2  # what it may answer


@cache
def kernel() -> ctypes.CDLL | None:
    """The compiled kernel; None, said once, where it cannot be had."""
    made = compiled.library_or_warning(
        Path(__file__).with_suffix(".cpp"),
        "the head's loss runs in PyTorch, up to three times slower",
    )
    if made is None:
        return None
    made.head_losses.argtypes = [ctypes.c_void_p] * 6 + [ctypes.c_int64] * 4
    return made


def losses(hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Tensor | None:
    """(N,) the loss of every token; None where it is not for the kernel to say."""
    if not _can_be_taken(hidden_ND, weight_VD):
        return None
    losses_N = hidden_ND.new_empty(len(hidden_ND))
    return losses_N if _call(hidden_ND, weight_VD, targets_N, losses_N) else None


def gradients(
    hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor
) -> tuple[Tensor, Tensor, Tensor] | None:
    """The same, and the gradients of their sum: of the hidden states (N, D) and of the weight (V, D)."""
    if not _can_be_taken(hidden_ND, weight_VD):
        return None
    (N, D), V = hidden_ND.shape, len(weight_VD)
    losses_N = hidden_ND.new_empty(N)
    of_hidden = hidden_ND.new_empty(N, D + -D % _LINE)
    of_weight = hidden_ND.new_empty(V + -V % _ROWS, D + -D % _LINE)
    if not _call(hidden_ND, weight_VD, targets_N, losses_N, of_hidden, of_weight):
        return None
    return losses_N, of_hidden[:, :D], of_weight[:V, :D]


def _can_be_taken(hidden_ND: Tensor, weight_VD: Tensor) -> bool:
    on_cpu = hidden_ND.device.type == "cpu" and hidden_ND.dtype == weight_VD.dtype == torch.float32
    return on_cpu and len(hidden_ND) > 0 and kernel() is not None


def _call(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    targets_N: Tensor,
    losses_N: Tensor,
    of_hidden: Tensor | None = None,
    of_weight: Tensor | None = None,
) -> bool:
    """Whether it was done. The kernel reckons with numbers and with words that there are: what is neither is
    not for it to say."""
    beyond = (0, -hidden_ND.shape[1] % _LINE)
    hidden, weight = (F.pad(x, beyond).contiguous() for x in (hidden_ND, weight_VD))
    places = (hidden, weight, targets_N.long().contiguous(), losses_N, of_hidden, of_weight)
    made = kernel()
    assert made is not None
    answer = made.head_losses(
        *(None if place is None else place.data_ptr() for place in places),
        *(len(hidden), len(weight), weight.shape[1], torch.get_num_threads()),
    )
    if answer == _NO_MEMORY:
        raise MemoryError("the head's loss")
    return answer != _REFUSED
