"""Texts in batches, the same ones in the same order for every arm of a seed; and the objective on them.

Shapes: B texts, C labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from attnlab.adapt.tuned import TunedModel
from attnlab.adapt.views import View
from attnlab.tokens.batches import drawn

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TextBatch:
    """Some texts of a split, in order of length."""

    view: View
    rows_B: Ids

    @property
    def tokens(self) -> int:
        return int(self.view.texts.lengths[self.rows_B].sum())

    @property
    def targets(self) -> int:
        return len(self.rows_B)

    def split(self, pieces: int) -> Iterator[TextBatch]:
        """The same texts in at most `pieces` smaller batches."""
        for rows in np.array_split(self.rows_B, min(pieces, len(self.rows_B))):
            yield TextBatch(self.view, rows)


@dataclass(frozen=True, eq=False)
class TextBatches:
    """Every step's batch; each epoch runs through all texts in a new order."""

    view: View
    size: int
    seed: int

    @property
    def per_epoch(self) -> int:
        return -(-len(self.view.texts) // self.size)

    def __getitem__(self, step: int) -> TextBatch:
        return TextBatch(self.view, drawn(self._starts, self.size, self.seed, step))

    @cached_property
    def _starts(self) -> Ids:
        return np.concatenate([[0], self.view.texts.lengths.cumsum()])


@dataclass(frozen=True)
class TextLabel:
    """Cross-entropy of every text's label. `products` is the type in which matrices are multiplied; sums,
    norms and the loss stay in fp32."""

    products: torch.dtype = torch.float32

    def __call__(self, model: TunedModel, batch: TextBatch) -> Tensor:
        low = self.products == torch.bfloat16
        losses = []
        with torch.autocast(model.device.type, self.products) if low else nullcontext():
            for piece in batch.view.pieces(batch.rows_B):
                logits_BC = piece.logits(model)
                logits_BC = logits_BC.float() if low else logits_BC
                labels_B = piece.labels_B.to(model.device)
                losses.append(F.cross_entropy(logits_BC, labels_B, reduction="sum"))
        return torch.stack(losses).sum()
