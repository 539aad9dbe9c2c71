"""A decoder language model: a trunk, and a head over the vocabulary.

Shapes: B batch, T tokens, N real tokens of a flat stream, D model width, V vocabulary.
"""

from __future__ import annotations

from torch import Tensor, nn

from attnlab.attention import Layout, State
from attnlab.model.initial import initialise
from attnlab.model.trunk import Stack, Trunk


class Decoder(Stack):
    """The sizes and parts of a decoder. The defaults are minGPT's smallest configuration."""

    tied: bool = False

    def build(self, vocabulary: int, seed: int = 0) -> DecoderModel:
        """The model with its initial values for a seed."""
        model = DecoderModel(self, vocabulary)
        initialise(model, seed, layers=self.layers)
        return model


class DecoderModel(Trunk):
    """A decoder with its weights."""

    def __init__(self, spec: Decoder, vocabulary: int) -> None:
        super().__init__(spec, vocabulary)
        self.spec = spec
        self.head = nn.Linear(spec.width, vocabulary, bias=False)
        if spec.tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """Logits (B, T, V) of the token after each position."""
        layout = Layout([tokens_BT.shape[1]] * tokens_BT.shape[0], device=tokens_BT.device)
        hidden_ND = self.hidden(tokens_BT.reshape(-1), layout)
        logits: Tensor = self.head(hidden_ND).unflatten(0, tokens_BT.shape)
        return logits

    def begin(self) -> list[State]:
        """The decoding state of every layer, before the first token."""
        return [block.mixer.begin() for block in self.blocks]
