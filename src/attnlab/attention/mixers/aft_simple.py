"""AFT-simple: no position biases at all, a running mean for every channel. Zhai et al. 2021,
https://arxiv.org/abs/2105.14103.

y_t = σ(q_t) ⊙ Σ_{s≤t} e^(k_s) ⊙ v_s / Σ_{s≤t} e^(k_s). Cost O(T·D) in time and memory; the decoding state is
that mean, of constant size.

Shapes: B batch, H heads, T tokens, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.attention.layout import Layout
from attnlab.attention.mixer import Mixer, State
from attnlab.attention.mixers.aft import TAME, AftLayer
from attnlab.attention.mixers.refusal import unless_embedded
from attnlab.attention.mixers.running_mean import RunningMean
from attnlab.attention.position import Position


@dataclass(frozen=True, kw_only=True)
class AftSimple(Mixer):
    """AFT without position biases."""

    hides_future: ClassVar[bool] = True

    def build(self, dims: Dims) -> AftSimpleLayer:
        return AftSimpleLayer(dims)

    def refuses(self, position: Position) -> str | None:
        return unless_embedded(self, position)


class AftSimpleLayer(AftLayer):
    """Two cumulative sums; token by token where exponentials would overflow, and while decoding."""

    def begin(self) -> RunningMean:
        return RunningMean()

    def average(self, k_BHTd: Tensor, v_BHTd: Tensor, layout: Layout, state: State | None) -> Tensor:
        if not isinstance(state, RunningMean) and k_BHTd.detach().abs().max() <= TAME:
            e_BHTd = k_BHTd.exp()
            return (e_BHTd * v_BHTd).cumsum(2) / e_BHTd.cumsum(2)
        mean = state if isinstance(state, RunningMean) else RunningMean()
        tokens = zip(k_BHTd.unbind(2), v_BHTd.unbind(2), strict=True)
        return torch.stack([mean.add(k_BHd, v_BHd)[0] for k_BHd, v_BHd in tokens], dim=2)
