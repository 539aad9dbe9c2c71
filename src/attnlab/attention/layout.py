"""Where the tokens of a flat stream sit in a padded batch.

A model works on a flat stream of N real tokens, so nothing is spent on padding; only what mixes tokens in
time needs them side by side. There, sequences stand in rows, filled up on the right.

Shapes: N real tokens, B sequences, T the longest of them, … whatever a token carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor


class Layout:
    """B sequences of given lengths, one after another in a flat stream.

    `offset` counts the tokens that went before (and sit in a decoding state): the first token here stands
    at that position.
    """

    def __init__(
        self, lengths: Sequence[int], *, offset: int = 0, device: torch.device | str = "cpu"
    ) -> None:
        self.lengths = tuple(int(n) for n in lengths)
        self.offset = offset
        self.device = torch.device(device)
        self.batch = len(self.lengths)
        self.longest = max(self.lengths, default=0)
        self.tokens = sum(self.lengths)
        self.is_full = self.tokens == self.batch * self.longest  # no padding anywhere

    @cached_property
    def lengths_B(self) -> Tensor:
        return torch.tensor(self.lengths).to(self.device)

    @cached_property
    def real_BT(self) -> Tensor:
        """True where a real token sits."""
        return torch.arange(self.longest, device=self.device) < self.lengths_B[:, None]

    @cached_property
    def slots_N(self) -> Tensor:
        """For every token of the stream, its place in the padded batch read row by row."""
        return self.real_BT.view(-1).nonzero().view(-1)

    @cached_property
    def positions_T(self) -> Tensor:
        return torch.arange(self.offset, self.offset + self.longest, device=self.device)

    @cached_property
    def positions_N(self) -> Tensor:
        return self.flatten(self.positions_T.expand(self.batch, -1))

    @cached_property
    def buckets(self) -> tuple[Layout, ...]:
        """This layout as stretches of the stream that hold sequences of similar length.

        Sequences do not see each other, so each stretch can be mixed by itself, and a short sentence is not
        padded to the longest of its batch. Pays off where the sequences come in order of length.
        """
        bounds = _similar_lengths(self.lengths)
        if len(bounds) == 1:
            return (self,)
        return tuple(Layout(self.lengths[a:b], offset=self.offset, device=self.device) for a, b in bounds)

    @cached_property
    def last_B(self) -> Tensor:
        """For every sequence, the place of its last token in the stream."""
        return self.lengths_B.cumsum(0) - 1

    def pad(self, x_N: Tensor) -> Tensor:
        """(N, …) to (B, T, …), with zeros where no token is."""
        if self.is_full:
            return x_N.unflatten(0, (self.batch, self.longest))
        padded: Tensor = _Pad.apply(x_N, self.slots_N, self.batch * self.longest)
        return padded.unflatten(0, (self.batch, self.longest))

    def flatten(self, x_BT: Tensor) -> Tensor:
        """(B, T, …) to (N, …), padding left out."""
        x = x_BT.flatten(0, 1)
        if self.is_full:
            return x
        flat: Tensor = _Unpad.apply(x, self.slots_N)
        return flat


# What a stretch costs by itself, in squared padded places: the operations it takes are the same for a small
# one and a large one. Measured: about 0.6 ms in a layer's step, at 30 ns a squared place.
_STRETCH = 20_000


@lru_cache(maxsize=4096)
def _similar_lengths(lengths: tuple[int, ...]) -> list[tuple[int, int]]:
    """Where to cut a batch so that the squared lengths to which its stretches are padded come cheapest."""
    if len(lengths) * max(lengths, default=0) ** 2 <= 2 * _STRETCH:
        return [(0, len(lengths))]
    return cheapest_stretches(lengths, power=2, each=_STRETCH)


def cheapest_stretches(lengths: Sequence[int], *, power: int, each: int) -> list[tuple[int, int]]:
    """Where to cut sequences in a row, where a stretch costs its longest length, raised to a power, for each
    sequence of it, and a fixed amount."""
    sizes = np.asarray(lengths)
    best, begins = np.zeros(len(sizes) + 1), np.zeros(len(sizes) + 1, dtype=int)
    for end in range(1, len(sizes) + 1):
        longest = np.maximum.accumulate(sizes[:end][::-1])[::-1]  # of a stretch from each begin to this end
        costs = best[:end] + (end - np.arange(end)) * longest**power + each
        begins[end] = costs.argmin()
        best[end] = costs[begins[end]]
    bounds: list[tuple[int, int]] = []
    end = len(sizes)
    while end:
        bounds.append((int(begins[end]), end))
        end = int(begins[end])
    return bounds[::-1]


class _Pad(torch.autograd.Function):
    """Scatter rows to distinct slots. Written out because its gradient is a plain gather, and the gradient of
    the gather below a plain scatter: torch's own would add into slots that are known to be distinct."""

    @staticmethod
    def forward(ctx: Any, x_N: Tensor, slots_N: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(slots_N)
        return x_N.new_zeros(size, *x_N.shape[1:]).index_copy_(0, slots_N, x_N)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad.index_select(0, ctx.saved_tensors[0]), None, None


class _Unpad(torch.autograd.Function):
    """Gather rows from distinct slots; see `_Pad`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, slots_N: Tensor) -> Tensor:
        ctx.save_for_backward(slots_N)
        ctx.size = x.shape[0]
        return x.index_select(0, slots_N)

    @staticmethod
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Tensor, None]:
        (slots_N,) = ctx.saved_tensors
        return grad_N.new_zeros(ctx.size, *grad_N.shape[1:]).index_copy_(0, slots_N, grad_N), None
