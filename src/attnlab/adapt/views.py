"""A split as a model is given it: texts side by side, or what a frozen body once made of them.

Shapes: B texts, T tokens of the longest of them, D model width, C labels, S texts of a split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnlab.adapt.texts import Texts
from attnlab.attention.layout import cheapest_stretches

Ids = NDArray[np.int64]

# What a stretch costs by itself, in padded tokens: its operations are as many as a large one's.
_STRETCH = 100


class Tuned(Protocol):
    """What a piece needs of a model."""

    def answer(self, ids_BT: Tensor, mask_BT: Tensor, segments_BT: Tensor | None) -> Tensor:
        """(B, C) logits of texts filled up to one length."""

    def answer_from(self, features_BD: Tensor) -> Tensor:
        """(B, C) logits of what a frozen body made of texts."""

    @property
    def device(self) -> torch.device: ...


class Piece(Protocol):
    """Some texts that go through a model at once."""

    @property
    def labels_B(self) -> Tensor: ...

    def logits(self, model: Tuned) -> Tensor:
        """(B, C)."""


class View(Protocol):
    """A split, piece by piece."""

    @property
    def texts(self) -> Texts: ...

    def pieces(self, rows: Ids) -> list[Piece]:
        """The given texts, which come in order of length, in as few pieces as is quick."""


@dataclass(frozen=True, eq=False)
class TextPiece:
    ids_BT: Tensor
    mask_BT: Tensor
    segments_BT: Tensor | None
    labels_B: Tensor

    def logits(self, model: Tuned) -> Tensor:
        segments_BT = None if self.segments_BT is None else self.segments_BT.to(model.device)
        return model.answer(self.ids_BT.to(model.device), self.mask_BT.to(model.device), segments_BT)


@dataclass(frozen=True, eq=False)
class TextView:
    """Texts of similar length side by side, the shorter ones filled up on the right."""

    texts: Texts
    padding: int

    def pieces(self, rows: Ids) -> list[Piece]:
        lengths = self.texts.lengths[rows]
        return [self.piece(rows[first:last]) for first, last in stretches(lengths.tolist())]

    def piece(self, rows: Ids) -> TextPiece:
        ids = [self.texts.ids[row] for row in rows]
        segments = None if self.texts.segments is None else [self.texts.segments[row] for row in rows]
        return TextPiece(
            side_by_side(ids, self.padding),
            side_by_side([np.ones_like(row) for row in ids], 0),
            None if segments is None else side_by_side(segments, 0),
            torch.from_numpy(self.texts.labels[rows]),
        )


@dataclass(frozen=True, eq=False)
class FeaturePiece:
    features_BD: Tensor
    labels_B: Tensor

    def logits(self, model: Tuned) -> Tensor:
        return model.answer_from(self.features_BD.to(model.device))


@dataclass(frozen=True, eq=False)
class FeatureView:
    """What a frozen body makes of every text, worked out once."""

    texts: Texts
    features_SD: Tensor

    def pieces(self, rows: Ids) -> list[Piece]:
        return [
            FeaturePiece(self.features_SD[torch.from_numpy(rows)], self._labels_S[torch.from_numpy(rows)])
        ]

    @cached_property
    def _labels_S(self) -> Tensor:
        return torch.from_numpy(self.texts.labels)


def side_by_side(rows: Sequence[Ids], padding: int) -> Tensor:
    """(B, T): rows filled up on the right to the longest of them."""
    filled_BT = torch.full((len(rows), max(map(len, rows))), padding, dtype=torch.long)
    for row_T, ids in zip(filled_BT, rows, strict=True):
        row_T[: len(ids)] = torch.from_numpy(ids)
    return filled_BT


def stretches(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Where to cut texts in order of length so that the places they are filled up to are fewest."""
    return cheapest_stretches(lengths, power=1, each=_STRETCH)
