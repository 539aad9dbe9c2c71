"""The loss of a language model's head, without the logits.

The logits of one step of the common set-up are 44 MB, and with their gradient they are three quarters of a
step's time. Here the head is applied to some tokens at a time; what the backward pass needs, the gradients of
the hidden states and of the weight, is computed at once while the chunk's logits are in the cache. In fp32 on
the CPU a compiled kernel does it (`head_kernel`), if there is a compiler.

Shapes: N tokens, n tokens of a chunk, D model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.training import head_kernel

_ROWS = 32  # the number of tokens is filled up to a multiple of this
_CHUNK = 128  # tokens at once: their logits over some ten thousand words stay in the last-level cache;
_LOGITS = 1 << 20  # of fewer words, so many logits
_SAFE = 60.0  # the largest logit whose exponential, summed over any vocabulary, is finite in fp32


def head_loss_by_definition(hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Tensor:
    """The oracle: the sum over tokens of -log softmax(hidden·weightᵀ)[target]."""
    return F.cross_entropy(hidden_ND @ weight_VD.T, targets_N, reduction="sum")


def head_loss(
    hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, product: torch.dtype = torch.float32
) -> Tensor:
    """The same sum, chunk by chunk; `product` is the type in which the head's products are taken."""
    loss: Tensor = _HeadLoss.apply(hidden_ND, weight_VD, targets_N, product)
    return loss


@torch.no_grad()
def head_losses(hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Tensor:
    """(N,) the loss of every token, without gradients."""
    losses_N = head_kernel.losses(hidden_ND, weight_VD, targets_N)
    if losses_N is not None:
        return losses_N
    target_N = (hidden_ND * weight_VD[targets_N]).sum(-1)
    logs = [shift_n + e_Vn.sum(0).log() for _, e_Vn, shift_n in _exponentials(hidden_ND, weight_VD)]
    return torch.cat(logs)[: len(hidden_ND)] - target_N


def _exponentials(hidden_ND: Tensor, weight_VD: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Chunk by chunk: the hidden states (n, D), e^(logit - shift) as (V, n), and the shift of each token.

    Words in rows, since products are twice as fast that way round; in one buffer, since fresh memory costs as
    much as a product. The shift, which only large logits need, keeps the exponentials finite.
    """
    padded_ND = F.pad(hidden_ND, (0, 0, 0, -len(hidden_ND) % _ROWS))
    bound_N = padded_ND.norm(dim=1) * weight_VD.norm(dim=1).max()
    chunk = max(_CHUNK, _LOGITS // len(weight_VD) // _ROWS * _ROWS)
    buffer = hidden_ND.new_empty(len(weight_VD) * min(chunk, len(padded_ND)))
    for start in range(0, len(padded_ND), chunk):
        hidden_nD = padded_ND[start : start + chunk]
        e_Vn = buffer[: len(weight_VD) * len(hidden_nD)].view(len(weight_VD), len(hidden_nD))
        torch.mm(weight_VD, hidden_nD.T.contiguous(), out=e_Vn)
        shift_n = hidden_nD.new_zeros(len(hidden_nD))
        if not bool(bound_N[start : start + chunk].max() < _SAFE):
            shift_n = e_Vn.amax(0)
            e_Vn -= shift_n
        yield hidden_nD, e_Vn.exp_(), shift_n


Gradients = tuple[Tensor, Tensor, Tensor]  # the loss, and its gradients by the hidden states and the weight


class _HeadLoss(torch.autograd.Function):
    """Keeps the gradients that the forward pass works out."""

    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, product: torch.dtype
    ) -> Tensor:
        if product == torch.bfloat16:
            loss, *gradients = _in_bfloat16(hidden_ND, weight_VD, targets_N)
        elif made := head_kernel.gradients(hidden_ND, weight_VD, targets_N):
            loss, *gradients = made[0].sum(), *made[1:]
        else:
            loss, *gradients = _by_exponentials(hidden_ND, weight_VD, targets_N)
        ctx.save_for_backward(*gradients)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grad_hidden_ND, grad_weight_VD = ctx.saved_tensors
        # In place: another (V, D) of fresh memory takes longer than the multiplication.
        return grad_hidden_ND * grad, grad_weight_VD.mul_(grad), None, None


def _by_exponentials(hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Gradients:
    """The softmax is never written down: dividing each token's sum, and its hidden state, does for both."""
    N, D = hidden_ND.shape
    # A row of ones below the weight: one product gives Σ e·w and Σ e.
    weight_and_ones = torch.cat([weight_VD.T, weight_VD.new_ones(1, len(weight_VD))])
    grad_weight_VD = torch.zeros_like(weight_VD)
    grads, log_sums = [], []
    for hidden_nD, e_Vn, shift_n in _exponentials(hidden_ND, weight_VD):
        summed = (weight_and_ones @ e_Vn).T
        total_n1 = summed[:, D:]
        grads.append(summed[:, :D] / total_n1)
        log_sums.append(total_n1[:, 0].log() + shift_n)
        grad_weight_VD.addmm_(e_Vn, hidden_nD / total_n1)
    # softmax - 1 at the target: the "- 1" apart.
    target_ND = weight_VD[targets_N]
    grad_hidden_ND = torch.cat(grads)[:N].sub_(target_ND)
    grad_weight_VD.index_add_(0, targets_N, hidden_ND, alpha=-1)
    return torch.cat(log_sums)[:N].sum() - (hidden_ND * target_ND).sum(), grad_hidden_ND, grad_weight_VD


def _in_bfloat16(hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Gradients:
    """Products in bfloat16, sums in the type of the hidden states."""
    N = len(hidden_ND)
    # Filled up with rows of zeros, which add nothing to any gradient: a kernel is made, and kept, for
    # every number of rows it meets, at some 2 MB each.
    hidden = F.pad(hidden_ND.to(torch.bfloat16), (0, 0, 0, -N % _ROWS))
    targets_N1 = F.pad(targets_N, (0, -N % _ROWS))[:, None]
    weight = weight_VD.to(torch.bfloat16)
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
    return loss, grad_hidden_ND, grad_weight_VD
