"""How well an encoder fills in what is hidden: on held-out text, hidden in the one way that never changes.

Shapes: M masked places, B sequences, S sequences of a split, D documents, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from attnlab.attention import Layout
from attnlab.model import MaskedModel
from attnlab.tokens.masking import MaskedSplit
from attnlab.training.head_loss import head_losses

_BATCH_TOKENS = 4096


@dataclass(frozen=True)
class MaskedScore:
    """Over all hidden places: the mean loss in nats, and the share that is filled in right."""

    loss: float
    accuracy: float
    places: int

    def metrics(self, name: str) -> dict[str, float]:
        return {f"{name}_loss": self.loss, f"{name}_accuracy": self.accuracy}


@torch.inference_mode()
def masked_score(model: MaskedModel, split: MaskedSplit) -> MaskedScore:
    """On everything in a split, in evaluation mode and full precision."""
    was_training = model.training
    model.eval()
    loss, right, places = 0.0, 0, 0
    for batch in split.held_out(_BATCH_TOKENS):
        layout = Layout(batch.lengths_B.tolist(), device=model.device)
        inputs_N, places_M, targets_M = (
            torch.from_numpy(ids).to(model.device)
            for ids in (batch.inputs_N, batch.places_M, batch.targets_M)
        )
        hidden_MD = model(inputs_N, layout, places_M)
        loss += head_losses(hidden_MD, model.words_VD, targets_M).double().sum().item()
        right += int(((hidden_MD @ model.words_VD.T).argmax(-1) == targets_M).sum())
        places += len(targets_M)
    model.train(was_training)
    return MaskedScore(loss / places, right / places, places)


def most_frequent(train: MaskedSplit, held_out: MaskedSplit) -> MaskedScore:
    """What knowing nothing but how frequent each word is gives, at the same hidden places."""
    words = train.stream.ids[train.is_word_N]
    counts_V = np.bincount(words, minlength=train.mask).astype(np.float64)
    targets: NDArray[np.int64] = np.concatenate([b.targets_M for b in held_out.held_out(_BATCH_TOKENS)])
    logs_V = np.log((counts_V + 1) / (counts_V + 1).sum())
    return MaskedScore(
        float(-logs_V[targets].mean()), float((targets == counts_V.argmax()).mean()), len(targets)
    )
