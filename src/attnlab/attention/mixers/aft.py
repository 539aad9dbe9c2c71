"""What the Attention Free Transformers share: y_t = σ(q_t) ⊙ Σ_s e^(w_ts + k_s) ⊙ v_s / Σ_s e^(w_ts + k_s).
Zhai et al. 2021, https://arxiv.org/abs/2105.14103.

Every channel is a softmax of its own over the tokens so far: its keys, plus a number w for the pair of
positions that does not depend on what stands there.

Shapes: B batch, H heads, T queries, S keys, d head width; w has one head where all share it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.attention.layout import Layout
from attnlab.attention.mixer import MixerLayer, State
from attnlab.attention.position import PositionScheme
from attnlab.attention.project import Separate
from attnlab.attention.residual import EndsResidual

# Between e^-40 and e^40, sums of thousands of exponentials and their ratios are exact enough in fp32.
TAME = 40.0


class AftLayer(MixerLayer):
    """Projections named as in attention, so that arms share their initial values."""

    rows_sum_to_one = True
    weights_per = "channel"

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.project = Separate().build(dims)
        self.merge = EndsResidual(dims.width, dims.width)

    def forward(
        self, x_ND: Tensor, layout: Layout, position: PositionScheme, state: State | None = None
    ) -> Tensor:
        q_NHd, k_NHd, v_NHd = self.project(x_ND)
        k_BHTd, v_BHTd = _rows(k_NHd, layout), _rows(v_NHd, layout)
        mixed_BHTd = self.average(k_BHTd, v_BHTd, layout, state).to(x_ND.dtype)
        gated_NHd = q_NHd.sigmoid() * layout.flatten(mixed_BHTd.transpose(1, 2))
        merged: Tensor = self.merge(gated_NHd.flatten(1))
        return merged

    def average(self, k_BHTd: Tensor, v_BHTd: Tensor, layout: Layout, state: State | None) -> Tensor:
        """(B, H, T, d): for every token, the weighted mean of the values so far."""
        raise TypeError(f"{type(self).__name__} does not say how to average")

    def pair_biases(self, queries_T: Tensor, keys_S: Tensor) -> Tensor:
        """w, as (1 or H, T, S)."""
        return torch.zeros(1, len(queries_T), len(keys_S), device=queries_T.device)

    def weights(self, x_ND: Tensor, layout: Layout, position: PositionScheme) -> Tensor:
        """(B, H·d, T, T): every channel is a head of its own."""
        k_BHSd = _rows(self.project(x_ND)[1], layout)
        places = layout.positions_T
        weights_BHTSd = _softmaxes(self.pair_biases(places, places), places[:, None] >= places, k_BHSd)
        real = layout.real_BT[:, None, :, None, None] & layout.real_BT[:, None, None, :, None]
        return (weights_BHTSd * real).movedim(-1, 2).flatten(1, 2)


def _rows(x_NHd: Tensor, layout: Layout) -> Tensor:
    """Into rows; at least in fp32, since exponentials are taken."""
    x_BHTd = layout.pad(x_NHd).transpose(1, 2)
    return x_BHTd.to(torch.promote_types(x_BHTd.dtype, torch.float32))


def average_of_pairs(w_HTS: Tensor, visible_TS: Tensor, k_BHSd: Tensor, v_BHSd: Tensor) -> Tensor:
    """Σ_s e^(w_ts + k_s) v_s / Σ_s e^(w_ts + k_s), as two matrix products. O(T²·D) time, O(T²) memory."""
    if max(w_HTS.detach().abs().max(), k_BHSd.detach().abs().max()) > TAME:
        return average_by_definition(w_HTS, visible_TS, k_BHSd, v_BHSd)
    e_HTS, e_BHSd = (w_HTS.exp() * visible_TS).to(k_BHSd.dtype), k_BHSd.exp()
    above, below = (e_HTS @ torch.cat([e_BHSd * v_BHSd, e_BHSd], dim=-1)).chunk(2, dim=-1)
    return above / below


def average_by_definition(w_HTS: Tensor, visible_TS: Tensor, k_BHSd: Tensor, v_BHSd: Tensor) -> Tensor:
    """The oracle, right for arguments of any size: a softmax for every query and channel."""
    return torch.einsum("bhtsd,bhsd->bhtd", _softmaxes(w_HTS, visible_TS, k_BHSd), v_BHSd)


def _softmaxes(w_HTS: Tensor, visible_TS: Tensor, k_BHSd: Tensor) -> Tensor:
    hidden = w_HTS.to(k_BHSd.dtype).masked_fill(~visible_TS, float("-inf"))
    return (hidden.unsqueeze(-1) + k_BHSd.unsqueeze(2)).softmax(dim=3)
