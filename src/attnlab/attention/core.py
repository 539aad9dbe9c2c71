"""What an operator has between its projections and its merge: a score and a weighing, with their weights.

In a model of ours the projections around it are ours; in a transformers model they are that model's own
(`adapt.registry`).

Shapes: B batch, H heads, M maps (H, or a multiple of it), T queries, S keys, d head width; N tokens, or
whatever else stands before the heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.weigh import WeighFunction

if TYPE_CHECKING:
    from attnlab.attention.operator import Attention


class Core(nn.Module):
    """One attention map per head. `dims` are the sizes of what is scored."""

    keeps_sums = True  # whether a head's rows in effect sum to what the rows of its maps sum to

    def __init__(self, parts: Attention, dims: Dims) -> None:
        super().__init__()
        self.score = parts.score.build(dims)
        self.as_dot = getattr(self.score, "as_dot", parts.score.as_dot)
        self.scale = parts.score.dot_scale(dims)
        self.weigh: WeighFunction = parts.weigh
        # A score may bring a kernel for attention by the softmax of it, where weighing is no more than that.
        plain = not parts.not_softmax_because() and not parts.weigh.adds_a_key
        self.attend = getattr(self.score, "attend", None) if plain else None

    def apart(self, q_NHd: Tensor, k_NGd: Tensor, v_NGd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of every map, heads standing second as they did."""
        return q_NHd, k_NGd, v_NGd

    def together(self, mixed_BMTd: Tensor) -> Tensor:
        """(B, H, T, d): what the maps mixed, as heads again."""
        return mixed_BMTd

    def of_heads(self, weights_BMTS: Tensor) -> Tensor:
        """(B, H, T, S): the weights that a head has in effect."""
        return weights_BMTS
