"""What linear attention and FAVOR+ share: a kernel φ(q)·φ(k) in place of e^(q·k), so that the sum over keys
can be taken once for all queries.

y_t = φ(q_t)·Σ_{s≤t} φ(k_s) v_sᵀ / φ(q_t)·Σ_{s≤t} φ(k_s). Cost O(T·m·d) in time and memory, chunk by chunk;
the decoding state is a mean value per feature, of constant size.

Shapes: B batch, H heads, T tokens, C chunks of c tokens, m features, d head width, e = d + 1.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.layout import Layout
from attnlab.attention.mixer import MixerLayer, State
from attnlab.attention.mixers.running_mean import RunningMean
from attnlab.attention.position import PositionScheme
from attnlab.attention.project import Separate
from attnlab.attention.residual import EndsResidual
from attnlab.attention.weigh import Softmax

_CHUNK = 64
_LARGEST, _SMALLEST = 60.0, 1e-30  # of logarithms of features, and of a denominator, for fp32 to be exact


class FeatureMap(nn.Module):
    """`forward(x_BHTd) -> log φ(x)`, (B, H, T, m)."""

    def forward(self, x_BHTd: Tensor) -> Tensor:
        raise TypeError(f"{type(self).__name__} has no features")


class FeatureMapLayer(MixerLayer):
    """Attention through a feature map; projections named as in attention, so that arms share their values."""

    rows_sum_to_one = True

    def __init__(self, features: FeatureMap, dims: Dims) -> None:
        super().__init__()
        self.project = Separate().build(dims)
        self.features = features
        self.merge = EndsResidual(dims.width, dims.width)

    def forward(
        self, x_ND: Tensor, layout: Layout, position: PositionScheme, state: State | None = None
    ) -> Tensor:
        q_BHTm, k_BHTm, v_BHTd = self._project(x_ND, layout, position)
        if isinstance(state, RunningMean):
            mixed_BHTd = token_by_token(q_BHTm, k_BHTm, v_BHTd, state)
        else:
            mixed_BHTd = in_chunks(q_BHTm, k_BHTm, v_BHTd)
        mixed_NHd = layout.flatten(mixed_BHTd.to(x_ND.dtype).transpose(1, 2))
        merged: Tensor = self.merge(mixed_NHd.flatten(1))
        return merged

    def begin(self) -> RunningMean:
        return RunningMean()

    def weights(self, x_ND: Tensor, layout: Layout, position: PositionScheme) -> Tensor:
        q_BHTm, k_BHTm, _ = self._project(x_ND, layout, position)
        best_q, best_k = q_BHTm.amax(-1, keepdim=True), k_BHTm.amax(-1, keepdim=True)
        kernel_BHTS = (q_BHTm - best_q).exp() @ (k_BHTm - best_k).exp().mT
        places = layout.positions_T
        seen = (places[:, None] >= places) & layout.real_BT[:, None, None, :]
        return Softmax()(kernel_BHTS.log() + best_k.mT, seen)

    def _project(
        self, x_ND: Tensor, layout: Layout, position: PositionScheme
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logarithms of the features of queries and keys, and values; at least in fp32."""
        q, k, v = (layout.pad(part).transpose(1, 2) for part in self.project(x_ND))
        q, k, v = (part.to(torch.promote_types(part.dtype, torch.float32)) for part in (q, k, v))
        q, k = position.turn(q, layout.positions_T), position.turn(k, layout.positions_T)
        return self.features(q), self.features(k), v


def in_chunks(q_BHTm: Tensor, k_BHTm: Tensor, v_BHTd: Tensor) -> Tensor:
    """Whole sequences at once; token by token where the features are too large or too small for that."""
    # A factor on all features of one query cancels in the ratio; one on a key would not.
    q = (q_BHTm - q_BHTm.detach().amax(-1, keepdim=True)).exp()
    if k_BHTm.detach().max() <= _LARGEST:
        with_ones = F.pad(v_BHTd, (0, 1), value=1.0)
        sums_BHTe = causal_products(q, k_BHTm.exp(), with_ones)
        below = sums_BHTe[..., -1:]
        if below.detach().min() >= _SMALLEST:
            return sums_BHTe[..., :-1] / below
    return token_by_token(q_BHTm, k_BHTm, v_BHTd, RunningMean())


def causal_products(q_BHTm: Tensor, k_BHTm: Tensor, v_BHTe: Tensor) -> Tensor:
    """Σ_{s≤t} (q_t·k_s) v_s: pair by pair within a chunk, through a sum of k vᵀ for all chunks before it."""
    T = q_BHTm.shape[2]
    chunk = min(_CHUNK, T)
    missing = -T % chunk
    q, k, v = (F.pad(x, (0, 0, 0, missing)).unflatten(2, (-1, chunk)) for x in (q_BHTm, k_BHTm, v_BHTe))
    within_BHCce = (q @ k.mT).tril() @ v
    if q.shape[2] == 1:
        return within_BHCce.squeeze(2)
    sums_BHCme = (k[:, :, :-1].mT @ v[:, :, :-1]).cumsum(2)
    before_BHCce = F.pad(q[:, :, 1:] @ sums_BHCme, (0, 0, 0, 0, 1, 0))
    return (within_BHCce + before_BHCce).flatten(2, 3)[:, :, :T]


def token_by_token(q_BHTm: Tensor, k_BHTm: Tensor, v_BHTd: Tensor, mean: RunningMean) -> Tensor:
    """The recurrence, in logarithms: exact for features of any size."""
    rows = []
    for q_BHm, k_BHm, v_BHd in zip(q_BHTm.unbind(2), k_BHTm.unbind(2), v_BHTd.unbind(2), strict=True):
        mean_BHmd, log_weight_BHm1 = mean.add(k_BHm.unsqueeze(-1), v_BHd.unsqueeze(-2))
        share_BHm1 = (q_BHm.unsqueeze(-1) + log_weight_BHm1).softmax(-2)
        rows.append((share_BHm1 * mean_BHmd).sum(-2))
    return torch.stack(rows, dim=2)
