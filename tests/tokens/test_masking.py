"""Which words are hidden: as often as asked, as transformers does, anew each epoch, and never a mark."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import BertTokenizerFast, DataCollatorForLanguageModeling

from attnlab.errors import DeclarationError
from attnlab.tokens.masking import MaskedBatch, MaskedBatches, MaskedSplit, Masking

WORDS = 60  # ids 0, 1: marks; 2: unknown; 60: the mask


@dataclass(frozen=True, eq=False)
class Sequences:
    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    unknown: int | None = 2


def sequences(lengths: list[int], seed: int = 0) -> Sequences:
    """`<START> words <STOP>`, some of the words unknown."""
    rng = np.random.default_rng(seed)
    rows = [[0, *rng.integers(2, WORDS, n).tolist(), 1] for n in lengths]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return Sequences(np.concatenate(rows).astype(np.int32), starts)


LONG = sequences([40] * 500)


def all_of(split: MaskedSplit, seed: int = 0, epoch: int = 0) -> MaskedBatch:
    return split.take(split.kept, seed, epoch)


@pytest.mark.parametrize(("masked", "random"), [(0.8, 0.1), (1.0, 0.0)])
def test_shares_are_those_asked_for_and_the_collators(masked: float, random: float) -> None:
    split = MaskedSplit(LONG, Masking(rate=0.15, masked=masked, random=random), WORDS)
    batch = all_of(split)
    words = int(split.is_word_N.sum())
    hidden = batch.inputs_N[batch.places_M]
    ours = [
        batch.targets / words,
        (hidden == WORDS).mean(),
        (hidden == batch.targets_M).mean(),
    ]
    vocabulary = {
        "[CLS]": 0,
        "[SEP]": 1,
        "[UNK]": 2,
        **{f"w{i}": i for i in range(3, WORDS)},
        "[MASK]": WORDS,
    }
    tokenizer = BertTokenizerFast(vocab={**vocabulary, "[PAD]": WORDS + 1})
    torch.manual_seed(0)
    collate = DataCollatorForLanguageModeling(
        tokenizer, mlm_probability=0.15, mask_replace_prob=masked, random_replace_prob=random
    )
    rows = [LONG.ids[a:b].tolist() for a, b in zip(LONG.starts, LONG.starts[1:], strict=False)]
    theirs = collate([{"input_ids": row} for row in rows])
    where = theirs["labels"] != -100
    theirs_hidden = theirs["input_ids"][where]
    reference = [
        where.sum().item() / words,
        (theirs_hidden == WORDS).float().mean().item(),
        (theirs_hidden == theirs["labels"][where]).float().mean().item(),
    ]
    # 3,000 of 20,000 words are hidden: shares of them scatter by less than 0.01.
    assert ours == pytest.approx(reference, abs=0.03)
    assert ours == pytest.approx([0.15, masked, 1 - masked - random + random / 57], abs=0.03)


def test_targets_are_the_words_that_were_there_and_nothing_else_is_touched() -> None:
    split = MaskedSplit(LONG, Masking(rate=0.3), WORDS)
    batch = all_of(split)
    assert np.array_equal(batch.targets_M, LONG.ids[batch.places_M])
    assert (batch.targets_M > 2).all()  # neither marks nor what is unknown
    elsewhere = np.setdiff1d(np.arange(batch.tokens), batch.places_M)
    assert np.array_equal(batch.inputs_N[elsewhere], LONG.ids[elsewhere])
    swapped = batch.inputs_N[batch.places_M]
    assert ((swapped > 2) & (swapped <= WORDS)).all()


def test_every_epoch_and_seed_hides_other_places_and_the_same_ones_again() -> None:
    split = MaskedSplit(LONG, Masking(), WORDS)
    places = {(s, e): all_of(split, s, e).places_M.tolist() for s in (0, 1) for e in (0, 1)}
    assert len({tuple(p) for p in places.values()}) == 4
    fresh = MaskedSplit(LONG, Masking(), WORDS)
    assert all_of(fresh, 1, 1).places_M.tolist() == places[1, 1]


def test_held_out_text_is_always_hidden_in_one_way() -> None:
    split = MaskedSplit(sequences([3, 9, 30, 4]), Masking(), WORDS)
    one, other = (
        [
            (b.inputs_N.tolist(), b.places_M.tolist())
            for b in MaskedSplit(split.stream, Masking(), WORDS).held_out(40)
        ]
        for _ in range(2)
    )
    assert one == other
    assert sum(len(inputs) for inputs, _ in one) == 46 + 8


def test_a_short_sequence_has_a_hidden_word_and_one_without_words_is_left_out() -> None:
    stream = sequences([1, 0, 2, 1], seed=3)
    stream.ids[stream.ids == 2] = 5
    split = MaskedSplit(stream, Masking(rate=0.01), WORDS)
    assert split.kept.tolist() == [0, 2, 3]
    batch = all_of(split)
    assert batch.targets == 3
    batches = MaskedBatches(split, 2, seed=0)
    assert batches.per_epoch == 2
    assert [batches[step].targets for step in (0, 1)] == [2, 1]


def test_pieces_of_a_batch_are_the_batch() -> None:
    split = MaskedSplit(LONG, Masking(), WORDS)
    batch = split.take(np.array([3, 7, 1]), seed=0)
    pieces = list(batch.split(2))
    assert sum(piece.targets for piece in pieces) == batch.targets
    assert np.array_equal(
        np.concatenate([p.inputs_N[p.places_M] for p in pieces]), batch.inputs_N[batch.places_M]
    )
    assert np.array_equal(np.concatenate([p.targets_M for p in pieces]), batch.targets_M)


def test_shares_above_one_are_refused() -> None:
    with pytest.raises(DeclarationError, match="together no more than 1"):
        Masking(masked=0.9, random=0.2)
