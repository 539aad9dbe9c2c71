"""The slow and readable oracles of the other mixers: their formulas written out, one sequence and one query
at a time, with nothing of the fast paths but the weights.

Shapes: T tokens of one sequence, D model width, H heads, d head width, m features, n keys a query sees.
"""

from __future__ import annotations

import math
from functools import singledispatch

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.attention.mixers.aft import AftLayer
from attnlab.attention.mixers.aft_conv import AftConvLayer
from attnlab.attention.mixers.aft_full import AftFullLayer
from attnlab.attention.mixers.aft_local import AftLocalLayer
from attnlab.attention.mixers.aft_simple import AftSimpleLayer
from attnlab.attention.mixers.differential import DifferentialCore
from attnlab.attention.mixers.fastformer import FastformerLayer
from attnlab.attention.mixers.favor import PositiveRandomFeatures
from attnlab.attention.mixers.feature_maps import FeatureMap, FeatureMapLayer
from attnlab.attention.mixers.linear_attention import EluPlusOne
from attnlab.attention.mixers.talking_heads import TalkingCore
from attnlab.attention.operator import Attention
from attnlab.attention.position import PositionScheme
from attnlab.attention.reference import (
    heads_slowly,
    maps_slowly,
    mix_slowly,
    weigh_row,
    weights_slowly,
)


@mix_slowly.register
def _aft(layer: AftLayer, x_TD: Tensor, position: PositionScheme) -> Tensor:
    q_THd, k_THd, v_THd = layer.project(x_TD)
    rows = []
    for t in range(len(x_TD)):
        heads = []
        for h in range(q_THd.shape[1]):
            w_n = torch.stack([_pair_bias(layer, h, t, s) for s in range(t + 1)])
            e_nd = (w_n[:, None] + k_THd[: t + 1, h]).exp()
            heads.append(q_THd[t, h].sigmoid() * (e_nd * v_THd[: t + 1, h]).sum(0) / e_nd.sum(0))
        rows.append(layer.merge(torch.cat(heads)))
    return torch.stack(rows)


@singledispatch
def _pair_bias(layer: AftLayer, h: int, t: int, s: int) -> Tensor:
    raise TypeError(f"{type(layer).__name__} is no AFT")


@_pair_bias.register
def _of_simple(layer: AftSimpleLayer, h: int, t: int, s: int) -> Tensor:
    return torch.zeros(())


@_pair_bias.register
def _of_full(layer: AftFullLayer, h: int, t: int, s: int) -> Tensor:
    return layer.table[t, s]


@_pair_bias.register
def _of_local(layer: AftLocalLayer, h: int, t: int, s: int) -> Tensor:
    return layer.table[t, t - s] if t - s < layer.window else torch.zeros(())


@_pair_bias.register
def _of_conv(layer: AftConvLayer, h: int, t: int, s: int) -> Tensor:
    return layer.kernel[h, t - s] if t - s < layer.window else torch.zeros(())


@mix_slowly.register
def _through_features(layer: FeatureMapLayer, x_TD: Tensor, position: PositionScheme) -> Tensor:
    places = torch.arange(len(x_TD))
    q_THd, k_THd, v_THd = layer.project(x_TD)
    q_THd, k_THd = (position.turn(x.transpose(0, 1)[None], places)[0].transpose(0, 1) for x in (q_THd, k_THd))
    rows = []
    for t in range(len(x_TD)):
        heads = []
        for h in range(q_THd.shape[1]):
            kernel_n = _features(layer.features, k_THd[: t + 1, h]) @ _features(layer.features, q_THd[t, h])
            heads.append(kernel_n @ v_THd[: t + 1, h] / kernel_n.sum())
        rows.append(layer.merge(torch.cat(heads)))
    return torch.stack(rows)


@singledispatch
def _features(features: FeatureMap, x: Tensor) -> Tensor:
    raise TypeError(f"{type(features).__name__} is no feature map")


@_features.register
def _elu_plus_one(features: EluPlusOne, x: Tensor) -> Tensor:
    return F.elu(x) + 1


@_features.register
def _positive_random(features: PositiveRandomFeatures, x: Tensor) -> Tensor:
    m, d = features.directions_md.shape
    x = x / d**0.25
    return (x @ features.directions_md.to(x.dtype).T - (x * x).sum(-1, keepdim=True) / 2).exp() / math.sqrt(m)


@mix_slowly.register
def _fastformer(layer: FastformerLayer, x_TD: Tensor, position: PositionScheme) -> Tensor:
    q_THd, k_THd, v_THd = layer.project(x_TD)
    root = math.sqrt(q_THd.shape[-1])
    heads = []
    for h in range(q_THd.shape[1]):
        q, k, v = q_THd[:, h], k_THd[:, h], v_THd[:, h]
        global_query = (q @ layer.pool_queries.weight[h] / root).softmax(0) @ q
        met = global_query * k
        global_key = (met @ layer.pool_keys.weight[h] / root).softmax(0) @ met
        heads.append(global_key * v)
    merged: Tensor = layer.merge(torch.cat(heads, dim=-1)) + q_THd.flatten(1)
    return merged


@maps_slowly.register
def _halves(core: DifferentialCore, x_Hd: list[Tensor], what: str) -> list[Tensor]:
    if what == "value":
        return x_Hd + x_Hd
    half = len(x_Hd[0]) // 2
    return [x_d[:half] for x_d in x_Hd] + [x_d[half:] for x_d in x_Hd]


@heads_slowly.register
def _subtracted(core: DifferentialCore, mixed_Md: list[Tensor]) -> list[Tensor]:
    (q1, k1), (q2, k2) = core.factor.vectors
    factor = (q1 @ k1).exp() - (q2 @ k2).exp() + core.factor.start
    heads = []
    for h in range(len(mixed_Md) // 2):
        y_d = mixed_Md[h] - factor * mixed_Md[h + len(mixed_Md) // 2]
        normed = y_d / (y_d.square().mean() + 1e-5).sqrt() * core.norm.weight
        heads.append(normed * (1 - core.factor.start))
    return heads


@weights_slowly.register
def _talking(core: TalkingCore, parts: Attention, scores_MT: Tensor, t: int) -> Tensor:
    said = _said(core.weigh.of_scores, scores_MT)
    weights_MT = torch.stack([weigh_row(parts, scores_T, t) for scores_T in said])
    return _said(core.weigh.of_weights, weights_MT)


def _said(matrix_HG: Tensor, x_GT: Tensor) -> Tensor:
    """What every head hears of the others."""
    rows = [torch.stack([p * x_T for p, x_T in zip(p_G, x_GT, strict=True)]).sum(0) for p_G in matrix_HG]
    return torch.stack(rows)
