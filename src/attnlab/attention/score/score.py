"""What a score is: how well a query matches a key.

Shapes: B batch, H heads, T queries, S keys, d head width.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.attention.position import Position
from attnlab.spec import Part

ScoreFunction = Callable[[Tensor, Tensor], Tensor]


class Score(Part, family="score"):
    """A score function: `(q_BHTd, k_BHSd) -> scores_BHTS`.

    Without weights, define `__call__`. With weights, define `build`, which returns the `nn.Module` to call.
    Where there is a kernel for all of attention by the softmax of the score, that has an `attend` beside it:
    `(q_BHTd, k_BHSd, v_BHSd, seen_TS, real_BS, dropout) -> mixed_BHTd`, or None if the kernel cannot be used.
    """

    def __call__(self, q_BHTd: Tensor, k_BHSd: Tensor) -> Tensor:
        raise TypeError(f"the score {self.name!r} has weights: call what `build` returns")

    def build(self, dims: Dims) -> ScoreFunction:
        return self

    def dot_scale(self, dims: Dims) -> float | None:
        """The factor, if this score is a dot product times a factor; that is what PyTorch's fused
        attention computes. `None` for every other score."""
        return None

    def as_dot(self, q_BHTd: Tensor, k_BHSd: Tensor) -> tuple[Tensor, Tensor]:
        """The queries and keys whose dot product, times `dot_scale`, is this score. What `build` returns
        has it too, if it is asked for."""
        return q_BHTd, k_BHSd

    def refuses(self, position: Position) -> str | None:
        """Why this score makes no sense with a position scheme; None when it does."""
        return None
