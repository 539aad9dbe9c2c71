"""What a position scheme is: how a model learns where a token stands.

Shapes: N tokens, D model width, B batch, H heads, T queries, S keys, d head width.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.spec import Part


class PositionScheme(nn.Module):
    """The three places where a position can enter. Each does nothing unless a scheme says otherwise."""

    longest: int | None = None  # positions it knows; None: any number of them

    def embed(self, x_ND: Tensor, positions_N: Tensor) -> Tensor:
        """At the bottom of the model: tokens with their positions mixed in."""
        return x_ND

    def turn(self, x_BHTd: Tensor, positions_T: Tensor) -> Tensor:
        """In every layer: queries, and keys, with their positions mixed in."""
        return x_BHTd

    def bias(self, queries_T: Tensor, keys_S: Tensor) -> Tensor | None:
        """On the scores: (H, T, S) to add, or None."""
        return None


class Position(Part, family="position"):
    """A position scheme; one is built for the whole model and shared by its layers.

    `enters` names the place where positions come in, so that a mixer without that place can refuse it.
    """

    enters: ClassVar[Literal["embedding", "queries and keys", "scores"]] = "embedding"

    def misfit(self, dims: Dims) -> str | None:
        """Why this scheme cannot be built at these sizes; None when it can."""
        return None

    def build(self, dims: Dims) -> PositionScheme:
        return PositionScheme()
