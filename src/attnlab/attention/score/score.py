"""What a score is: how well a query matches a key.

Shapes: B batch, H heads, T queries, S keys, d head width.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.spec import Part

ScoreFunction = Callable[[Tensor, Tensor], Tensor]


class Score(Part, family="score"):
    """A score function: `(q_BHTd, k_BHSd) -> scores_BHTS`.

    Without weights, define `__call__`. With weights, define `build`, which returns the `nn.Module` to call.
    """

    def __call__(self, q_BHTd: Tensor, k_BHSd: Tensor) -> Tensor:
        raise TypeError(f"the score {self.name!r} has weights: call what `build` returns")

    def build(self, dims: Dims) -> ScoreFunction:
        return self

    def dot_scale(self, dims: Dims) -> float | None:
        """The factor, if this score is a dot product times a factor; that is what PyTorch's fused
        attention computes. `None` for every other score."""
        return None
