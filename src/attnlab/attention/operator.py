"""Multi-head attention, composed of parts: project → score → mask → weigh → mix → merge.

Shapes: N tokens of a flat stream, D model width, B batch, H heads (or maps, where a head has several), G
key/value heads, T queries, S keys, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from attnlab.attention.core import Core
from attnlab.attention.dims import Dims
from attnlab.attention.dropout import dropout
from attnlab.attention.layout import Layout
from attnlab.attention.mask import Causal, Mask
from attnlab.attention.mixer import Mixer, MixerLayer, State
from attnlab.attention.position import Position, PositionScheme
from attnlab.attention.project import Project, Separate
from attnlab.attention.residual import EndsResidual
from attnlab.attention.score import Dot, Score
from attnlab.attention.weigh import Softmax, Weigh, WeighFunction
from attnlab.errors import RequestError

Kernel = Literal["auto", "fused", "stages"]
_MOST_PAIRS = 1 << 20  # weights held whole, 4 MB in fp32; where there are more,
_PIECE = 1 << 18  # as many are worked out at once
_NOTHING = 1e-20  # the whole weight of a row that is as good as empty


@dataclass(frozen=True, kw_only=True)
class Attention(Mixer):
    """Multi-head attention. `kernel` says how it is computed, not what: `fused` by PyTorch's
    scaled_dot_product_attention, `stages` part by part, `auto` fused where it can be and gains."""

    score: Score = Dot()
    mask: Mask = Causal()
    weigh: Weigh = Softmax()
    project: Project = Separate()
    kernel: Kernel = "auto"

    @property
    def hides_future(self) -> bool:
        return self.mask.hides_future

    def refuses(self, position: Position) -> str | None:
        return self.score.refuses(position)

    @property
    def masks_first(self) -> bool:
        """Whether what is hidden never enters the weighing. Softmax weights that add up to one again after
        some were taken away are the softmax of what is left, and are computed as that: the other way round,
        large hidden scores would leave 0/0."""
        plain_softmax = self.weigh.is_softmax and not self.weigh.adds_a_key
        return self.mask.where == "before" or (self.mask.where == "renormalised" and plain_softmax)

    def not_fusable_because(self) -> str | None:
        """Why PyTorch's fused attention cannot compute these parts; None when it can."""
        if type(self.score).dot_scale is Score.dot_scale:
            return f"the score {self.score.name!r} is no dot product"
        return self.not_softmax_because()

    def not_softmax_because(self) -> str | None:
        """Why the weights are not the softmax of the scores that the mask shows; None when they are."""
        if not self.weigh.is_softmax:
            return f"the weighing {self.weigh.name!r} is no softmax"
        if not self.masks_first:
            return f"the mask is applied {self.mask.where!r}, not before the softmax"
        return None

    def misfit(self, dims: Dims) -> str | None:
        reason = self.not_fusable_because() if self.kernel == "fused" else None
        if reason:
            return f'kernel "fused" is not possible: {reason}; use "auto" or "stages"'
        return self.project.misfit(dims)

    def build(self, dims: Dims) -> AttentionLayer:
        reason = self.misfit(dims)
        if reason:
            raise RequestError(reason)
        return AttentionLayer(self, dims)

    def core(self, dims: Dims) -> Core:
        """What of it stands between projections and merge."""
        return Core(self, dims)


class AttentionLayer(MixerLayer):
    """Multi-head attention with its weights."""

    def __init__(self, parts: Attention, dims: Dims) -> None:
        super().__init__()
        self.parts, self.dropout = parts, dims.dropout
        self.project = parts.project.build(dims)
        self.core = parts.core(dims)
        self.merge = EndsResidual(dims.width, dims.width)
        # Weights that are taken away after they were weighed leave less than one, unless it is made up for.
        renormalised = parts.mask.where == "renormalised"
        weighed_to_one = renormalised or (parts.weigh.sums_to_one and parts.masks_first)
        self.rows_sum_to_one = weighed_to_one and self.core.keeps_sums
        self.fused = parts.kernel != "stages" and parts.not_fusable_because() is None

    def forward(
        self, x_ND: Tensor, layout: Layout, position: PositionScheme, state: State | None = None
    ) -> Tensor:
        mixed_BHTd = self.mix(x_ND, layout, position, state)
        merged: Tensor = self.merge(layout.flatten(mixed_BHTd.transpose(1, 2)).flatten(1))
        return merged

    def mix(self, x_ND: Tensor, layout: Layout, position: PositionScheme, state: State | None) -> Tensor:
        """(B, H, T, d): for every head and query, the values as its weights mix them."""
        q_BHTd, k_BGSd, v_BGSd, keys = self._project(x_ND, layout, position, state)
        k_BHSd, v_BHSd = share_heads(k_BGSd, q_BHTd), share_heads(v_BGSd, q_BHTd)
        # PyTorch's kernel for the CPU cannot drop weights: it goes through the stages too, with more checks.
        drops = self.training and self.dropout > 0 and x_ND.device.type == "cpu"
        if self.fused and not (drops and self.parts.kernel == "auto"):
            return self.core.together(self._fused(q_BHTd, k_BHSd, v_BHSd, layout, position, keys))
        mixed_BHTd = self._by_the_score(q_BHTd, k_BHSd, v_BHSd, layout.positions_T, position, keys)
        if mixed_BHTd is None:
            mixed_BHTd = self._in_stages(q_BHTd, k_BHSd, v_BHSd, layout.positions_T, position, keys)
        return self.core.together(mixed_BHTd)

    def begin(self) -> KeysAndValues:
        return KeysAndValues()

    def weights(self, x_ND: Tensor, layout: Layout, position: PositionScheme) -> Tensor:
        q_BHTd, k_BGSd, _, keys = self._project(x_ND, layout, position, None)
        k_BHSd = share_heads(k_BGSd, q_BHTd)
        return self.core.of_heads(self._weigh(q_BHTd, k_BHSd, layout.positions_T, position, keys))

    def _project(
        self, x_ND: Tensor, layout: Layout, position: PositionScheme, state: State | None
    ) -> tuple[Tensor, Tensor, Tensor, _Keys]:
        q, k, v = (layout.pad(part).transpose(1, 2) for part in self.core.apart(*self.project(x_ND)))
        q, k = position.turn(q, layout.positions_T), position.turn(k, layout.positions_T)
        if isinstance(state, KeysAndValues):
            k, v = state.append(k, v)
            return q, k, v, _Keys(torch.arange(k.shape[2], device=k.device), None)
        return q, k, v, _Keys(layout.positions_T, None if layout.is_full else layout.real_BT)

    def _by_the_score(
        self,
        q_BHTd: Tensor,
        k_BHSd: Tensor,
        v_BHSd: Tensor,
        queries_T: Tensor,
        position: PositionScheme,
        keys: _Keys,
    ) -> Tensor | None:
        """By the kernel that the score brings with it; None where there is none that can do these parts."""
        biased = type(position).bias is not PositionScheme.bias
        if self.core.attend is None or biased or self.parts.kernel == "stages":
            return None
        seen_TS = self.parts.mask.visible(queries_T, keys.positions_S)
        real_BS = keys.real_BS
        if real_BS is None:
            real_BS = seen_TS.new_ones(len(k_BHSd), k_BHSd.shape[2])
        drops = self.dropout if self.training else 0.0
        mixed_BHTd: Tensor | None = self.core.attend(q_BHTd, k_BHSd, v_BHSd, seen_TS, real_BS, drops)
        return mixed_BHTd

    def _in_stages(
        self,
        q_BHTd: Tensor,
        k_BHSd: Tensor,
        v_BHSd: Tensor,
        queries_T: Tensor,
        position: PositionScheme,
        keys: _Keys,
    ) -> Tensor:
        """Part by part. Where the weights would be many, some sequences and queries at a time, and worked out
        again for the backward pass, so that memory does not grow with T²."""

        def some(q_bHtd: Tensor, queries_t: Tensor, k_bHSd: Tensor, v_bHSd: Tensor, keys_b: _Keys) -> Tensor:
            weights_bHtS = self._weigh(q_bHtd, k_bHSd, queries_t, position, keys_b)
            return dropout(weights_bHtS, self.dropout, self.training) @ v_bHSd

        B, H, T, _ = q_BHTd.shape
        per_query = H * k_BHSd.shape[2]
        if B * T * per_query <= _MOST_PAIRS:
            return some(q_BHTd, queries_T, k_BHSd, v_BHSd, keys)
        rows, queries = max(1, _PIECE // (T * per_query)), max(1, _PIECE // per_query)
        mixed = []
        for first in range(0, B, rows):
            b = slice(first, first + rows)
            others = (k_BHSd[b], v_BHSd[b], keys.of(b))
            pieces = zip(q_BHTd[b].split(queries, dim=2), queries_T.split(queries), strict=True)
            made = [checkpoint(some, q, places, *others, use_reentrant=False) for q, places in pieces]
            mixed.append(torch.cat(made, dim=2))
        return torch.cat(mixed)

    def _weigh(
        self, q_BHTd: Tensor, k_BHSd: Tensor, queries_T: Tensor, position: PositionScheme, keys: _Keys
    ) -> Tensor:
        """The stages one by one: what the fused kernel is held against."""
        scores_BHTS = self.core.score(q_BHTd, k_BHSd)
        bias_HTS = _bias(position, queries_T, keys, q_BHTd)
        if bias_HTS is not None:
            scores_BHTS = scores_BHTS + bias_HTS
        seen = self.parts.mask.visible(queries_T, keys.positions_S)
        # Padding is never a key: it is hidden before the weighing, wherever the mask itself stands.
        real = torch.ones_like(seen) if keys.real_BS is None else keys.real_BS[:, None, None, :]
        return weigh_masked(self.parts, self.core.weigh, scores_BHTS, seen, real)

    def _fused(
        self,
        q_BHTd: Tensor,
        k_BHSd: Tensor,
        v_BHSd: Tensor,
        layout: Layout,
        position: PositionScheme,
        keys: _Keys,
    ) -> Tensor:
        bias_HTS = _bias(position, layout.positions_T, keys, q_BHTd)
        # Where the mask is exactly causal, the kernel knows it by itself.
        plain_causal = isinstance(self.parts.mask, Causal) and bias_HTS is None
        plain_causal = plain_causal and q_BHTd.shape[2] == k_BHSd.shape[2] and not self.parts.weigh.adds_a_key
        mask_BHTS = None if plain_causal else self._mask(layout, keys, bias_HTS, q_BHTd.dtype)
        dropout = self.dropout if self.training else 0.0
        return attend_fused(self.parts, self.core, q_BHTd, k_BHSd, v_BHSd, mask_BHTS, dropout)

    def _mask(self, layout: Layout, keys: _Keys, bias_HTS: Tensor | None, dtype: torch.dtype) -> Tensor:
        """(B or 1, H or 1, T, S) to add to the scores. Numbers, since the kernel is several times slower with
        a boolean mask, and four dimensions, since with three it keeps every weight in memory."""
        allowed = self.parts.mask.visible(layout.positions_T, keys.positions_S)
        # Padding stands at the right of a row: where no query sees ahead, no real one sees it.
        if keys.real_BS is not None and not self.parts.mask.hides_future:
            allowed = allowed & keys.real_BS[:, None, None, :]
        shown = bias_HTS.to(dtype) if bias_HTS is not None else torch.zeros((), dtype=dtype)
        mask = torch.where(allowed, shown, float("-inf"))
        return mask[(None,) * (4 - mask.dim())]


def attend_fused(
    parts: Attention,
    core: Core,
    q_BHTd: Tensor,
    k_BHSd: Tensor,
    v_BHSd: Tensor,
    mask_BHTS: Tensor | None,
    dropout: float,
) -> Tensor:
    """PyTorch's kernel, for scores that are dot products; without a mask it is causal."""
    width = v_BHSd.shape[-1]
    q_BHTd, k_BHSd = core.as_dot(q_BHTd, k_BHSd)
    q_BHTd, k_BHSd, v_BHSd = _of_one_width(q_BHTd, k_BHSd, v_BHSd)
    if parts.weigh.adds_a_key and mask_BHTS is not None:
        k_BHSd, v_BHSd = F.pad(k_BHSd, (0, 0, 0, 1)), F.pad(v_BHSd, (0, 0, 0, 1))
        mask_BHTS = F.pad(mask_BHTS, (0, 1))
    mixed_BHTd = F.scaled_dot_product_attention(
        q_BHTd,
        k_BHSd,
        v_BHSd,
        attn_mask=mask_BHTS,
        dropout_p=dropout,
        is_causal=mask_BHTS is None,
        scale=core.scale,
    )
    return mixed_BHTd[..., :width]


def weigh_masked(
    parts: Attention, weigh: WeighFunction, scores_BHTS: Tensor, seen: Tensor, real: Tensor
) -> Tensor:
    """Weights, with what the mask hides taken away when it says; what is not `real` is never weighed."""
    if parts.masks_first:
        return weigh(scores_BHTS, seen & real)
    weights_BHTS = weigh(scores_BHTS, real) * seen
    if parts.mask.where == "after":
        return weights_BHTS
    total_BHT1 = weights_BHTS.sum(-1, keepdim=True)
    # A row with next to nothing left takes nothing: blown up to one, it would be rounding errors.
    return (weights_BHTS / total_BHT1.clamp_min(_NOTHING)).masked_fill(total_BHT1 < _NOTHING, 0.0)


@dataclass(frozen=True)
class _Keys:
    """Where the keys stand, and which of them are real tokens (None: all)."""

    positions_S: Tensor
    real_BS: Tensor | None

    def of(self, rows: slice) -> _Keys:
        """Those of some sequences of the batch."""
        return _Keys(self.positions_S, None if self.real_BS is None else self.real_BS[rows])


class KeysAndValues:
    """The decoding state of attention: every key and value so far, in a buffer that grows by doubling."""

    def __init__(self) -> None:
        self.length = 0
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

    def append(self, k_BGTd: Tensor, v_BGTd: Tensor) -> tuple[Tensor, Tensor]:
        """Take in new keys and values; give back all of them."""
        start, self.length = self.length, self.length + k_BGTd.shape[2]
        self._keys = _room_for(self._keys, k_BGTd, self.length)
        self._values = _room_for(self._values, v_BGTd, self.length)
        self._keys[:, :, start : self.length] = k_BGTd
        self._values[:, :, start : self.length] = v_BGTd
        return self._keys[:, :, : self.length], self._values[:, :, : self.length]

    def keep(self, rows_B: Tensor) -> None:
        if self._keys is not None and self._values is not None:
            self._keys, self._values = self._keys[rows_B], self._values[rows_B]


def _room_for(buffer: Tensor | None, new_BGTd: Tensor, length: int) -> Tensor:
    if buffer is not None and length <= buffer.shape[2]:
        return buffer
    B, G, _, d = new_BGTd.shape
    larger = new_BGTd.new_empty(B, G, max(64, 2 * length), d)
    if buffer is not None:
        larger[:, :, : buffer.shape[2]] = buffer
    return larger


def share_heads(x_BGSd: Tensor, q_BHTd: Tensor) -> Tensor:
    """Every key/value head serves a group of query heads."""
    group = q_BHTd.shape[1] // x_BGSd.shape[1]
    return x_BGSd if group == 1 else x_BGSd.repeat_interleave(group, dim=1)


def _bias(position: PositionScheme, queries_T: Tensor, keys: _Keys, q_BHTd: Tensor) -> Tensor | None:
    """What the positions add to the scores: the same for every map of a head."""
    bias_HTS = position.bias(queries_T, keys.positions_S)
    if bias_HTS is None or len(bias_HTS) == q_BHTd.shape[1]:
        return bias_HTS
    return bias_HTS.repeat(q_BHTd.shape[1] // len(bias_HTS), 1, 1)


def _of_one_width(*parts: Tensor) -> tuple[Tensor, ...]:
    """Filled up with zeros to the widest: they add nothing to a product, and the kernel wants one width."""
    widest = max(part.shape[-1] for part in parts)
    return tuple(p if p.shape[-1] == widest else F.pad(p, (0, widest - p.shape[-1])) for p in parts)
