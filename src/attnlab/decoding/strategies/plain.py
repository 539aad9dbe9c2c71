"""A draw from the distribution.

Shapes: B continuations, N steps, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.decoding.loop import token_by_token
from attnlab.decoding.strategy import Continuation, Search, Task


@dataclass(frozen=True, kw_only=True)
class Plain(Search):
    """A token with the chance that the model, or what the filters left of it, gives it."""

    draws: ClassVar[bool] = True

    def __str__(self) -> str:
        return "draw"

    def run(self, task: Task) -> list[Continuation]:
        # A stream of random numbers per row: how many rows are drawn together changes none of them.
        drawn = [torch.Generator().manual_seed(seed) for seed in task.seeds_B]
        shape = (task.longest,)
        uniform = [torch.rand(shape, generator=generator, dtype=torch.double) for generator in drawn]
        uniform_BN = torch.stack(uniform) if uniform else torch.empty(0, *shape, dtype=torch.double)
        uniform_BN = uniform_BN.to(task.prompt_BT.device)

        def choose(logits_BV: Tensor, step: int, rows: Sequence[int]) -> Tensor:
            return pick(logits_BV.double().softmax(-1), uniform_BN[rows, step])

        return token_by_token(task, choose)


def pick(chances_BV: Tensor, uniform_B: Tensor) -> Tensor:
    """The token at whose share of the line from 0 to 1 a random number points."""
    upto_BV = chances_BV.cumsum(-1)
    total_B = upto_BV[:, -1]
    # Less than the total, also where rounding would make it equal: past the end is no token.
    point_B = torch.minimum(uniform_B * total_B, total_B.nextafter(torch.zeros_like(total_B)))
    return torch.searchsorted(upto_BV, point_B[:, None], right=True).squeeze(1)
