"""Dropout whose random numbers are cheap.

On a CPU, PyTorch draws one number per element, from one thread: at small sizes a sixth of a training step.
Here sixteen random bits decide an element, four elements to a draw.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_STEPS = 1 << 16  # a share is kept to within one in so many


def dropout(x: Tensor, share: float, training: bool) -> Tensor:
    """`x` with a share of its elements set to zero, and the others scaled up so that the mean stays."""
    if not training or share == 0.0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, share, training)
    dropped = min(round(share * _STEPS), _STEPS - 1)
    draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[: x.numel()].view(x.shape)
    return x * (bits >= dropped - _STEPS // 2).to(x.dtype).mul_(_STEPS / (_STEPS - dropped))
