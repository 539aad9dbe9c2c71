"""Ways to replace the future: each one brings out a kind of leak that the others miss.

Shapes: B batch, T time, the rest `…`. `cuts` holds one position per batch row; what
comes after it is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.audit.operators.subject import Inputs
from attnlab.audit.randomness import normals

LARGE = 30.0  # times the scale of the inputs: where masks that are merely large numbers give way
HUGE = 300.0  # for inputs that pass through projections first, whose scores grow more slowly


@dataclass(frozen=True)
class Change:
    """A replacement of everything after a cut, by name; `magnitude` is how large the new values are."""

    name: str
    magnitude: float
    values: Callable[[Tensor, Tensor, int], Tensor]  # (x, last seen value, seed) -> new x


def _noise(x: Tensor, seed: int) -> Tensor:
    return normals(x.shape, seed).to(x.dtype)


FRESH = Change("other values of the same size", 1.0, lambda x, last, seed: _noise(x, seed))
LARGER = Change("values thirty times larger", LARGE, lambda x, last, seed: LARGE * _noise(x, seed))
ZEROS = Change("zeros", 1.0, lambda x, last, seed: torch.zeros_like(x))
# A leak that compares the next token with this one never shows on random values, which are never equal.
COPIES = Change("copies of the last visible value", 1.0, lambda x, last, seed: last.expand_as(x).clone())
FLIPPED = Change("their negatives", LARGE, lambda x, last, seed: -x)


def with_another_future(
    inputs: Inputs, names: Sequence[str], cuts: Sequence[int], change: Change, seed: int
) -> Inputs:
    """`inputs` with everything after each batch row's cut replaced, in the tensors named."""
    changed = dict(inputs)
    for place, name in enumerate(names):
        x = inputs[name]
        cut = torch.tensor(cuts).view(-1, *[1] * (x.ndim - 1)).expand(x.shape[0], *[1] * (x.ndim - 1))
        time = torch.arange(x.shape[-2]).view(-1, 1)
        last = x.gather(-2, cut.expand(*x.shape[:-2], 1, x.shape[-1]))
        changed[name] = torch.where(time > cut, change.values(x, last, 5000 + 3 * seed + place), x)
    return changed
