"""Scores against their formulas, pair by pair, and against PyTorch."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from attnlab.attention import (
    Additive,
    Alibi,
    Attention,
    Bilinear,
    Cosine,
    Dims,
    Distance,
    Rotary,
    Score,
    Unscaled,
)
from attnlab.errors import DeclarationError
from attnlab.model import Decoder

DIMS = Dims(width=24, heads=3, context=16)
Q, K = torch.randn(2, 3, 5, 8, dtype=torch.float64), torch.randn(2, 3, 7, 8, dtype=torch.float64)


def test_unscaled() -> None:
    torch.testing.assert_close(Unscaled()(Q, K), torch.einsum("bhtd,bhsd->bhts", Q, K))


def test_bilinear_is_torch_bilinear() -> None:
    score = Bilinear().build(DIMS).double()
    torch.testing.assert_close(score(Q, K), (Q @ K.mT) / math.sqrt(8))  # as it starts
    torch.nn.init.normal_(score.weight)
    pairs = torch.broadcast_tensors(Q.unsqueeze(-2), K.unsqueeze(-3))
    theirs = F.bilinear(pairs[0].contiguous(), pairs[1].contiguous(), score.weight[None])[..., 0]
    torch.testing.assert_close(score(Q, K), theirs)


def test_cosine_is_torch_cosine_similarity() -> None:
    theirs = F.cosine_similarity(Q.unsqueeze(-2), K.unsqueeze(-3), dim=-1)
    torch.testing.assert_close(Cosine(temperature=0.3)(Q, K), theirs / 0.3)
    assert Cosine()(torch.zeros_like(Q), K).isfinite().all()


def test_distance_is_torch_cdist() -> None:
    torch.testing.assert_close(Distance()(Q, K), -torch.cdist(Q, K).square() / math.sqrt(8))


def test_a_plain_function_of_the_users(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from attnlab.attention import score_from\n\n"
        "@score_from\n"
        "def manhattan(q, k):\n"
        "    return -(q.unsqueeze(-2) - k.unsqueeze(-3)).abs().sum(-1)\n"
    )
    score = Score.resolve(f"{file}:manhattan")
    assert score.name == f"{file}:manhattan"
    torch.testing.assert_close(score(Q, K), -torch.cdist(Q, K, p=1))
    assert Score.resolve(score.plain()) == score
    Decoder.model_validate({"mixer": {"part": "attention", "score": f"{file}:manhattan"}}).build(11)


@pytest.mark.parametrize("score", [Additive(), Bilinear()])
def test_rotary_is_refused_where_turning_does_not_cancel(score: Score) -> None:
    with pytest.raises(DeclarationError, match="turning q and k together cancels"):
        Decoder(mixer=Attention(score=score), position=Rotary())
    Decoder(mixer=Attention(score=score), position=Alibi())


def test_fused_on_request_only_where_it_is_possible() -> None:
    with pytest.raises(DeclarationError, match="the score 'additive' is no dot product"):
        Decoder(mixer=Attention(score=Additive(), kernel="fused"))
    for score in (Unscaled(), Bilinear(), Cosine(), Distance()):
        assert Attention(score=score, kernel="fused").build(DIMS).fused
