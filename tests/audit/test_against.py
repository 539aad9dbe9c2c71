"""Comparison with a declared reference: what is right on its own, and not what it says it is.

Shapes: B batch, H heads, T queries, d width.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

import attnlab.audit as audit

from .operators_right import _rotated, alibi, fused, masked, online, rotary, scaled, softmax, visible


def compared(function, against):
    (result,) = audit.run_audit(function, against=against)
    checks = {check.name: check for check in result.checks}
    assert checks["causality"].status == "pass"
    return checks["against"]


@pytest.mark.parametrize("function", [softmax, fused, online])
def test_what_is_softmax_attention_agrees_with_it(function):
    assert compared(function, "softmax").status == "pass"


def test_a_wrong_scale_is_named():
    def unscaled(q, k, v, *, causal=True):
        return masked(q @ k.mT, visible(q, causal)).softmax(-1) @ v

    seen = compared(unscaled, "softmax")
    assert seen.status == "fail"
    assert "4 times the reference's 0.25" in seen.evidence


def test_a_scale_by_the_whole_width_is_named():
    def by_model_width(q, k, v, *, causal=True):
        return softmax(q / math.sqrt(q.shape[1]), k, v, causal=causal)

    assert "0.5 times the reference's" in compared(by_model_width, "softmax").evidence


def test_one_slope_for_all_heads_is_named():
    def one_slope(q, k, v, *, causal=True):
        ages = (torch.arange(q.shape[-2])[:, None] - torch.arange(q.shape[-2])).abs()
        return masked(scaled(q, k) - 0.25 * ages, visible(q, causal)).softmax(-1) @ v

    assert "slopes of all heads are alike" in compared(one_slope, "alibi").evidence
    assert compared(alibi, "alibi").status == "pass"


def test_rotary_on_one_side_only_is_named():
    def of_queries(q, k, v, *, causal=True):
        return softmax(_rotated(q), k, v, causal=causal)

    def of_keys(q, k, v, *, causal=True):
        return softmax(q, _rotated(k), v, causal=causal)

    assert "only queries are rotated" in compared(of_queries, rotary).evidence
    assert "only keys are rotated" in compared(of_keys, rotary).evidence


def test_a_wrong_online_softmax_is_found_where_the_second_block_begins():
    def forgets_to_rescale(q, k, v, *, causal=True, block=32):
        """A running maximum that is never applied to what was summed before it rose."""
        top, total, out = torch.full_like(q[..., :1], -torch.inf), 0.0, torch.zeros_like(v)
        for start in range(0, k.shape[-2], block):
            part = slice(start, start + block)
            scores = masked(scaled(q, k[..., part, :]), visible(q, causal)[:, part])
            top = torch.maximum(top, scores.amax(-1, keepdim=True))
            weights = (scores - top).exp()
            total, out = total + weights.sum(-1, keepdim=True), out + weights @ v[..., part, :]
        return out / total

    seen = compared(forgets_to_rescale, "softmax")
    assert seen.status == "fail"
    assert "across blocks" in seen.evidence
    assert seen.detail["length"] == 33


def test_a_wrong_scale_is_no_finding_when_nothing_is_declared():
    def unscaled(q, k, v, *, causal=True):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=1.0)

    (result,) = audit.run_audit(unscaled)
    assert result.passed
    weights = {check.name: check for check in result.checks}["weights"]
    assert weights.detail["slope"] == pytest.approx(1.0, rel=1e-6)
