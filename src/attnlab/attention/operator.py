"""Multi-head attention, composed of parts: project → score → mask → weigh → mix → merge.

Shapes: N tokens of a flat stream, D model width, B batch, H heads, G key/value heads, T queries, S keys,
d head width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.attention.layout import Layout
from attnlab.attention.mask import Causal, Mask
from attnlab.attention.mixer import Mixer, MixerLayer, State
from attnlab.attention.position import PositionScheme
from attnlab.attention.project import Project, Separate
from attnlab.attention.residual import EndsResidual
from attnlab.attention.score import Dot, Score
from attnlab.attention.weigh import Softmax, Weigh

Kernel = Literal["auto", "fused", "stages"]


@dataclass(frozen=True, kw_only=True)
class Attention(Mixer):
    """Multi-head attention. `kernel` says how it is computed, not what: `fused` by PyTorch's
    scaled_dot_product_attention, `stages` part by part, `auto` fused wherever the parts allow it."""

    score: Score = Dot()
    mask: Mask = Causal()
    weigh: Weigh = Softmax()
    project: Project = Separate()
    kernel: Kernel = "auto"

    @property
    def hides_future(self) -> bool:
        return self.mask.hides_future

    def not_fusable_because(self) -> str | None:
        """Why PyTorch's fused attention cannot compute these parts; None when it can."""
        if type(self.score).dot_scale is Score.dot_scale:
            return f"the score {self.score.name!r} is no dot product"
        if not self.weigh.is_softmax:
            return f"the weighing {self.weigh.name!r} is no softmax"
        if self.mask.where != "before":
            return f"the mask is applied {self.mask.where!r}, not before the softmax"
        return None

    def build(self, dims: Dims) -> AttentionLayer:
        return AttentionLayer(self, dims)


class AttentionLayer(MixerLayer):
    """Multi-head attention with its weights."""

    def __init__(self, parts: Attention, dims: Dims) -> None:
        super().__init__()
        self.parts, self.dropout = parts, dims.dropout
        self.project = parts.project.build(dims)
        self.score = parts.score.build(dims)
        self.merge = EndsResidual(dims.width, dims.width)
        self.scale = parts.score.dot_scale(dims)
        self.fused = parts.kernel != "stages" and parts.not_fusable_because() is None

    def forward(
        self, x_ND: Tensor, layout: Layout, position: PositionScheme, state: State | None = None
    ) -> Tensor:
        q_BHTd, k_BGSd, v_BGSd, keys = self._project(x_ND, layout, position, state)
        k_BHSd, v_BHSd = _share_heads(k_BGSd, q_BHTd), _share_heads(v_BGSd, q_BHTd)
        if self.fused:
            mixed_BHTd = self._fused(q_BHTd, k_BHSd, v_BHSd, layout, position, keys)
        else:
            weights_BHTS = self._weigh(q_BHTd, k_BHSd, layout, position, keys)
            mixed_BHTd = F.dropout(weights_BHTS, self.dropout, self.training) @ v_BHSd
        merged: Tensor = self.merge(layout.flatten(mixed_BHTd.transpose(1, 2)).flatten(1))
        return merged

    def begin(self) -> KeysAndValues:
        return KeysAndValues()

    def weights(self, x_ND: Tensor, layout: Layout, position: PositionScheme) -> Tensor:
        q_BHTd, k_BGSd, _, keys = self._project(x_ND, layout, position, None)
        return self._weigh(q_BHTd, _share_heads(k_BGSd, q_BHTd), layout, position, keys)

    def _project(
        self, x_ND: Tensor, layout: Layout, position: PositionScheme, state: State | None
    ) -> tuple[Tensor, Tensor, Tensor, _Keys]:
        q, k, v = (layout.pad(part).transpose(1, 2) for part in self.project(x_ND))
        q, k = position.turn(q, layout.positions_T), position.turn(k, layout.positions_T)
        if isinstance(state, KeysAndValues):
            k, v = state.append(k, v)
            return q, k, v, _Keys(torch.arange(k.shape[2], device=k.device), None)
        return q, k, v, _Keys(layout.positions_T, None if layout.is_full else layout.real_BT)

    def _weigh(
        self, q_BHTd: Tensor, k_BHSd: Tensor, layout: Layout, position: PositionScheme, keys: _Keys
    ) -> Tensor:
        """The stages one by one: what the fused kernel is held against."""
        scores_BHTS = self.score(q_BHTd, k_BHSd)
        bias_HTS = position.bias(layout.positions_T, keys.positions_S)
        if bias_HTS is not None:
            scores_BHTS = scores_BHTS + bias_HTS
        seen = self.parts.mask.visible(layout.positions_T, keys.positions_S)
        # Padding is never a key: it is hidden before the weighing, wherever the mask itself stands.
        real = torch.ones_like(seen) if keys.real_BS is None else keys.real_BS[:, None, None, :]
        if self.parts.mask.where == "before":
            return self.parts.weigh(scores_BHTS, seen & real)
        weights_BHTS = self.parts.weigh(scores_BHTS, real) * seen
        if self.parts.mask.where == "after":
            return weights_BHTS
        smallest = torch.finfo(weights_BHTS.dtype).tiny
        return weights_BHTS / weights_BHTS.sum(-1, keepdim=True).clamp_min(smallest)

    def _fused(
        self,
        q_BHTd: Tensor,
        k_BHSd: Tensor,
        v_BHSd: Tensor,
        layout: Layout,
        position: PositionScheme,
        keys: _Keys,
    ) -> Tensor:
        bias_HTS = position.bias(layout.positions_T, keys.positions_S)
        dropout = self.dropout if self.training else 0.0
        # Where the mask is exactly causal, padding at the right of a row needs no mask of its own: every
        # real query stands before it.
        plain_causal = isinstance(self.parts.mask, Causal) and bias_HTS is None
        if plain_causal and q_BHTd.shape[2] == k_BHSd.shape[2]:
            return F.scaled_dot_product_attention(
                q_BHTd, k_BHSd, v_BHSd, dropout_p=dropout, is_causal=True, scale=self.scale
            )
        allowed = self.parts.mask.visible(layout.positions_T, keys.positions_S)
        if keys.real_BS is not None:
            allowed = allowed & keys.real_BS[:, None, None, :]
        if bias_HTS is not None:
            allowed = torch.where(allowed, bias_HTS.to(q_BHTd.dtype), float("-inf"))
        return F.scaled_dot_product_attention(
            q_BHTd, k_BHSd, v_BHSd, attn_mask=allowed, dropout_p=dropout, scale=self.scale
        )


@dataclass(frozen=True)
class _Keys:
    """Where the keys stand, and which of them are real tokens (None: all)."""

    positions_S: Tensor
    real_BS: Tensor | None


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


def _share_heads(x_BGSd: Tensor, q_BHTd: Tensor) -> Tensor:
    """Every key/value head serves a group of query heads."""
    group = q_BHTd.shape[1] // x_BGSd.shape[1]
    return x_BGSd if group == 1 else x_BGSd.repeat_interleave(group, dim=1)
