"""The loss of every sequence and document of a split: one function for train, dev and test alike.

Shapes: N tokens of a flat stream, D model width.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnlab.attention import Layout
from attnlab.model import DecoderModel
from attnlab.record import Items, bits_per_byte
from attnlab.tokens.batches import Batch, in_order_of_length
from attnlab.tokens.encoded import Encoded
from attnlab.training.head_loss import head_losses

Losses = NDArray[np.float64]
BATCH_TOKENS = 2048


@torch.inference_mode()
def token_losses(model: DecoderModel, batch: Batch) -> Tensor:
    """(N,) the loss in nats at every place of a batch, in evaluation mode and full precision."""
    was_training = model.training
    model.eval()
    layout = Layout(batch.lengths_B.tolist(), device=model.device)
    hidden_ND = model.hidden(torch.from_numpy(batch.inputs_N).to(model.device), layout)
    losses_N = head_losses(hidden_ND, model.head.weight, torch.from_numpy(batch.targets_N).to(model.device))
    model.train(was_training)
    return losses_N.cpu()


def sequence_losses(
    model: DecoderModel, split: Encoded, sequences: NDArray[np.int64] | None = None
) -> Losses:
    """The summed loss of every sequence; NaN for those not among `sequences`."""
    sums = np.full(split.n_sequences, np.nan)
    for batch in in_order_of_length(split, BATCH_TOKENS, sequences):
        losses_N = token_losses(model, batch).double().numpy()
        sums[batch.sequences_B] = np.add.reduceat(losses_N, batch.lengths_B.cumsum() - batch.lengths_B)
    return sums


def document_losses(model: DecoderModel, split: Encoded) -> Items:
    """The mean loss of every document of a split, its tokens and its bytes."""
    return by_document(split, sequence_losses(model, split))


def by_document(split: Encoded, sums: Losses) -> Items:
    """Sums per sequence, as means per document; in bits per byte too."""
    documents = len(split.names)
    tokens = np.bincount(split.document, split.targets_per_sequence, documents)
    losses = np.bincount(split.document, sums, documents)
    sizes = np.bincount(split.document, split.bytes, documents)
    held = tokens > 0  # a document too short for a single prediction says nothing
    loss, tokens, sizes = losses[held] / tokens[held], tokens[held].astype(int), sizes[held].astype(int)
    rows = zip(loss.tolist(), tokens.tolist(), sizes.tolist(), strict=True)
    return Items(
        names=tuple(name for name, keep in zip(split.names, held, strict=True) if keep),
        values={
            "loss": tuple(loss.tolist()),
            "tokens": tuple(tokens.tolist()),
            "bytes": tuple(sizes.tolist()),
            "bits_per_byte": tuple(bits_per_byte(*row) for row in rows),
        },
    )


def mean_loss(model: DecoderModel, split: Encoded, sequences: NDArray[np.int64] | None = None) -> float:
    """The mean loss per token over a split, or over some of its sequences."""
    sums = sequence_losses(model, split, sequences)
    counted = ~np.isnan(sums)
    return float(sums[counted].sum() / split.targets_per_sequence[counted].sum())


def sample_of(split: Encoded, tokens: int, seed: int = 0) -> NDArray[np.int64]:
    """Sequences, drawn once and for all, of about that many tokens together; all where there are fewer."""
    order = np.random.default_rng([seed, split.n_sequences]).permutation(split.n_sequences)
    enough = np.searchsorted(split.targets_per_sequence[order].cumsum(), tokens) + 1
    chosen: NDArray[np.int64] = np.sort(order[:enough])
    return chosen


def same_text(blocks: Encoded, larger: Encoded, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of the same documents in smaller blocks: those that begin within the chosen ones of the larger."""
    begins = blocks.targets_per_sequence.cumsum() - blocks.targets_per_sequence
    within = np.searchsorted(larger.targets_per_sequence.cumsum(), begins, side="right")
    return np.flatnonzero(np.isin(within, chosen))


def perplexity(loss: float) -> float:
    """e to the loss; finite also where a model has lost its way."""
    return math.exp(min(loss, 700.0))  # e^700 is about the largest number there is
