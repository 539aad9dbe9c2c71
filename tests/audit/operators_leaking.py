"""Planted leaks and other faults, each tiny. `LEAKS` must fail `causality`, `FAULTS` the check they name."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from .operators_right import SelfAttention, masked, scaled, softmax, visible

LEAKS: dict[str, object] = {}
FAULTS: dict[str, tuple[str, object]] = {}


def leak(function):
    LEAKS[function.__name__] = function
    return function


def fault(check):
    def keep(function):
        FAULTS[function.__name__] = (check, function)
        return function

    return keep


@leak
def no_mask(q, k, v, *, causal=True):
    return scaled(q, k).softmax(-1) @ v


@leak
def mask_after_softmax(q, k, v, *, causal=True):
    return (scaled(q, k).softmax(-1) * visible(q)) @ v


@leak
def sees_one_ahead(q, k, v, *, causal=True):
    T = q.shape[-2]
    return masked(scaled(q, k), torch.ones(T, T, dtype=torch.bool).tril(1)).softmax(-1) @ v


@leak
def anticausal(q, k, v, *, causal=True):
    return masked(scaled(q, k), visible(q).mT).softmax(-1) @ v


@leak
def mask_of_ten_thousand(q, k, v, *, causal=True):
    return scaled(q, k).masked_fill(~visible(q), -1e4).softmax(-1) @ v


@leak
def ten_thousand_added(q, k, v, *, causal=True):
    return (scaled(q, k) + (~visible(q)).to(q.dtype) * -1e4).softmax(-1) @ v


@leak
def mask_of_fifty(q, k, v, *, causal=True):
    return scaled(q, k).masked_fill(~visible(q), -50.0).softmax(-1) @ v


@leak
def masked_with_zero(q, k, v, *, causal=True):
    return (scaled(q, k) * visible(q)).softmax(-1) @ v


@leak
def wrong_axis(q, k, v, *, causal=True):
    return masked(scaled(q, k), visible(q)).softmax(-2).nan_to_num() @ v


@leak
def wrong_axis_without_mask_first(q, k, v, *, causal=True):
    return (scaled(q, k).softmax(-2) * visible(q)) @ v


def _open_beyond(length):
    def attention(q, k, v, *, causal=True):
        return softmax(q, k, v, causal=q.shape[-2] <= length)

    return attention


for _length in (16, 64, 128, 256, 512, 1000, 1024):
    LEAKS[f"open_beyond_{_length}"] = _open_beyond(_length)


@leak
def open_at_one_length_only(q, k, v, *, causal=True):
    return softmax(q, k, v, causal=q.shape[-2] != 777)


@leak
def open_in_the_last_block(q, k, v, *, causal=True, block=64):
    T = q.shape[-2]
    seen = visible(q)
    if T % block and block < T:
        seen = seen.clone()
        seen[T - T % block :, T - T % block :] = True
    return masked(scaled(q, k), seen).softmax(-1) @ v


@leak
def blocks_see_themselves(q, k, v, *, causal=True):
    block = torch.arange(q.shape[-2]) // 32
    return masked(scaled(q, k), block[:, None] >= block).softmax(-1) @ v


@leak
def across_one_border(q, k, v, *, causal=True):
    seen = visible(q).clone()
    if q.shape[-2] > 100:
        seen[63, 64] = True
    return masked(scaled(q, k), seen).softmax(-1) @ v


@leak
def through_v_only(q, k, v, *, causal=True):
    return softmax(q, k, v) + 0.01 * v.mean(-2, keepdim=True)


@leak
def through_k_only(q, k, v, *, causal=True):
    return softmax(q, k - k.mean(-2, keepdim=True), v) * (1 + 0.01 * k.mean((-1, -2), keepdim=True))


@leak
def through_q_only(q, k, v, *, causal=True):
    return softmax(q - q.mean(-2, keepdim=True), k, v)


@leak
def detached_statistics(q, k, v, *, causal=True):
    return softmax((q - q.detach().mean(-2, keepdim=True)) / q.detach().std(-2, keepdim=True), k, v)


@leak
def top_k_of_the_row(q, k, v, *, causal=True):
    scores = scaled(q, k)
    least = scores.topk(min(4, scores.shape[-1]), -1).values[..., -1:]
    return (
        masked(scores, ((scores >= least) | torch.eye(q.shape[-2], dtype=torch.bool)) & visible(q)).softmax(
            -1
        )
        @ v
    )


@leak
def quantised_by_the_largest(q, k, v, *, causal=True):
    step = v.abs().max() / 127
    return softmax(q, k, (v / step).round() * step)


@leak
def divided_by_the_largest_key(q, k, v, *, causal=True):
    return softmax(q, k / k.norm(dim=-1).max(), v)


@leak
def normalised_over_time(q, k, v, *, causal=True):
    return F.layer_norm(softmax(q, k, v).mT, (q.shape[-2],)).mT


@leak
def normalised_over_batch_and_time(q, k, v, *, causal=True):
    out = softmax(q, k, v)
    return (out - out.mean((0, 2), keepdim=True)) / out.std((0, 2), keepdim=True)


@leak
def in_one_head(q, k, v, *, causal=True):
    out = softmax(q, k, v)
    out[:, -1] = no_mask(q, k, v)[:, -1]
    return out


@leak
def in_the_ninth_head(q, k, v, *, causal=True):
    out = softmax(q, k, v)
    out[:, 8:] = no_mask(q, k, v)[:, 8:]
    return out


@leak
def in_one_batch_row(q, k, v, *, causal=True):
    out = softmax(q, k, v)
    out[-1] = no_mask(q, k, v)[-1]
    return out


@leak
def in_large_batches(q, k, v, *, causal=True):
    return softmax(q, k, v, causal=q.shape[0] < 5)


@leak
def in_single_batches(q, k, v, *, causal=True):
    return softmax(q, k, v, causal=q.shape[0] > 1)


@leak
def from_the_last_token(q, k, v, *, causal=True):
    out = softmax(q, k, v)
    out[..., 1, :] += 1e-3 * v[..., -1, :]
    return out


@leak
def into_position_zero(q, k, v, *, causal=True):
    out = softmax(q, k, v)
    if q.shape[-2] > 1:
        out[..., 0, 0] += 1e-4 * k[..., 1, 0]
    return out


@leak
def rolled_the_wrong_way(q, k, v, *, causal=True):
    return softmax(q, k.roll(-1, -2), v)


@leak
def in_single_precision(q, k, v, *, causal=True):
    return softmax(q, k, v, causal=q.dtype is not torch.float32)


@leak
def in_half_precision(q, k, v, *, causal=True):
    return softmax(q, k, v, causal=q.dtype not in (torch.bfloat16, torch.float16))


@leak
def seeds_from_the_sum(q, k, v, *, causal=True):
    torch.manual_seed(int(v.sum().abs() * 1e6))
    return softmax(q, k, v) + 0.1 * torch.rand(1).to(q.dtype)


@leak
def when_the_next_is_equal(q, k, v, *, causal=True):
    same = (k[..., 1:, :] == k[..., :-1, :]).all(-1, keepdim=True)
    return softmax(q, k, v) + F.pad(same.to(v.dtype), (0, 0, 0, 1))


@leak
def by_counting_zeros(q, k, v, *, causal=True):
    real = (k.abs().sum(-1, keepdim=True) > 0).to(v.dtype).sum(-2, keepdim=True)
    return softmax(q, k, v) / real


@leak
def when_a_later_value_is_large(q, k, v, *, causal=True):
    return softmax(q, k, v) * torch.where(v.abs().amax((-1, -2), keepdim=True) > 20, 1.1, 1.0)


@leak
def poisoned_by_large_queries(q, k, v, *, causal=True):
    return softmax(q, k, v) + torch.where(q.abs().amax() > 20, torch.nan, 0.0)


@leak
def straight_through(q, k, v, *, causal=True):
    loose, strict = no_mask(q, k, v), softmax(q, k, v)
    return strict.detach() + loose - loose.detach()


@leak
def mirrored(q, k, v, *, causal=True):
    return softmax(q, k, v) + 1e-5 * softmax(q.flip(-2), k.flip(-2), v.flip(-2)).flip(-2)


@leak
def mask_by_head_not_time(q, k, v, *, causal=True):
    """Broadcast along the wrong axis, as when (B, T, H, d) is taken for (B, H, T, d)."""
    H, T = q.shape[1], q.shape[2]
    seen = (torch.arange(T)[None, :] <= torch.arange(H)[:, None]).view(1, H, 1, T)
    return masked(scaled(q, k), seen).softmax(-1) @ v


@leak
def merged_without_transposing(q, k, v, *, causal=True):
    out = softmax(q, k, v)
    return out.transpose(1, 2).reshape(out.shape)


@leak
def single_precision_only(q, k, v, *, causal=True):
    if q.dtype is not torch.float32:
        raise TypeError("float32 only")
    return mask_after_softmax(q, k, v)


@leak
def at_its_declared_length_only(q, k, v, *, causal=True):
    if q.shape[-2] != 48:
        raise ValueError("made for 48 positions")
    return no_mask(q, k, v)


@leak
def with_dropout_and_open(q, k, v, *, causal=True):
    return F.dropout(no_mask(q, k, v), 0.1)


class OpenWhileTraining(SelfAttention):
    def forward(self, x):
        return super().forward(x) + (1e-3 * x.mean(1, keepdim=True) if self.training else 0.0)


class OpenInEvaluation(SelfAttention):
    def forward(self, x):
        return super().forward(x) + (0.0 if self.training else 1e-3 * x.mean(1, keepdim=True))


class BatchNormalised(SelfAttention):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(32)

    def forward(self, x):
        return self.norm(super().forward(x).mT).mT


class OpenBeyondItsBuffer(SelfAttention):
    def forward(self, x):
        T = x.shape[1]
        if T > 75:
            self.seen = torch.ones_like(self.seen)
        return super().forward(x)


class CenteredConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Conv1d(32, 32, 3, padding=1)

    def forward(self, x):
        return self.filter(x.mT).mT


class BothWays(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(32, 16, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.cell(x)


class FiniteMask(SelfAttention):
    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in self.project(x).chunk(3, -1))
        return self.merge((mask_of_ten_thousand(q, k, v)).transpose(1, 2).reshape(B, T, D))


class SwitchedByALength(SelfAttention):
    def __init__(self) -> None:
        super().__init__(block_size=600)
        self.long_from = 333

    def forward(self, x):
        if x.shape[1] >= self.long_from:
            self.seen = torch.ones_like(self.seen)
        return super().forward(x)


for _module in (
    OpenWhileTraining,
    OpenInEvaluation,
    BatchNormalised,
    OpenBeyondItsBuffer,
    CenteredConvolution,
    BothWays,
    FiniteMask,
    SwitchedByALength,
):
    LEAKS[_module.__name__] = _module


@fault("determinism")
def drops_out_always(q, k, v, *, causal=True):
    return F.dropout(softmax(q, k, v), 0.1)


_remembered: dict[str, torch.Tensor] = {}


@fault("determinism")
def remembers_the_last_call(q, k, v, *, causal=True):
    out = softmax(q, k, v) + 0.1 * _remembered.get("mean", torch.zeros(())).to(q.dtype)
    _remembered["mean"] = v.mean()
    return out


@fault("determinism")
def leaves_a_seed_behind(q, k, v, *, causal=True):
    torch.manual_seed(int(v.sum().abs() * 1e6))
    return softmax(q, k, v)


@fault("purity")
def scales_in_place(q, k, v, *, causal=True):
    q /= math.sqrt(q.shape[-1])
    return masked(q @ k.mT, visible(q, causal)).softmax(-1) @ v


@fault("purity")
def zeroes_keys_in_place(q, k, v, *, causal=True):
    out = softmax(q, k, v)
    k.zero_()
    return out


@fault("shape")
def transposed_output(q, k, v, *, causal=True):
    return softmax(q, k, v).transpose(1, 2)


@fault("shape")
def drops_the_last_position(q, k, v, *, causal=True):
    return softmax(q, k, v)[..., :-1, :]


@fault("finite")
def without_a_first_key(q, k, v, *, causal=True):
    T = q.shape[-2]
    return masked(scaled(q, k), torch.ones(T, T, dtype=torch.bool).tril(-1)).softmax(-1) @ v


@fault("uses-values")
def constant(q, k, v, *, causal=True):
    return torch.ones_like(v)


@fault("length")
def scaled_by_the_whole_length(q, k, v, *, causal=True):
    return softmax(q * math.log(q.shape[-2] + 1), k, v)


@fault("length")
def positions_from_the_end(q, k, v, *, causal=True):
    left = torch.arange(q.shape[-2]).flip(0).to(q.dtype).view(-1, 1)
    return softmax(q, k, v) + 0.1 * left


@fault("batch")
def normalised_over_the_batch(q, k, v, *, causal=True):
    out = softmax(q, k, v)
    return (out - out.mean(0)) / (out.std(0) + 1)


@fault("heads")
def permuted_heads(q, k, v, *, causal=True):
    return softmax(q, k, v).roll(1, 1)


@fault("heads")
def one_head_for_all(q, k, v, *, causal=True):
    q, k = (x[:, :1].expand_as(x) for x in (q, k))
    return softmax(q, k, v)
