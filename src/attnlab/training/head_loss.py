"""The loss of a language model's head, without the logits.

The logits of one step of the common set-up are 44 MB, and with their gradient they are three quarters of a
step's time. Here the head is applied to some tokens at a time; what the backward pass needs, the gradients of
the hidden states and of the weight, is computed at once while the chunk's logits are in the cache.

Shapes: N tokens, n tokens of a chunk, D model width, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_ROWS = 32  # the number of rows is filled up to a multiple of this
_CHUNK = 128  # tokens: their logits over some ten thousand words stay in the last-level cache


def head_loss_by_definition(hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Tensor:
    """The oracle: the sum over tokens of -log softmax(hidden·weightᵀ)[target]."""
    return F.cross_entropy(hidden_ND @ weight_VD.T, targets_N, reduction="sum")


def head_loss(
    hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, product: torch.dtype = torch.float32
) -> Tensor:
    """The same sum, chunk by chunk; `product` is the type in which the head's products are taken."""
    loss: Tensor = _HeadLoss.apply(hidden_ND, weight_VD, targets_N, product)
    return loss


class _HeadLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, product: torch.dtype
    ) -> Tensor:
        N = len(hidden_ND)
        # Filled up with rows of zeros, which add nothing to any gradient: a kernel is made, and kept, for
        # every number of rows it meets, at some 2 MB each.
        hidden = F.pad(hidden_ND.to(product), (0, 0, 0, -N % _ROWS))
        targets_N1 = F.pad(targets_N, (0, -N % _ROWS))[:, None]
        weight = weight_VD.to(product)
        grad_hidden_ND = torch.empty_like(hidden, dtype=hidden_ND.dtype)
        grad_weight_VD = torch.zeros_like(weight_VD)
        loss = hidden_ND.new_zeros(())
        for start in range(0, len(hidden), _CHUNK):
            rows = slice(start, start + _CHUNK)
            logits_nV = hidden[rows] @ weight.T
            share_nV = logits_nV.softmax(-1)
            # -log share[target], from the softmax already at hand. Where it underflows, the long way.
            share_n1 = share_nV.gather(1, targets_N1[rows]).to(loss.dtype)
            losses_n1 = -share_n1.log()
            if bool((share_n1 < 1e-30).any()):
                logits_nV = logits_nV.to(loss.dtype)
                losses_n1 = logits_nV.logsumexp(-1, keepdim=True) - logits_nV.gather(1, targets_N1[rows])
            loss += losses_n1[: max(0, N - start)].sum()
            grad_hidden_ND[rows] = share_nV @ weight
            grad_weight_VD += share_nV.T @ hidden[rows]
        # softmax - 1 at the target: the "- 1" apart, in full precision.
        grad_hidden_ND = grad_hidden_ND[:N].sub_(weight_VD[targets_N])
        grad_weight_VD.index_add_(0, targets_N, hidden_ND, alpha=-1)
        ctx.save_for_backward(grad_hidden_ND, grad_weight_VD)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grad_hidden_ND, grad_weight_VD = ctx.saved_tensors
        return grad_hidden_ND * grad, grad_weight_VD * grad, None, None
