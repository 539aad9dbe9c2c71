"""Losses of sequences and documents against torch's cross_entropy on a padded batch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attnlab.corpus import Document
from attnlab.evaluation.losses import (
    by_document,
    document_losses,
    mean_loss,
    perplexity,
    same_text,
    sample_of,
    sequence_losses,
    token_losses,
)
from attnlab.model import Decoder, DecoderModel
from attnlab.tokens import Blocks, Characters, Encoded
from attnlab.tokens.batches import take

VOCABULARY = 41
LENGTHS = [5, 16, 1, 9, 12, 3, 8, 16, 2, 7]
DOCUMENTS = [0, 0, 1, 3, 3, 3, 4, 4, 4, 4]  # the third one has no sequence


@pytest.fixture(scope="module")
def model() -> DecoderModel:
    """In training mode and with dropout, so that a forgotten `eval` shows."""
    return Decoder(layers=2, heads=2, width=16, context=16, dropout=0.5).build(VOCABULARY, seed=1).train()


@pytest.fixture(scope="module")
def split() -> Encoded:
    sizes = np.asarray(LENGTHS) + 1
    return Encoded(
        ids=np.random.default_rng(0).integers(3, VOCABULARY, sizes.sum()).astype(np.int32),
        starts=np.concatenate([[0], sizes.cumsum()]),
        document=np.asarray(DOCUMENTS, dtype=np.int32),
        names=("a", "b", "empty", "c", "d"),
        bytes=np.asarray(LENGTHS) * 4 + 1,
        size=VOCABULARY,
        start=0,
        stop=1,
        unknown=2,
    )


@pytest.fixture(scope="module")
def expected(model: DecoderModel, split: Encoded) -> list[np.ndarray]:  # type: ignore[type-arg]
    """For every sequence, the loss of each of its tokens, by torch."""
    texts = [
        torch.from_numpy(split.ids[a:b]).long() for a, b in zip(split.starts, split.starts[1:], strict=False)
    ]
    padded_BT = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)
    model.eval()
    with torch.no_grad():
        logits_BTV = model(padded_BT[:, :-1])
    model.train()
    losses_BT = F.cross_entropy(logits_BTV.transpose(1, 2), padded_BT[:, 1:], reduction="none")
    return [losses[:n].double().numpy() for losses, n in zip(losses_BT, LENGTHS, strict=True)]


def test_tokens(model: DecoderModel, split: Encoded, expected: list[np.ndarray]) -> None:  # type: ignore[type-arg]
    sequences = np.array([3, 0, 7])
    ours = token_losses(model, take(split, sequences))
    np.testing.assert_allclose(ours, np.concatenate([expected[i] for i in sequences]), rtol=1e-5, atol=1e-5)
    assert model.training  # left as it was


def test_sequences(model: DecoderModel, split: Encoded, expected: list[np.ndarray]) -> None:  # type: ignore[type-arg]
    sums = [losses.sum() for losses in expected]
    np.testing.assert_allclose(sequence_losses(model, split), sums, rtol=1e-5)
    some = sequence_losses(model, split, np.array([8, 2]))
    assert np.flatnonzero(~np.isnan(some)).tolist() == [2, 8]
    np.testing.assert_allclose(some[[2, 8]], [sums[2], sums[8]], rtol=1e-5)


def test_documents(model: DecoderModel, split: Encoded, expected: list[np.ndarray]) -> None:  # type: ignore[type-arg]
    found = document_losses(model, split)
    assert found.names == ("a", "b", "c", "d")  # the one without a prediction says nothing
    for name, loss, tokens, size in zip(
        found.names, *(found[m] for m in ("loss", "tokens", "bytes")), strict=True
    ):
        mine = [i for i, document in enumerate(DOCUMENTS) if split.names[document] == name]
        every = np.concatenate([expected[i] for i in mine])
        assert tokens == len(every)
        assert size == sum(split.bytes[i] for i in mine)
        assert loss == pytest.approx(every.mean(), rel=1e-5)
    whole = np.concatenate(expected)
    assert found.mean("loss", "tokens") == pytest.approx(whole.mean(), rel=1e-5)
    assert found.mean("loss", "tokens") == pytest.approx(mean_loss(model, split), rel=1e-12)
    bits = found.mean("bits_per_byte", "bytes")
    assert bits == pytest.approx(whole.sum() / math.log(2) / split.bytes.sum(), rel=1e-5)


def test_documents_weigh_by_their_tokens(split: Encoded) -> None:
    sums = np.asarray(LENGTHS, dtype=float) * np.arange(10)  # sequence i costs i nats a token
    found = by_document(split, sums)
    assert found["loss"] == pytest.approx(
        (16 / 21, 2.0, (9 * 3 + 12 * 4 + 3 * 5) / 24, (8 * 6 + 16 * 7 + 2 * 8 + 7 * 9) / 33)
    )
    assert found["tokens"] == (21, 1, 24, 33)


def test_the_mean_over_some_sequences_is_over_their_tokens(
    model: DecoderModel,
    split: Encoded,
    expected: list[np.ndarray],  # type: ignore[type-arg]
) -> None:
    some = np.array([1, 2, 9])
    assert mean_loss(model, split, some) == pytest.approx(
        np.concatenate([expected[i] for i in some]).mean(), rel=1e-5
    )


def test_a_sample_is_the_same_for_all_and_about_as_large_as_asked(split: Encoded) -> None:
    chosen = sample_of(split, 30)
    assert np.array_equal(chosen, sample_of(split, 30))
    assert np.array_equal(chosen, np.unique(chosen))
    size = split.targets_per_sequence[chosen].sum()
    assert 30 <= size < 30 + max(LENGTHS)
    assert np.array_equal(sample_of(split, 10**9), np.arange(10))


def test_perplexity() -> None:
    assert perplexity(math.log(50)) == pytest.approx(50)
    assert math.isfinite(perplexity(1e9))


def test_blocks_of_any_length_are_chosen_from_the_same_text() -> None:
    """Else the curve of loss against length would also be one of loss against text."""
    texts = ["abcdefghij" * 7, "b", "hgfedcba" * 9 + "j"]
    documents = [Document(name=str(i), units=(text,)) for i, text in enumerate(texts)]
    vocabulary = Characters().fit(texts)
    cut = {length: Blocks().frame(documents, vocabulary, length) for length in (4, 8, 16)}
    chosen = sample_of(cut[16], 50)
    assert 0 < len(chosen) < cut[16].n_sequences

    def places(length: int) -> set[int]:
        split, ends = cut[length], cut[length].targets_per_sequence.cumsum()
        of = same_text(split, cut[16], chosen)
        return {n for i in of for n in range(ends[i] - split.targets_per_sequence[i], ends[i])}

    assert places(16) == places(8) == places(4) != set(range(cut[16].n_targets))
    assert same_text(cut[16], cut[16], chosen).tolist() == chosen.tolist()
