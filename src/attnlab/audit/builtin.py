"""Our own parts as operators: the only file of this room that knows the attention rooms.

Shapes: N tokens of a flat stream, B batch, H heads, T time, d width of a head, D width of the model.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.attention import (
    Absent,
    Attention,
    Causal,
    Dims,
    Everything,
    Layout,
    Mask,
    Mixer,
    Position,
    Project,
    Score,
    Weigh,
)
from attnlab.audit.operators import Operator, operator_from
from attnlab.errors import TargetError, unknown
from attnlab.spec import Part

_FAMILIES: tuple[Any, ...] = (Weigh, Score, Mask, Position, Project, Mixer)
_CONTEXT = 640  # what a part with weights per position is built for
_WIDTH, _HEADS = 32, 4


def names() -> list[str]:
    """Every built-in that can be audited by its name."""
    return sorted({name for family in _FAMILIES for name in family.members})


def part_named(name: str) -> Part:
    """The built-in of that name, with its defaults; `family:name` where two families share one."""
    family_name, _, rest = name.rpartition(":")
    for family in _FAMILIES:
        if rest in family.members and family_name in ("", family.family):
            return family.resolve(rest)
    kinds = ["file.py:name", "transformers:ClassName", "transformers:all", "hf:directory-or-name"]
    raise TargetError(unknown("target", name, [*names(), *kinds]))


def operator_of(part: Part, name: str) -> Operator:
    """A part as an operator: built into attention that is otherwise plain, or as the mixer it is."""
    if isinstance(part, Project):
        part = Attention(project=part)
    if isinstance(part, Mixer):
        torch.manual_seed(0)
        operator = operator_from(_MixerOnTensors(part), name)
        return replace(operator, claims_causal=part.hides_future)
    if not isinstance(part, Score | Weigh | Mask | Position):
        raise TargetError(f"{name} is a {part.family}: scores, masks, weighings, positions, projections and "
                          "mixers are audited")  # fmt: skip
    operator = operator_from(_function_of(part), name)
    hides = part.hides_future if isinstance(part, Mask) else True
    return replace(operator, claims_causal=hides, causal_option=None if isinstance(part, Mask) else "causal")


def _function_of(part: Part) -> Callable[..., Tensor]:
    """`attention(q, k, v, *, causal=True)`, in which one part is not the usual one."""
    layer_for = functools.lru_cache(maxsize=32)(functools.partial(_layer, part))

    def attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = True) -> Tensor:
        B, H, T, d = q.shape
        layer, position = layer_for(H, d, q.dtype, causal)
        layout = Layout([T] * B)
        stream = torch.cat([layout.flatten(x.transpose(1, 2)) for x in (q, k, v)], -1)
        mixed: Tensor = layer.mix(stream, layout, position, None)
        return mixed

    return attention


def _layer(part: Part, heads: int, width: int, dtype: torch.dtype, causal: bool) -> tuple[Any, Any]:
    """The layer, its projections replaced by ones that hand on what they are given."""
    chosen = {part.family: part} if isinstance(part, Score | Weigh | Mask) else {}
    mixer = Attention(**{"mask": Causal() if causal else Everything(), **chosen})  # type: ignore[arg-type]
    position = part if isinstance(part, Position) else Absent()
    dims = Dims(width=heads * width, heads=heads, context=_CONTEXT)
    torch.manual_seed(0)
    layer: Any = mixer.build(dims)
    layer.project = _Given()
    return layer.to(dtype).eval(), position.build(dims).to(dtype).eval()


class _Given(nn.Module):
    """Queries, keys and values that come side by side, taken apart."""

    def forward(self, x_NHd: Tensor) -> tuple[Tensor, ...]:
        return x_NHd.chunk(3, -1)


class _MixerOnTensors(nn.Module):
    """A mixer as a module from (B, T, D) to (B, T, D), without positions."""

    def __init__(self, mixer: Mixer) -> None:
        super().__init__()
        dims = Dims(width=_WIDTH, heads=_HEADS, context=_CONTEXT)
        self.width, self.longest = _WIDTH, _CONTEXT
        self.layer = mixer.build(dims)
        self.position = Absent().build(dims)
        for parameter in self.layer.parameters():
            if parameter.ndim >= 2:  # some start at zero, and would show nothing
                nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)

    def forward(self, x_BTD: Tensor) -> Tensor:
        layout = Layout([x_BTD.shape[1]] * x_BTD.shape[0])
        mixed: Tensor = self.layer(x_BTD.flatten(0, 1), layout, self.position)
        return mixed.view(*x_BTD.shape[:2], -1)
