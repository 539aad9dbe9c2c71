"""The parameter count: minGPT's formula, GPT-2's own count, and the derivation shown in a report."""

from __future__ import annotations

import math
import re

import pytest

from attnlab.model import Decoder
from attnlab.model.count import count_parameters, derive

VOCABULARY = 13_753  # of the common set-up as minGPT's users know it


def mingpt(layers: int, width: int, context: int, vocabulary: int, *, tied: bool = False) -> int:
    """Token and position tables; per block two norms, qkv, merge and a four times wider MLP, with biases; the
    final norm; a head without bias."""
    block = 2 * 2 * width + (3 * width**2 + 3 * width) + (width**2 + width) + (8 * width**2 + 5 * width)
    head = 0 if tied else vocabulary * width
    return vocabulary * width + context * width + layers * block + 2 * width + head


def test_the_common_set_up_is_minGPTs() -> None:
    count = count_parameters(Decoder().build(VOCABULARY))
    assert count == mingpt(3, 48, 100, VOCABULARY) == 1_410_000


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("layers", "heads", "width", "context"), [(3, 3, 48, 100), (1, 4, 32, 7)])
def test_it_is_gpt2s(tied: bool, layers: int, heads: int, width: int, context: int) -> None:
    transformers = pytest.importorskip("transformers", reason="GPT-2 to compare with is in transformers")
    config = transformers.GPT2Config(
        vocab_size=501,
        n_positions=context,
        n_embd=width,
        n_layer=layers,
        n_head=heads,
        tie_word_embeddings=tied,
    )
    spec = Decoder(layers=layers, heads=heads, width=width, context=context, tied=tied)
    theirs = sum(p.numel() for p in transformers.GPT2LMHeadModel(config).parameters())
    assert count_parameters(spec.build(501)) == theirs == mingpt(layers, width, context, 501, tied=tied)


def test_the_derivation_adds_up_and_its_formulas_are_true() -> None:
    model = Decoder().build(VOCABULARY)
    sizes = {"vocabulary": VOCABULARY, "width": 48, "context": 100, "head width": 16}
    rows = derive(model, sizes)
    assert sum(row.count for row in rows) == count_parameters(model)
    for row in rows:
        factors = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+)(?: ×|$)", row.formula)]
        assert row.count == row.copies * math.prod(factors)
    shown = {row.name: (row.formula, row.copies) for row in rows}
    assert shown["embedding.weight"] == ("vocabulary 13,753 × width 48", 1)
    assert shown["blocks.*.mlp.up.weight"] == ("4·width 192 × width 48", 3)


def test_frozen_parameters_do_not_count() -> None:
    model = Decoder().build(50)
    whole = count_parameters(model)
    model.embedding.weight.requires_grad_(False)
    assert count_parameters(model) == whole - 50 * 48
    assert "embedding.weight" not in {row.name for row in derive(model, {})}
