"""One small language model, and faults that can be put into it one at a time.

Shapes: B batch, T new tokens, S all tokens so far, V vocabulary.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, WIDTH, CONTEXT = 24, 32, 48


class TinyLM(nn.Module):
    """Two layers, learned positions, masks, a cache and a loss, in the conventions of transformers."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.fault, self.block_size = fault, CONTEXT
        self.config = SimpleNamespace(tie_word_embeddings=True, vocab_size=VOCABULARY)
        self.embed, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.mixes = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2))
        self.merges = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        if fault != "head not tied":
            self.head.weight = self.embed.weight
        if fault == "unused parameter":
            self.spare = nn.Parameter(torch.ones(3))
        if fault == "batch norm":
            self.batch_norm = nn.BatchNorm1d(WIDTH)
        self.calls = 0

    def forward(
        self,
        input_ids,
        attention_mask=None,
        position_ids=None,
        past_key_values=None,
        use_cache=False,
        labels=None,
    ):
        past = past_key_values
        before = past[0][0].shape[2] if past else 0
        B, T = input_ids.shape
        S = before + T
        mask = torch.ones(B, S, dtype=torch.long) if attention_mask is None else attention_mask
        self.real_tokens = (input_ids != 0).sum(-1)
        places = self._places(position_ids, mask, before, T)
        x = self.embed(input_ids) + self.places(places)
        x = F.dropout(x, 0.1, self.training or self.fault == "dropout in evaluation")
        kept = []
        for layer in range(2):
            added, keys = self._attend(layer, x, mask, past[layer] if past else None)
            x = x + added
            kept.append(keys)
        x = self.norms[2](self._mixed_over_rows(x))
        logits = self.head(x.detach() if self.fault == "detached" else x)
        self.calls += 1
        if self.fault == "counts its calls":
            logits = logits + 0.1 * self.calls
        return SimpleNamespace(
            logits=logits,
            loss=None if labels is None else self._loss(logits, labels),
            past_key_values=kept if use_cache else None,
        )

    def _places(self, given, mask, before, T):
        S = before + T
        if self.fault == "positions from the mask's total":
            return (torch.arange(before, S) - S + mask.sum(-1, keepdim=True)).clamp_min(0) % CONTEXT
        if self.fault == "padding guessed from token 0":
            return (torch.arange(T) + T - self.real_tokens.unsqueeze(1)) % CONTEXT
        if self.fault == "positions counted from the end":
            return (S - 1 - torch.arange(before, S)).expand(mask.shape[0], T)
        if given is not None and self.fault != "position ids ignored":
            return given
        if self.fault == "cache starts at zero":
            before = 0
        return torch.arange(before, before + T).expand(mask.shape[0], T)

    def _attend(self, layer, x, mask, past):
        B, T, _ = x.shape
        q, k, v = (
            y.view(B, T, 2, -1).transpose(1, 2) for y in self.mixes[layer](self.norms[layer](x)).chunk(3, -1)
        )
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        S = k.shape[2]
        seen = torch.ones(T, S, dtype=torch.bool).tril(S - T)
        if self.fault == "no mask" or (self.fault == "no mask while training" and self.training):
            seen = torch.ones_like(seen)
        if self.fault == "no mask beyond 16" and S > 16:
            seen = torch.ones_like(seen)
        if self.fault == "cached pieces see themselves" and past is not None:
            seen = torch.ones_like(seen)
        real = mask[:, None, None, :].bool() if self.fault != "padding attended to" else torch.tensor(True)
        if (
            self.fault == "mask given, order forgotten"
            and mask.requires_grad is False
            and self._was_given(mask)
        ):
            seen = torch.ones_like(seen)
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~(seen & real), torch.finfo(x.dtype).min)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, -1)
        return self.merges[layer](mixed), (k, v)

    def _mixed_over_rows(self, x):
        if self.fault == "batch norm":
            return self.batch_norm(x.mT).mT
        if self.fault == "rows averaged":
            return x - 0.1 * x.mean(0, keepdim=True)
        return x

    def _loss(self, logits, labels):
        ahead = {"labels not shifted": 0, "labels shifted twice": 2}.get(self.fault, 1)
        flat = logits[:, : logits.shape[1] - ahead].flatten(0, 1)
        wanted = labels[:, ahead:].flatten()
        if self.fault == "padding counted":
            return F.cross_entropy(flat, wanted, reduction="sum") / len(wanted)
        if self.fault == "smoothed":
            return F.cross_entropy(flat, wanted, label_smoothing=0.1)
        return F.cross_entropy(flat, wanted)


# The fault, and the checks of which at least one must fail. Nothing else is asked of a broken model.
BROKEN = {
    "no mask": {"causality"},
    "no mask while training": {"causality"},
    "no mask beyond 16": {"causality"},
    "padding guessed from token 0": {"causality"},
    "batch norm": {"causality", "batch"},
    "rows averaged": {"batch"},
    "dropout in evaluation": {"determinism"},
    "counts its calls": {"determinism"},
    "unused parameter": {"parameters"},
    "detached": {"parameters"},
    "head not tied": {"tied"},
    "positions from the mask's total": {"padding-right"},
    "positions counted from the end": {"length"},
    "position ids ignored": {"padding-left"},
    "padding attended to": {"padding-left"},
    "cache starts at zero": {"cache"},
    "cached pieces see themselves": {"cache"},
    "labels not shifted": {"label-shift"},
    "labels shifted twice": {"label-shift"},
    "padding counted": {"padding-loss"},
    "smoothed": {"label-shift"},
}
