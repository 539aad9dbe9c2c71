"""Additive score: w·tanh(A q + C k + b). Bahdanau et al. 2014, https://arxiv.org/abs/1409.0473.

`W [q; k]` is `A q + C k`, so both halves are applied once per token and only the tanh is left per pair.
Cost O(T²·h) in time; in memory O(T²) for the scores and, chunk by chunk, a bounded buffer for the pairs.

Shapes: B batch, H heads, T queries, S keys, d head width, h hidden units of the score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.position import Position
from attnlab.attention.score.score import Score
from attnlab.spec import Positive

# e^(2·20)·e^(2·20) is still finite in fp32, and tanh(20) is 1 to the last bit of fp64.
_LARGEST_ARGUMENT = 20.0
_PAIR_BUFFER = 1 << 21  # elements of (…, t, S, h) held at once: small enough to stay in the cache


@dataclass(frozen=True, kw_only=True)
class Additive(Score):
    """w·tanh(A q + C k + b) with `hidden` units (unless given, a head's width), shared by the heads."""

    hidden: Positive | None = None

    def build(self, dims: Dims) -> AdditiveScore:
        return AdditiveScore(dims.head_width, self.hidden or dims.head_width)

    def refuses(self, position: Position) -> str | None:
        if position.enters == "queries and keys":
            return (
                f"position {position.name!r} needs a score in which turning q and k together cancels; "
                "in a tanh of their sum it does not"
            )
        return None


class AdditiveScore(nn.Module):
    """The additive score with its weights."""

    def __init__(self, head_width: int, hidden: int) -> None:
        super().__init__()
        self.from_query = nn.Linear(head_width, hidden)
        self.from_key = nn.Linear(head_width, hidden, bias=False)
        self.out = nn.Parameter(torch.empty(hidden))
        self.init_weights()

    def init_weights(self) -> None:
        """Linear layers as PyTorch makes them: at a deviation of 0.02 every score would start at zero."""
        self.from_query.reset_parameters()
        self.from_key.reset_parameters()
        nn.init.normal_(self.out, std=self.out.numel() ** -0.5)

    def forward(self, q_BHTd: Tensor, k_BHSd: Tensor) -> Tensor:
        a_BHTh, c_BHSh = self.from_query(q_BHTd), self.from_key(k_BHSd)
        if max(a_BHTh.detach().abs().max(), c_BHSh.detach().abs().max()) > _LARGEST_ARGUMENT:
            return additive_by_definition(a_BHTh, c_BHSh, self.out)
        scores: Tensor = _AdditivePairs.apply(a_BHTh, c_BHSh, self.out)
        return scores


def additive_by_definition(a_BHTh: Tensor, c_BHSh: Tensor, w_h: Tensor) -> Tensor:
    """The oracle: w·tanh(a + c) for every pair, with the whole (…, T, S, h) tensor in memory."""
    return torch.tanh(a_BHTh.unsqueeze(-2) + c_BHSh.unsqueeze(-3)) @ w_h


class _AdditivePairs(torch.autograd.Function):
    """The same through tanh(a + c) = 1 - 2·r with r = 1 / (1 + e^(2a)·e^(2c)): one exponential per token
    instead of one tanh per pair, some queries at a time, nothing per pair kept for the backward pass."""

    @staticmethod
    def forward(ctx: Any, a_BHTh: Tensor, c_BHSh: Tensor, w_h: Tensor) -> Tensor:
        ea_BHTh, ec_BHSh = (2 * a_BHTh).exp(), (2 * c_BHSh).exp()
        ctx.save_for_backward(ea_BHTh, ec_BHSh, w_h)
        chunks = [w_h.sum() - 2 * (_reciprocal(ea, ec_BHSh) @ w_h) for ea in _query_chunks(ea_BHTh, ec_BHSh)]
        return torch.cat(chunks, dim=-2)

    @staticmethod
    def backward(ctx: Any, grad_BHTS: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ea_BHTh, ec_BHSh, w_h = ctx.saved_tensors
        grad_a, grad_c, grad_w = [], torch.zeros_like(ec_BHSh), torch.zeros_like(w_h)
        start = 0
        for ea in _query_chunks(ea_BHTh, ec_BHSh):
            g_BHtS = grad_BHTS[..., start : start + ea.shape[-2], :]
            start += ea.shape[-2]
            r_BHtSh = _reciprocal(ea, ec_BHSh)
            grad_w += g_BHtS.sum() - 2 * (g_BHtS.reshape(1, -1) @ r_BHtSh.reshape(-1, w_h.numel())).view(-1)
            # d tanh = 1 - tanh² = 4·r·(1 - r)
            slope_BHtSh = torch.addcmul(r_BHtSh, r_BHtSh, r_BHtSh, value=-1).mul_(g_BHtS.unsqueeze(-1))
            grad_a.append(slope_BHtSh.sum(-2))
            grad_c += slope_BHtSh.sum(-3)
        factor = 4 * w_h
        return torch.cat(grad_a, dim=-2) * factor, grad_c * factor, grad_w


def _reciprocal(ea_BHth: Tensor, ec_BHSh: Tensor) -> Tensor:
    return (ea_BHth.unsqueeze(-2) * ec_BHSh.unsqueeze(-3)).add_(1).reciprocal_()


def _query_chunks(ea_BHTh: Tensor, ec_BHSh: Tensor) -> tuple[Tensor, ...]:
    per_query = max(1, ec_BHSh.numel())
    return ea_BHTh.split(max(1, _PAIR_BUFFER // per_query), dim=-2)
