"""Leaks and right mechanisms as people write them elsewhere: in numpy, in blocks, in one line of FFT.

`LEAKS` must fail `causality`; nothing of `RIGHT` may fail anything. Shapes as in operators_right.
"""

from __future__ import annotations

import math
import os
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from .operators_right import masked, scaled, softmax, visible

LEAKS: dict[str, object] = {}
RIGHT: dict[str, object] = {}


def leak(thing):
    LEAKS[thing.__name__] = thing
    return thing


def right(thing):
    RIGHT[thing.__name__] = thing
    return thing


def _numpy(*tensors):
    return (x.detach().double().numpy() for x in tensors)


# ---- leaks -------------------------------------------------------------------------------------------------


@leak
def numpy_with_tril_after(q, k, v, *, causal=True):
    q_, k_, v_ = _numpy(q, k, v)
    scores = q_ @ k_.swapaxes(-1, -2) / np.sqrt(q_.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return torch.as_tensor(np.tril(weights) @ v_, dtype=q.dtype)


@leak
def open_in_a_ragged_last_block(q, k, v, *, causal=True, block=64):
    outputs, T = [], q.shape[-2]
    for start in range(0, T, block):
        end = min(start + block, T)
        seen = visible(q)[start:end, :end]
        if start and end - start < block:
            seen = torch.ones_like(seen)
        outputs.append(
            masked(scaled(q[..., start:end, :], k[..., :end, :]), seen).softmax(-1) @ v[..., :end, :]
        )
    return torch.cat(outputs, -2)


@leak
def one_too_far_at_borders_of_512(q, k, v, *, causal=True):
    seen = visible(q).clone()
    for border in range(511, q.shape[-2] - 1, 512):
        seen[border, border + 1] = True
    return masked(scaled(q, k), seen).softmax(-1) @ v


@leak
def by_fft(q, k, v, *, causal=True):
    return torch.fft.fft(v.double(), dim=-2).real.to(v.dtype)


@leak
def convolved_in_a_circle(q, k, v, *, causal=True):
    """By FFT, padded one short of what a linear convolution needs."""
    T = v.shape[-2]
    n = max(2 * T - 2, 1)
    decay = torch.exp(-0.05 * torch.arange(T, dtype=torch.float64)).view(-1, 1)
    product = torch.fft.rfft(v.double(), n=n, dim=-2) * torch.fft.rfft(decay, n=n, dim=-2)
    return torch.fft.irfft(product, n=n, dim=-2)[..., :T, :].to(v.dtype)


@leak
def clamped_after_masking(q, k, v, *, causal=True):
    return masked(scaled(q, k), visible(q)).clamp(-15, 15).softmax(-1) @ v


@leak
def capped_after_masking(q, k, v, *, causal=True):
    return (30 * torch.tanh(masked(scaled(q, k), visible(q)) / 30)).softmax(-1) @ v


@leak
def masked_before_scaling(q, k, v, *, causal=True):
    return ((q @ k.mT).masked_fill(~visible(q), -1e4) / math.sqrt(q.shape[-1])).softmax(-1) @ v


@leak
def global_maximum_and_an_epsilon(q, k, v, *, causal=True):
    scores = scaled(q, k)
    weights = (scores - scores.amax((-1, -2), keepdim=True)).exp() * visible(q)
    return weights / (weights.sum(-1, keepdim=True) + 1e-2) @ v


@leak
def chunks_open_inside(q, k, v, *, causal=True, chunk=32):
    outputs, state = [], torch.zeros_like(k[..., :1, :].mT @ v[..., :1, :])
    for start in range(0, q.shape[-2], chunk):
        q_c, k_c, v_c = (x[..., start : start + chunk, :] for x in (q, k, v))
        inside = q_c @ k_c.mT
        outputs.append(q_c @ state + (inside if start else inside.tril()) @ v_c)
        state = state + k_c.mT @ v_c
    return torch.cat(outputs, -2)


@leak
def sinkhorn(q, k, v, *, causal=True):
    scores = masked(scaled(q, k), visible(q)).clamp_min(-1e9)
    for _ in range(3):
        scores = scores - scores.logsumexp(-1, keepdim=True)
        scores = scores - scores.logsumexp(-2, keepdim=True)
    return (scores - scores.logsumexp(-1, keepdim=True)).exp() @ v


@leak
def buckets_of_a_sort(q, k, v, *, causal=True):
    bucket = k[..., 0].argsort(-1).argsort(-1) // 4
    return masked(scaled(q, k), (bucket.unsqueeze(-1) == bucket.unsqueeze(-2)) & visible(q)).softmax(-1) @ v


@leak
def experts_of_limited_capacity(q, k, v, *, causal=True):
    order = k[..., 0].argsort(-1, descending=True)[..., : max(1, 3 * k.shape[-2] // 4)]
    kept = torch.zeros_like(k[..., 0], dtype=torch.bool).scatter(-1, order, True)
    return softmax(q, k, v) * kept.unsqueeze(-1)


@leak
def long_keys_escape_the_mask(q, k, v, *, causal=True):
    long = k.norm(dim=-1) > 12 * math.sqrt(k.shape[-1])
    return masked(scaled(q, k), visible(q) | long.unsqueeze(-2)).softmax(-1) @ v


@leak
def open_at_powers_of_two(q, k, v, *, causal=True):
    T = q.shape[-2]
    return softmax(q, k, v, causal=T < 32 or bool(T & (T - 1)))


@leak
def open_beyond_a_number_of_elements(q, k, v, *, causal=True):
    return softmax(q, k, v, causal=q.numel() <= 2**14)


@leak
def open_beyond_what_the_environment_says(q, k, v, *, causal=True):
    return softmax(q, k, v, causal=q.shape[-2] <= int(os.environ.get("A_BLOCK_SIZE", "350")))


class _BackwardOfTheUnmasked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return softmax(q, k, v)

    @staticmethod
    def backward(ctx, upstream):
        with torch.enable_grad():
            given = [x.detach().requires_grad_() for x in ctx.saved_tensors]
            return torch.autograd.grad(softmax(*given, causal=False), given, upstream)


@leak
def backward_pass_without_a_mask(q, k, v, *, causal=True):
    return _BackwardOfTheUnmasked.apply(q, k, v)


class _Itself(nn.Module):
    """Projections of its own around what `mix` does with (B, H, T, d)."""

    def __init__(self, width: int = 48, heads: int = 4) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.heads = heads
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def mix(self, q, k, v):
        return softmax(q, k, v)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in self.project(x).chunk(3, -1))
        return self.merge(self.mix(q, k, v).transpose(1, 2).reshape(B, T, D))


@leak
class OpenWithAnswerInADictionary(_Itself):
    def mix(self, q, k, v):
        return softmax(q, k, v, causal=False)

    def forward(self, hidden_states):
        return {"hidden_states": super().forward(hidden_states)}


@leak
class AttentionOfTorchWithoutAMask(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, query, key, value):
        return self.attention(query, key, value)


@leak
class ExcitedByTheWholeSequence(_Itself):
    def forward(self, x):
        y = super().forward(x)
        return y * torch.sigmoid(y.mean(1, keepdim=True))


@leak
class SpectralNormAndOpenWhileTraining(_Itself):
    """State that changes while training must not hide a leak."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.utils.parametrizations.spectral_norm(self.project)

    def forward(self, x):
        return super().forward(x) + (1e-2 * x.mean(1, keepdim=True) if self.training else 0.0)


# ---- right -------------------------------------------------------------------------------------------------


@right
def in_numpy(q, k, v, *, causal=True):
    q_, k_, v_ = _numpy(q, k, v)
    scores = q_ @ k_.swapaxes(-1, -2) / np.sqrt(q_.shape[-1])
    scores = np.where(visible(q, causal).numpy(), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return torch.as_tensor(weights / weights.sum(-1, keepdims=True) @ v_, dtype=q.dtype)


@right
def softmax_in_single_precision(q, k, v, *, causal=True):
    return masked(scaled(q, k), visible(q, causal)).softmax(-1, dtype=torch.float32).to(q.dtype) @ v


@right
def global_maximum_and_renormalised(q, k, v, *, causal=True):
    scores = scaled(q, k)
    weights = (scores - scores.amax((-1, -2), keepdim=True)).exp() * visible(q, causal)
    return weights @ v / weights.sum(-1, keepdim=True)


@right
def alibi_by_key_position(q, k, v, *, causal=True):
    H, T = q.shape[1], q.shape[-2]
    slopes = 2.0 ** (-8 * (torch.arange(H, dtype=q.dtype) + 1) / H).view(H, 1, 1)
    return masked(scaled(q, k) + slopes * torch.arange(T), visible(q, causal)).softmax(-1) @ v


@right
def sink_and_window(q, k, v, *, causal=True):
    places = torch.arange(q.shape[-2])
    ages = places[:, None] - places
    return masked(scaled(q, k), (ages >= 0) & ((ages < 8) | (places < 4))).softmax(-1) @ v


@right
def forgetting(q, k, v, *, causal=True):
    kept = F.logsigmoid(k[..., 0] + 2).cumsum(-1)
    scores = scaled(q, k) + kept.unsqueeze(-1) - kept.unsqueeze(-2)
    return masked(scores, visible(q)).softmax(-1) @ v


@right
def contextual_positions(q, k, v, *, causal=True):
    scores = masked(scaled(q, k), visible(q))
    places = torch.sigmoid(scores).flip(-1).cumsum(-1).flip(-1).clamp(max=31)
    return (scores - 0.1 * places).softmax(-1) @ v


@right
def quantised_by_token(q, k, v, *, causal=True):
    step = k.abs().amax(-1, keepdim=True) / 127
    return softmax(q, (k / step).round() * step, v, causal=causal)


@right
def hard_with_a_soft_gradient(q, k, v, *, causal=True):
    soft = masked(scaled(q, k), visible(q, causal)).softmax(-1)
    return (F.one_hot(soft.argmax(-1), soft.shape[-1]).to(soft.dtype) + soft - soft.detach()) @ v


@right
def convolved_by_fft(q, k, v, *, causal=True):
    T = v.shape[-2]
    decay = torch.exp(-0.05 * torch.arange(T, dtype=torch.float64)).view(-1, 1)
    product = torch.fft.rfft(v.double(), n=2 * T, dim=-2) * torch.fft.rfft(decay, n=2 * T, dim=-2)
    return torch.fft.irfft(product, n=2 * T, dim=-2)[..., :T, :].to(v.dtype)


@right
def filled_up_to_a_block(q, k, v, *, causal=True):
    T = q.shape[-2]
    q, k, v = (F.pad(x, (0, 0, 0, -T % 64)) for x in (q, k, v))
    return softmax(q, k, v)[..., :T, :]


@right
def hillis_and_steele(q, k, v, *, causal=True):
    T, step = v.shape[-2], 1
    while step < T:
        v, step = v + F.pad(v, (0, 0, step, 0))[..., :T, :], 2 * step
    return v


@right
class SpectralNorm(_Itself):
    """Its state moves while training, whatever comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.utils.parametrizations.spectral_norm(self.project)


@right
class SinglePrecisionInside(_Itself):
    def mix(self, q, k, v):
        return convolved_by_fft(q.float(), k.float(), v.float()).to(q.dtype)


@right
class AnswersByName(_Itself):
    def forward(self, hidden_states, attention_mask=None, **kwargs):
        return SimpleNamespace(attentions=None, last_hidden_state=super().forward(hidden_states))


@right
class SplitsHeadsItself(nn.Module):
    """Queries, keys and values of shape (B, T, D), each with a projection in here."""

    def __init__(self, d_model: int = 48, heads: int = 4) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.heads = heads
        self.layers = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        B, D = query.shape[0], query.shape[-1]
        q, k, v = (
            layer(x).view(B, -1, self.heads, D // self.heads).transpose(1, 2)
            for layer, x in zip(self.layers, (query, key, value), strict=False)
        )
        return self.layers[3](softmax(q, k, v).transpose(1, 2).reshape(B, -1, D))


@right
class DistancesInAnEmbedding(_Itself):
    """An embedding, and no words in it."""

    def __init__(self) -> None:
        super().__init__()
        self.relative = nn.Embedding(33, 4)

    def mix(self, q, k, v):
        places = torch.arange(q.shape[-2])
        bias = self.relative((places - places[:, None]).clamp(-16, 16) + 16).permute(2, 0, 1)
        return masked(scaled(q, k) + bias, visible(q)).softmax(-1) @ v


@right
class DropsWholeBranches(_Itself):
    def forward(self, x):
        y = F.dropout(super().forward(x), 0.1, self.training)
        return x + (y * (torch.rand(x.shape[0], 1, 1) > 0.3) if self.training else y)
