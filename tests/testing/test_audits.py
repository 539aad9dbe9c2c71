"""The audit as an assertion."""

from __future__ import annotations

from importlib.resources import files

import pytest
import torch
import torch.nn.functional as F
import yaml

from attnlab.errors import RequestError
from attnlab.testing import assert_sound


def good(q, k, v, *, causal=True):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def leaky(q, k, v, *, causal=True):
    return F.scaled_dot_product_attention(q, k, v)


def follows_the_length(q, k, v, *, causal=True):
    return good(q * torch.tensor(q.shape[-2]).log1p(), k, v, causal=causal)


def test_sound_and_unsound():
    assert_sound(good, "softmax", against="softmax")
    with pytest.raises(AssertionError, match=r"(?s)the audit found causality.*token"):
        assert_sound(leaky)


def test_what_cannot_be_loaded_is_not_sound():
    with pytest.raises(AssertionError, match="there is no file"):
        assert_sound("nowhere.py:attention")


def test_exceptions_are_named_and_needed():
    assert_sound(follows_the_length, except_for=("length",))
    with pytest.raises(AssertionError, match="take the exception out"):
        assert_sound(good, except_for=("length",))
    with pytest.raises(RequestError, match="did you mean 'length'"):
        assert_sound(good, except_for=("lenght",))


def test_the_step_for_continuous_integration_is_one():
    steps = yaml.safe_load((files("attnlab.testing") / "audit-step.yml").read_text())
    assert "attnlab audit $TARGETS" in steps[0]["run"]
