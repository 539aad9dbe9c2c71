"""Findings from public issue threads, each rebuilt small: the audit would have shown them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attnlab.audit as audit

from .operators_right import masked, scaled, visible


def failing(target) -> dict[str, str]:
    (result,) = audit.run_audit(target)
    return {check.name: check.evidence for check in result.checks if check.status in ("fail", "error")}


class MaskLeftToTheKernel(nn.Module):
    """A mask is left out where the kernel can be causal by itself; then a bias of the layer's own is given to
    the kernel, which is no longer told to be causal.

    https://github.com/huggingface/transformers/issues/48748
    """

    def __init__(self, always_make_the_mask: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.always = always_make_the_mask
        self.embed, self.bias = nn.Embedding(32, 32), nn.Linear(32, 1, bias=False)
        self.project, self.head = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, tokens):
        x = self.embed(tokens)
        q, k, v = self.project(x).chunk(3, -1)
        mask = visible(q) if self.always else None
        bias = self.bias(x).mT.expand(-1, x.shape[1], -1)
        if mask is not None:
            bias = bias.masked_fill(~mask, -torch.inf)
        return self.head(x + F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=False))


def test_a_bias_that_takes_the_place_of_the_causal_flag():
    assert "causality" in failing(MaskLeftToTheKernel(always_make_the_mask=False))
    assert failing(MaskLeftToTheKernel(always_make_the_mask=True)) == {}


class MaskOfTheFusedPathOnly(nn.Module):
    """The fused path is causal by a flag; with dropout, the slow path is taken, and nobody made it a mask.

    https://github.com/keras-team/keras/issues/23038
    """

    def __init__(self, dropout: float, repaired: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.dropout, self.repaired, self.project = dropout, repaired, nn.Linear(32, 96)

    def forward(self, x):
        q, k, v = self.project(x).chunk(3, -1)
        if not (self.training and self.dropout):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = masked(scaled(q, k), visible(q)) if self.repaired else scaled(q, k)
        return F.dropout(scores.softmax(-1), self.dropout) @ v


def test_a_mask_that_is_lost_with_dropout():
    assert "in training mode" in failing(MaskOfTheFusedPathOnly(0.1))["causality"]
    assert failing(MaskOfTheFusedPathOnly(0.0)) == {}
    assert failing(MaskOfTheFusedPathOnly(0.1, repaired=True)) == {}


class LossByParts(nn.Module):
    """A loss averaged over each part of a batch on its own, whatever number of tokens the whole batch has.

    https://github.com/huggingface/transformers/issues/24725 and the repair in
    https://github.com/huggingface/transformers/pull/34191
    """

    def __init__(self, counts: bool) -> None:
        super().__init__()
        self.counts = counts
        self.embed, self.head = nn.Embedding(32, 16), nn.Linear(16, 32)

    def forward(self, tokens, labels=None, num_items_in_batch=None):
        logits, loss = self.head(self.embed(tokens)), None
        if labels is not None:
            flat, wanted = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
            loss = F.cross_entropy(flat, wanted)
            if self.counts and num_items_in_batch is not None:
                loss = F.cross_entropy(flat, wanted, reduction="sum") / num_items_in_batch
        return SimpleNamespace(logits=logits, loss=loss)


def test_a_loss_that_changes_with_accumulation():
    assert "accumulation" in failing(LossByParts(counts=False))
    assert "accumulation" not in failing(LossByParts(counts=True))


@pytest.mark.parametrize(
    ("name", "implementation"), [("LlamaForCausalLM", "sdpa"), ("DogeForCausalLM", "sdpa")]
)
def test_released_classes_pass_where_they_are_repaired(name, implementation):
    pytest.importorskip("transformers", minversion="5.23")
    (result,) = audit.run_audit(f"transformers:{name}")
    causality = {check.name: check for check in result.checks}["causality"]
    assert causality.status == "pass"
    assert f"{implementation} attention" in causality.evidence
