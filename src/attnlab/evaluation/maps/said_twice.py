"""What an induction head is good for: the loss on random tokens, and on the same tokens said again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnlab.evaluation.losses import token_losses
from attnlab.evaluation.maps.probes import Probe
from attnlab.model import DecoderModel
from attnlab.tokens.batches import Batch


def said_twice(model: DecoderModel, probes: Sequence[Probe]) -> dict[str, float]:
    """The mean loss over the first time and over the second. The first token of the second time is left out:
    nothing tells that the passage begins anew."""
    first, again = [], []
    for probe in probes:
        ids = np.asarray(probe.ids, dtype=np.int64)
        batch = Batch(ids[:-1], ids[1:], np.array([len(ids) - 1]), np.array([0]))
        losses = token_losses(model, batch).double().numpy()
        first.append(losses[: probe.passage].mean())
        again.append(losses[probe.passage + 1 :].mean())
    return {"first": float(np.mean(first)), "again": float(np.mean(again))}
