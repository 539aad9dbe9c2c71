"""Additive score: w·tanh(A q + C k + b). Bahdanau et al. 2014, https://arxiv.org/abs/1409.0473.

`W [q; k]` is `A q + C k`, so both halves are applied once per token and only the tanh is left per pair.
Cost O(T²·h) in time. Under a softmax, and with a compiler, O(T) numbers in memory: a kernel works out the
weights of one query at a time (`additive_attention`). Otherwise O(T²), for the scores; nothing is kept per
pair and unit.

Shapes: B batch, H heads, T queries, S keys, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.position import Position
from attnlab.attention.score import additive_attention
from attnlab.attention.score.additive_pairs import additive_pairs
from attnlab.attention.score.score import Score
from attnlab.spec import Positive


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
        return additive_pairs(self.from_query(q_BHTd), self.from_key(k_BHSd), self.out)

    def attend(
        self,
        q_BHTd: Tensor,
        k_BHSd: Tensor,
        v_BHSd: Tensor,
        seen_TS: Tensor,
        real_BS: Tensor,
        dropout: float,
    ) -> Tensor | None:
        """(B, H, T, d): attention by the softmax of this score; None where there is no kernel for it."""
        q_BTHd, k_BSHd, v_BSHd = (x.transpose(1, 2) for x in (q_BHTd, k_BHSd, v_BHSd))
        if not additive_attention.takes(q_BTHd, k_BSHd, v_BSHd, self.out):
            return None
        a_BTHh, c_BSHh = self.from_query(q_BTHd), self.from_key(k_BSHd)
        mixed = additive_attention.attend(a_BTHh, c_BSHh, self.out, v_BSHd, seen_TS, real_BS, dropout)
        return mixed.transpose(1, 2)
