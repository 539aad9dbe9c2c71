"""Mechanisms that are right, however unusual: no check may accuse one of them.

Shapes: B batch, H heads, T queries, S keys, d width; every function is `attention(q, k, v, *, causal=True)`.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RIGHT: dict[str, object] = {}


def right(function):
    RIGHT[function.__name__] = function
    return function


def visible(q: Tensor, causal: bool = True) -> Tensor:
    T = q.shape[-2]
    seen = torch.ones(T, T, dtype=torch.bool)
    return seen.tril() if causal else seen


def scaled(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT / math.sqrt(q.shape[-1])


def masked(scores: Tensor, seen: Tensor) -> Tensor:
    return scores.masked_fill(~seen, -torch.inf)


@right
def softmax(q, k, v, *, causal=True):
    return masked(scaled(q, k), visible(q, causal)).softmax(-1) @ v


@right
def fused(q, k, v, *, causal=True):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


@right
def flag_of_another_name(q, k, v, is_causal=False):
    return softmax(q, k, v, causal=is_causal)


@right
def sigmoid(q, k, v, *, causal=True):
    seen = visible(q, causal)
    return (torch.sigmoid(scaled(q, k) - seen.sum(-1, keepdim=True).log()) * seen) @ v


@right
def renormalised_after_mask(q, k, v, *, causal=True):
    weights = scaled(q, k).softmax(-1) * visible(q, causal)
    return weights / weights.sum(-1, keepdim=True) @ v


@right
def renormalised_with_epsilon(q, k, v, *, causal=True):
    weights = scaled(q, k).softmax(-1) * visible(q, causal)
    return weights / (weights.sum(-1, keepdim=True) + 1e-9) @ v


@right
def renormalised_and_clamped(q, k, v, *, causal=True):
    weights = scaled(q, k).softmax(-1) * visible(q, causal)
    return weights / weights.sum(-1, keepdim=True).clamp_min(1e-12) @ v


@right
def softmax_plus_one(q, k, v, *, causal=True):
    scores = masked(scaled(q, k), visible(q, causal))
    top = scores.amax(-1, keepdim=True).clamp_min(0)
    weights = (scores - top).exp()
    return weights / (weights.sum(-1, keepdim=True) + (-top).exp()) @ v


@right
def sink(q, k, v, *, causal=True):
    scores = masked(scaled(q, k), visible(q, causal))
    scores = torch.cat([torch.full_like(scores[..., :1], 0.3), scores], -1)
    return scores.softmax(-1)[..., 1:] @ v


@right
def linear_elu(q, k, v, *, causal=True):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    state = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(-3)
    total = k.cumsum(-2)
    if not causal:
        state, total = state[..., -1:, :, :], total[..., -1:, :]
    return (q.unsqueeze(-2) @ state).squeeze(-2) / (q * total).sum(-1, keepdim=True)


@right
def linear_with_identity(q, k, v, *, causal=True):
    return (q @ k.mT * visible(q, causal)) @ v


@right
def stick_breaking(q, k, v, *, causal=True):
    scores = scaled(q, k)
    seen = visible(q, causal)
    stop = F.logsigmoid(scores)
    go = torch.where(seen, F.logsigmoid(-scores), 0.0)
    after = go.flip(-1).cumsum(-1).flip(-1) - go
    return torch.where(seen, (stop + after).exp(), 0.0) @ v


@right
def retention(q, k, v, *, causal=True):
    T, H = q.shape[-2], q.shape[-3]
    gamma = 1 - 2.0 ** (-5 - torch.arange(H, dtype=q.dtype)).view(H, 1, 1)
    ages = torch.arange(T)[:, None] - torch.arange(T)
    decay = torch.where(ages >= 0, gamma ** ages.clamp_min(0), 0.0 if causal else 1.0)
    return (q @ k.mT * decay) @ v


@right
def sliding_window(q, k, v, *, causal=True):
    T = q.shape[-2]
    ages = torch.arange(T)[:, None] - torch.arange(T)
    seen = (ages >= 0) & (ages < 5) if causal else ages.abs() < 5
    return masked(scaled(q, k), seen).softmax(-1) @ v


@right
def cosine(q, k, v, *, causal=True):
    scores = 10.0 * F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT
    return masked(scores, visible(q, causal)).softmax(-1) @ v


@right
def differential(q, k, v, *, causal=True):
    half = q.shape[-1] // 2
    seen = visible(q, causal)
    first = masked(scaled(q[..., :half], k[..., :half]), seen).softmax(-1)
    second = masked(scaled(q[..., half:], k[..., half:]), seen).softmax(-1)
    return (first - 0.4 * second) @ v


@right
def alibi(q, k, v, *, causal=True):
    T, H = q.shape[-2], q.shape[-3]
    slopes = 2.0 ** (-8 * (torch.arange(H, dtype=q.dtype) + 1) / H).view(H, 1, 1)
    ages = (torch.arange(T)[:, None] - torch.arange(T)).abs()
    return masked(scaled(q, k) - slopes * ages, visible(q, causal)).softmax(-1) @ v


def _rotated(x: Tensor) -> Tensor:
    T, d = x.shape[-2:]
    angles = torch.arange(T, dtype=x.dtype)[:, None] * 10000.0 ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = (even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos())
    return torch.stack(turned, -1).flatten(-2)


@right
def rotary(q, k, v, *, causal=True):
    return softmax(_rotated(q), _rotated(k), v, causal=causal)


@right
def aft(q, k, v, *, causal=True):
    weights = k.exp()
    if not causal:
        return torch.sigmoid(q) * (weights * v).sum(-2, keepdim=True) / weights.sum(-2, keepdim=True)
    return torch.sigmoid(q) * (weights * v).cumsum(-2) / weights.cumsum(-2)


@right
def aft_with_global_maximum(q, k, v, *, causal=True):
    weights = (k - k.amax(-2, keepdim=True)).exp()
    return torch.sigmoid(q) * (weights * v).cumsum(-2) / weights.cumsum(-2)


@right
def favor(q, k, v, *, causal=True):
    d = q.shape[-1]
    features = torch.randn(d, 32, generator=torch.Generator().manual_seed(5), dtype=torch.float64).to(q.dtype)

    def positive(x):
        x = x / d**0.25
        return (x @ features - (x * x).sum(-1, keepdim=True) / 2).exp() + 1e-6

    weights = positive(q) @ positive(k).mT * visible(q, causal)
    return weights / weights.sum(-1, keepdim=True) @ v


@right
def relu(q, k, v, *, causal=True):
    seen = visible(q, causal)
    return (F.relu(scaled(q, k)) * seen / seen.sum(-1, keepdim=True)) @ v


@right
def hard(q, k, v, *, causal=True):
    best = masked(scaled(q, k), visible(q, causal)).argmax(-1)
    return v.gather(-2, best.unsqueeze(-1).expand_as(v))


@right
def sparsemax(q, k, v, *, causal=True):
    scores = scaled(q, k).masked_fill(~visible(q, causal), -1e30)
    ordered = scores.sort(-1, descending=True).values
    ranks = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype)
    support = 1 + ranks * ordered > ordered.cumsum(-1)
    size = support.sum(-1, keepdim=True)
    threshold = (torch.where(support, ordered, 0.0).sum(-1, keepdim=True) - 1) / size
    return (scores - threshold).clamp_min(0) @ v


@right
def grouped(q, k, v, *, causal=True):
    groups = max(1, k.shape[1] // 2)
    k, v = (x[:, torch.arange(x.shape[1]) % groups] for x in (k, v))
    return softmax(q, k, v, causal=causal)


@right
def online(q, k, v, *, causal=True, block=32):
    seen = visible(q, causal)
    top = torch.full_like(q[..., :1], -torch.inf)
    total, out = torch.zeros_like(top), torch.zeros_like(v)
    for start in range(0, k.shape[-2], block):
        part = slice(start, start + block)
        scores = masked(scaled(q, k[..., part, :]), seen[:, part])
        new = torch.maximum(top, scores.amax(-1, keepdim=True))
        shift = torch.where(new.isfinite(), new, 0.0)
        weights, keep = (scores - shift).exp(), (top - shift).exp()
        total = total * keep + weights.sum(-1, keepdim=True)
        out = out * keep + weights @ v[..., part, :]
        top = new
    return out / total


@right
def chunked_linear(q, k, v, *, causal=True, chunk=16):
    outputs, state = [], torch.zeros_like(q[..., :1, :].mT @ v[..., :1, :])
    for start in range(0, q.shape[-2], chunk):
        q_c, k_c, v_c = (x[..., start : start + chunk, :] for x in (q, k, v))
        outputs.append(q_c @ state + (q_c @ k_c.mT).tril() @ v_c)
        state = state + k_c.mT @ v_c
    return torch.cat(outputs, -2)


@right
def suffix_subtracted(q, k, v, *, causal=True):
    """A prefix sum computed as the total without the suffix: rounding reaches back, content does not."""
    whole = v.sum(-2, keepdim=True)
    later = v.flip(-2).cumsum(-2).flip(-2) - v
    return (whole - later) / torch.arange(1, v.shape[-2] + 1, dtype=v.dtype).view(-1, 1)


@right
def log_n_of_own_position(q, k, v, *, causal=True):
    own = torch.arange(1, q.shape[-2] + 1, dtype=q.dtype).view(-1, 1)
    return softmax(q * (1 + own.log()), k, v, causal=causal)


@right
def additive_clamped(q, k, v, *, causal=True):
    scores = torch.tanh(q.unsqueeze(-2) + k.unsqueeze(-3)).sum(-1).clamp(-20, 20)
    weights = scores.exp() * visible(q, causal)
    return weights / weights.sum(-1, keepdim=True) @ v


@right
def euclidean(q, k, v, *, causal=True):
    return masked(-(torch.cdist(q, k) ** 2) / 8, visible(q, causal)).softmax(-1) @ v


@right
def naive_exponential(q, k, v, *, causal=True):
    weights = scaled(q, k).exp() * visible(q, causal)
    return weights / weights.sum(-1, keepdim=True) @ v


@right
def top_k_of_the_past(q, k, v, *, causal=True):
    scores = masked(scaled(q, k), visible(q, causal))
    least = scores.topk(min(4, scores.shape[-1]), -1).values[..., -1:]
    return masked(scores, scores >= least).softmax(-1) @ v


@right
def soft_capped(q, k, v, *, causal=True):
    return masked(20 * torch.tanh(scaled(q, k) / 20), visible(q, causal)).softmax(-1) @ v


@right
def very_negative_mask(q, k, v, *, causal=True):
    return scaled(q, k).masked_fill(~visible(q, causal), torch.finfo(q.dtype).min).softmax(-1) @ v


@right
def computes_in_single_precision(q, k, v, *, causal=True):
    return online(q.float(), k.float(), v.float(), causal=causal).to(q.dtype)


@right
def delta_rule(q, k, v, *, causal=True):
    k = F.normalize(k, dim=-1)
    state = torch.zeros_like(k[..., :1, :].mT @ v[..., :1, :])
    outputs = []
    for t in range(q.shape[-2]):
        q_t, k_t, v_t = (x[..., t : t + 1, :] for x in (q, k, v))
        state = state + k_t.mT @ (v_t - k_t @ state)
        outputs.append(q_t @ state)
    return torch.cat(outputs, -2)


@right
def talking_heads(q, k, v, *, causal=True):
    H = q.shape[1]
    mix = torch.randn(H, H, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(q.dtype)
    scores = torch.einsum("bhts,hg->bgts", scaled(q, k), mix)
    return masked(scores, visible(q, causal)).softmax(-1) @ v


@right
def of_declared_length(q, k, v, *, causal=True):
    if q.shape[-2] != 48:
        raise ValueError("made for 48 positions")
    return softmax(q, k, v, causal=causal)


@right
def dense_only(q, k, v, *, causal=True):
    if q.dtype is not torch.float32:
        raise TypeError("float32 only")
    return softmax(q, k, v, causal=causal)


class SelfAttention(nn.Module):
    """A mixer with its own projections, dropout and a mask of a fixed size."""

    def __init__(self, width: int = 32, heads: int = 4, block_size: int = 80) -> None:
        super().__init__()
        self.heads = heads
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)
        self.register_buffer("seen", torch.ones(block_size, block_size, dtype=torch.bool).tril())

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in self.project(x).chunk(3, -1))
        weights = self.dropout(masked(scaled(q, k), self.seen[:T, :T]).softmax(-1))
        return self.merge((weights @ v).transpose(1, 2).reshape(B, T, D))


class CausalConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Conv1d(32, 32, 4, groups=32)

    def forward(self, x):
        return self.filter(F.pad(x.mT, (3, 0))).mT


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(32, 32, batch_first=True)

    def forward(self, x):
        return self.cell(x)


for module in (SelfAttention, CausalConvolution, Recurrent):
    RIGHT[module.__name__] = module
