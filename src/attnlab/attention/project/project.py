"""What a projection is: tokens into queries, keys and values.

Shapes: N tokens, D model width, H query heads, G key/value heads (H a multiple of G), d head width.
"""

from __future__ import annotations

from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.spec import Part


class Projection(nn.Module):
    """`forward(x_ND) -> (q_NHd, k_NGd, v_NGd)`."""

    def forward(self, x_ND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        raise TypeError(f"{type(self).__name__} does not say how to project")


class Project(Part, family="project"):
    """A way to make queries, keys and values."""

    def build(self, dims: Dims) -> Projection:
        raise TypeError(f"the projection {self.name!r} builds nothing")

    def misfit(self, dims: Dims) -> str | None:
        """Why this projection cannot be built at these sizes; None when it can."""
        return None
