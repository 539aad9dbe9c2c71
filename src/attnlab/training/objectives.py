"""Objectives: what a model is trained to do, as a sum of losses and the count it is normalised by.

Shapes: N tokens of a flat stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from attnlab.attention import Layout
from attnlab.model import DecoderModel
from attnlab.tokens.batches import Batch
from attnlab.training.head_loss import head_loss

M = TypeVar("M", contravariant=True)


class Objective(Protocol[M]):
    """The summed loss of a model on a batch; dividing by the batch's tokens is the loop's."""

    def __call__(self, model: M, batch: Batch) -> Tensor: ...


@dataclass(frozen=True)
class NextToken:
    """Cross-entropy of every next token."""

    head_dtype: torch.dtype = torch.float32

    def __call__(self, model: DecoderModel, batch: Batch) -> Tensor:
        layout = Layout(batch.lengths_B.tolist())
        hidden_ND = model.hidden(torch.from_numpy(batch.inputs_N), layout)
        targets_N = torch.from_numpy(batch.targets_N)
        return head_loss(hidden_ND, model.head.weight, targets_N, self.head_dtype)
