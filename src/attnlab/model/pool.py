"""Pooling: one vector for a whole sequence. Sequences come as a flat stream without padding, so there is
nothing beside their own tokens that could get into it.

Shapes: N real tokens of a flat stream, B sequences, D model width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.attention import Layout
from attnlab.spec import Part


class Pool(Part, family="pool"):
    """What stands for a sequence."""

    def __call__(self, hidden_ND: Tensor, layout: Layout) -> Tensor:
        """(B, D)."""
        raise TypeError(f"the pool {self.name!r} does not say what stands for a sequence")


@dataclass(frozen=True, kw_only=True)
class Mean(Pool):
    """The mean over the tokens of the sequence."""

    def __call__(self, hidden_ND: Tensor, layout: Layout) -> Tensor:
        owner_N = torch.arange(layout.batch, device=hidden_ND.device).repeat_interleave(layout.lengths_B)
        sums_BD = hidden_ND.new_zeros(layout.batch, hidden_ND.shape[1]).index_add(0, owner_N, hidden_ND)
        return sums_BD / layout.lengths_B[:, None]


@dataclass(frozen=True, kw_only=True)
class ClassToken(Pool):
    """The first token, the start of the sequence, which means nothing else and can take in all others."""

    def __call__(self, hidden_ND: Tensor, layout: Layout) -> Tensor:
        return hidden_ND[layout.last_B - layout.lengths_B + 1]
