"""The answers of a tuned model on a split.

Shapes: S texts of a split, C labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from attnlab.adapt.texts import Texts
from attnlab.adapt.tuned import TunedModel
from attnlab.adapt.views import View
from attnlab.evaluation.classified import Classified
from attnlab.tokens.batches import similar_together

Ids = NDArray[np.int64]

_TOKENS = 4096  # padded tokens of a piece


def by_length(texts: Texts) -> Iterator[Ids]:
    """All texts, similar lengths together."""
    return similar_together(texts.lengths, _TOKENS)


@torch.no_grad()
def classified(
    model: TunedModel, view: View, classes: Sequence[str], chosen: Ids | None = None
) -> Classified:
    """In evaluation mode and at full precision, whatever the training's was; all texts, or those chosen."""
    was_training = model.training
    model.eval()
    wanted = np.arange(len(view.texts)) if chosen is None else chosen
    logits_SC = np.empty((len(wanted), len(classes)))
    for places in similar_together(view.texts.lengths[wanted], _TOKENS):
        pieces = view.pieces(wanted[places])
        logits_SC[places] = torch.cat([piece.logits(model) for piece in pieces]).double().cpu().numpy()
    model.train(was_training)
    names = [view.texts.names[row] for row in wanted]
    return Classified.of(names, classes, view.texts.labels[wanted], logits=logits_SC)
