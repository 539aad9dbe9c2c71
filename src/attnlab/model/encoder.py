"""A bidirectional encoder: a trunk in which every token sees every other.

Shapes: N real tokens of a flat stream, M of them masked, D model width, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.attention import Attention, Everything, Layout, Mixer
from attnlab.model.initial import initialise
from attnlab.model.trunk import Stack, Trunk
from attnlab.spec import Positive


class Encoder(Stack):
    """The sizes and parts of an encoder. The defaults are a small one for single sentences."""

    layers: Positive = 4
    heads: Positive = 2
    width: Positive = 64
    context: Positive = 32
    mixer: Mixer = Attention(mask=Everything())


class EncoderModel(Trunk):
    """An encoder with its weights."""

    def __init__(self, spec: Encoder, vocabulary: int) -> None:
        super().__init__(spec, vocabulary)
        self.spec = spec


class MaskedModel(nn.Module):
    """An encoder that fills in masked tokens. Its head is the embedding itself, which has one row more than
    the vocabulary: the mask."""

    def __init__(self, spec: Encoder, vocabulary: int, seed: int = 0) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.encoder = EncoderModel(spec, vocabulary + 1)
        initialise(self, seed, layers=spec.layers)

    @property
    def mask(self) -> int:
        """The id that stands for a masked token."""
        return self.vocabulary

    @property
    def device(self) -> torch.device:
        """Where its weights are, and where its inputs must be."""
        return self.encoder.device

    @property
    def words_VD(self) -> Tensor:
        """The head: the embedding without the mask, which is never an answer."""
        return self.encoder.embedding.weight[: self.vocabulary]

    def forward(self, tokens_N: Tensor, layout: Layout, places_M: Tensor) -> Tensor:
        """(M, D): what the head is put on, at the hidden places of a stream."""
        hidden_ND: Tensor = self.encoder.hidden(tokens_N, layout)
        return hidden_ND[places_M]
