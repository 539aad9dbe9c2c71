"""Objectives: what a model is trained to do, as a sum of losses and the count it is normalised by.

Shapes: N tokens of a flat stream, M of them masked, B sequences, C labels, D model width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.attention import Layout
from attnlab.model import ClassifierModel, DecoderModel, MaskedModel
from attnlab.tokens.batches import Batch
from attnlab.tokens.examples import ExampleBatch
from attnlab.tokens.masking import MaskedBatch
from attnlab.training.head_loss import head_loss


class Work(Protocol):
    """One step's worth of examples, whatever they are."""

    @property
    def tokens(self) -> int:
        """How many go through the model."""

    @property
    def targets(self) -> int:
        """How many losses the objective adds up."""

    def split(self, pieces: int) -> Iterator[Self]:
        """The same examples in at most `pieces` smaller batches."""


M = TypeVar("M", contravariant=True)
W = TypeVar("W", bound=Work, contravariant=True)


class Objective(Protocol[M, W]):
    """The summed loss of a model on a batch; dividing by the batch's targets is the loop's."""

    def __call__(self, model: M, batch: W) -> Tensor: ...


@dataclass(frozen=True)
class NextToken:
    """Cross-entropy of every next token."""

    head_dtype: torch.dtype = torch.float32

    def __call__(self, model: DecoderModel, batch: Batch) -> Tensor:
        layout = Layout(batch.lengths_B.tolist(), device=model.device)
        hidden_ND = model.hidden(torch.from_numpy(batch.inputs_N).to(model.device), layout)
        targets_N = torch.from_numpy(batch.targets_N).to(model.device)
        return head_loss(hidden_ND, model.head.weight, targets_N, self.head_dtype)


@dataclass(frozen=True)
class Label:
    """Cross-entropy of every sequence's label."""

    def __call__(self, model: ClassifierModel, batch: ExampleBatch) -> Tensor:
        layout = Layout(batch.lengths_B.tolist(), device=model.device)
        logits_BC = model(torch.from_numpy(batch.tokens_N).to(model.device), layout)
        return F.cross_entropy(logits_BC, torch.from_numpy(batch.labels_B).to(model.device), reduction="sum")


@dataclass(frozen=True)
class MaskedTokens:
    """Cross-entropy of what was hidden, at the hidden places and nowhere else."""

    head_dtype: torch.dtype = torch.float32

    def __call__(self, model: MaskedModel, batch: MaskedBatch) -> Tensor:
        layout = Layout(batch.lengths_B.tolist(), device=model.device)
        inputs_N, places_M, targets_M = (
            torch.from_numpy(ids).to(model.device)
            for ids in (batch.inputs_N, batch.places_M, batch.targets_M)
        )
        hidden_MD = model(inputs_N, layout, places_M)
        return head_loss(hidden_MD, model.words_VD, targets_M, self.head_dtype)
