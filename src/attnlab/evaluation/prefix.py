"""The loss a model has when the future really is absent.

A causal language model is scored on whole sentences at once, on the promise that no prediction looks ahead.
Here every prediction is made from nothing but its prefix. Where the two figures differ, the promise is
broken, and the ordinary perplexity is not one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from attnlab.attention import Layout
from attnlab.evaluation.losses import perplexity, token_losses
from attnlab.model import DecoderModel
from attnlab.record import Check
from attnlab.tokens.batches import Batch, take
from attnlab.tokens.encoded import Encoded
from attnlab.training.head_loss import head_losses

# Nats per token. Rounding in fp32 moves single losses by about 1e-5; a leak worth having moves the mean by
# a hundred times this or more.
TOLERANCE = 1e-3
_ROWS = 256  # prefixes worked through at once


@dataclass(frozen=True)
class PrefixScore:
    """The two losses on the same predictions."""

    ordinary_loss: float
    prefix_loss: float
    predictions: int
    largest_difference: float  # of a single prediction

    @property
    def check(self) -> Check:
        """Whether the ordinary loss can be believed."""
        honest = self.largest_difference <= TOLERANCE
        evidence = (
            f"perplexity {perplexity(self.ordinary_loss):.1f} with whole sentences and "
            f"{perplexity(self.prefix_loss):.1f} with prefixes only, on the same {self.predictions:,} "
            f"predictions; the largest difference of one is {self.largest_difference:.2g} nats"
        )
        return Check("prefix-only", "pass" if honest else "fail", evidence, self.plain())

    def plain(self) -> dict[str, float]:
        return {
            "ordinary_loss": self.ordinary_loss,
            "prefix_loss": self.prefix_loss,
            "predictions": self.predictions,
            "largest_difference": self.largest_difference,
            "tolerance": TOLERANCE,
        }


def prefix_score(model: DecoderModel, split: Encoded, sequences: NDArray[np.int64]) -> PrefixScore:
    """Score some sequences both ways."""
    batch = take(split, sequences)
    ordinary_N = token_losses(model, batch).double()
    prefix_N = prefix_losses(model, batch).double()
    return PrefixScore(
        ordinary_loss=ordinary_N.mean().item(),
        prefix_loss=prefix_N.mean().item(),
        predictions=len(ordinary_N),
        largest_difference=(ordinary_N - prefix_N).abs().max().item(),
    )


@torch.inference_mode()
def prefix_losses(model: DecoderModel, batch: Batch) -> torch.Tensor:
    """(N,) the loss at every place of a batch, each predicted from its own prefix alone."""
    was_training = model.training
    model.eval()
    starts_N = np.repeat(batch.lengths_B.cumsum() - batch.lengths_B, batch.lengths_B)
    prefix_lengths = np.arange(batch.tokens) - starts_N + 1
    losses = torch.empty(batch.tokens)
    # Prefixes of similar length together, so that little is spent on padding.
    order = np.argsort(prefix_lengths, kind="stable")
    for places in np.array_split(order, math.ceil(len(order) / _ROWS)):
        lengths = prefix_lengths[places]
        tokens = np.concatenate(
            [batch.inputs_N[p - n + 1 : p + 1] for p, n in zip(places, lengths, strict=True)]
        )
        layout = Layout(lengths.tolist(), device=model.device)
        hidden = model.hidden(torch.from_numpy(tokens).to(model.device), layout)[layout.last_B]
        targets = torch.from_numpy(batch.targets_N[places]).to(model.device)
        losses[places] = head_losses(hidden, model.head.weight, targets).cpu()
    model.train(was_training)
    return losses
