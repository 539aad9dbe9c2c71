"""A classifier: an encoder, something that stands for the whole sequence, and a small network over it.

Shapes: N real tokens of a flat stream, B sequences, D model width, C labels.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention import Layout
from attnlab.attention.dropout import dropout
from attnlab.model.encoder import Encoder, EncoderModel
from attnlab.model.initial import initialise
from attnlab.model.pool import Mean, Pool
from attnlab.spec import Count, Rate, Spec


class Head(Spec):
    """What is put on an encoder to make a classifier of it."""

    pool: Pool = Mean()
    hidden: Count = 100  # units of the hidden layer; 0: none, a linear head
    dropout: Rate = 0.1  # of what goes into the head


class ClassifierModel(nn.Module):
    """A classifier with its weights, at their initial values for a seed."""

    def __init__(self, encoder: Encoder, head: Head, vocabulary: int, labels: int, seed: int = 0) -> None:
        super().__init__()
        self.head, self.labels = head, labels
        self.encoder = EncoderModel(encoder, vocabulary)
        self.up = nn.Linear(encoder.width, head.hidden) if head.hidden else None
        self.down = nn.Linear(head.hidden or encoder.width, labels)
        initialise(self, seed, layers=encoder.layers)

    @property
    def device(self) -> torch.device:
        """Where its weights are, and where its inputs must be."""
        return self.encoder.device

    def forward(self, tokens_N: Tensor, layout: Layout) -> Tensor:
        """(B, C): the logits of every sequence's label."""
        pooled_BD = self.head.pool(self.encoder.hidden(tokens_N, layout), layout)
        pooled_BD = dropout(pooled_BD, self.head.dropout, self.training)
        if self.up is not None:
            pooled_BD = F.relu(self.up(pooled_BD))
        logits_BC: Tensor = self.down(pooled_BD)
        return logits_BC
