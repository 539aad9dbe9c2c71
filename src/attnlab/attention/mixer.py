"""What a mixer is: anything that moves information between the tokens of a sequence.

Shapes: N tokens of a flat stream, D model width, B batch, H heads, T queries, S keys.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.layout import Layout
from attnlab.attention.position import Position, PositionScheme
from attnlab.spec import Part


class State(Protocol):
    """What one layer remembers of the tokens it has seen while text is generated."""

    def keep(self, rows_B: Tensor) -> None:
        """Go on with these sequences of the batch only, in this order (one may be repeated)."""


class MixerLayer(nn.Module):
    """A mixer with its weights, as one layer of a model."""

    rows_sum_to_one: bool = False  # whether the `weights` of every query claim to
    weights_per: ClassVar[str] = "head"  # what has a matrix of `weights` of its own
    no_weights_because: ClassVar[str] = "it gives no matrix of weights from token to token"

    def forward(
        self, x_ND: Tensor, layout: Layout, position: PositionScheme, state: State | None = None
    ) -> Tensor:
        raise TypeError(f"{type(self).__name__} does not say how to mix")

    def begin(self) -> State:
        """The state before the first token."""
        raise TypeError(f"{type(self).__name__} has no decoding state")

    def weights(self, x_ND: Tensor, layout: Layout, position: PositionScheme) -> Tensor | None:
        """(B, H, T, S): how much each token took from each other one, where such a matrix exists."""
        return None


class Mixer(Part, family="mixer"):
    """A way to mix tokens in time."""

    @property
    def hides_future(self) -> bool:
        """Whether it claims that no output depends on later tokens."""
        raise TypeError(f"the mixer {self.name!r} does not say whether it is causal")

    def build(self, dims: Dims) -> MixerLayer:
        raise TypeError(f"the mixer {self.name!r} builds nothing")

    def refuses(self, position: Position) -> str | None:
        """Why this mixer cannot work with a position scheme; None when it can."""
        return None

    def misfit(self, dims: Dims) -> str | None:
        """Why this mixer cannot be built at these sizes; None when it can."""
        return None
