"""A part, filled into a small layer with plain parts around it, so that every case can be about every part.

Shapes: N tokens, D model width, T tokens of one sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn

import attnlab.attention.mixers.reference  # noqa: F401 - registers the slow oracles of the mixers
from attnlab.attention import (
    Absent,
    Attention,
    Dims,
    Layout,
    Mask,
    Mixer,
    MixerLayer,
    Position,
    PositionScheme,
    Project,
    Score,
    State,
    Weigh,
)
from attnlab.attention.reference import mix_slowly
from attnlab.errors import RequestError
from attnlab.spec import Part

SIZES = Dims(width=16, heads=2, context=24)
LENGTHS = (5, 1, 8, 3)

Reference = Callable[[MixerLayer, Tensor, PositionScheme], Tensor]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The part under test, and the mixer and position scheme it was filled into."""

    part: Part
    mixer: Mixer
    position: Position
    dims: Dims
    reference: Reference | None = None

    def build(self, dtype: torch.dtype = torch.float64, seed: int = 0) -> Filled:
        """The layer, every weight random: at their initial values some do nothing yet."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            filled = Filled(self.mixer.build(self.dims), self.position.build(self.dims))
            for parameter in filled.parameters():
                nn.init.normal_(parameter, std=0.4)
        return filled.to(dtype).eval()

    @property
    def oracle(self) -> Reference:
        return self.reference or mix_slowly

    @property
    def has_reference(self) -> bool:
        layer_type = type(self.mixer.build(self.dims))
        return self.reference is not None or mix_slowly.dispatch(layer_type) is not mix_slowly.dispatch(
            object
        )

    @property
    def can_be_blinded(self) -> bool:
        """Whether a mask can be put in that leaves some row with nothing to see."""
        return isinstance(self.mixer, Attention) and not isinstance(self.part, Mask)

    @property
    def has_exact_gradient(self) -> bool:
        return not isinstance(self.mixer, Attention) or self.mixer.weigh.has_exact_gradient

    def with_mixer(self, **changes: object) -> Subject:
        return replace(self, mixer=replace(cast(Any, self.mixer), **changes))


class Filled(nn.Module):
    """A position scheme and one layer: the smallest model a part can be in."""

    def __init__(self, layer: MixerLayer, position: PositionScheme) -> None:
        super().__init__()
        self.layer, self.position = layer, position

    def forward(self, x_ND: Tensor, layout: Layout, state: State | None = None) -> Tensor:
        mixed: Tensor = self.layer(
            self.position.embed(x_ND, layout.positions_N), layout, self.position, state
        )
        return mixed


def fill(part: Part, dims: Dims, reference: Reference | None) -> Subject:
    """The part in its place, and plain attention everywhere else."""
    mixer, position = _PLACES[_family_of(part)](part)
    return Subject(part=part, mixer=mixer, position=position, dims=dims, reference=reference)


_PLACES: dict[type[Part], Callable[..., tuple[Mixer, Position]]] = {
    Score: lambda part: (Attention(score=part), Absent()),
    Weigh: lambda part: (Attention(weigh=part), Absent()),
    Mask: lambda part: (Attention(mask=part), Absent()),
    Project: lambda part: (Attention(project=part), Absent()),
    Position: lambda part: (Attention(), part),
    Mixer: lambda part: (part, Absent()),
}


def _family_of(part: Part) -> type[Part]:
    for family in _PLACES:
        if isinstance(part, family):
            return family
    known = ", ".join(sorted(family.family for family in _PLACES))
    raise RequestError(f"there are no conformance cases for a {part.family} (there are for: {known})")


def tokens(lengths: tuple[int, ...], width: int, seed: int = 1, dtype: torch.dtype = torch.float64) -> Tensor:
    """(N, D): random tokens, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(sum(lengths), width, generator=generator, dtype=torch.float64).to(dtype)
