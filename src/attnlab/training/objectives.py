"""Objectives: what a model is trained to do, as a sum of losses and the count it is normalised by.

Shapes: N tokens of a flat stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from attnlab.attention import Layout
from attnlab.model import DecoderModel
from attnlab.tokens.batches import Batch
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
