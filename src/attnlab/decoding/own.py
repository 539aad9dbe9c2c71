"""Our own decoders as writers.

Shapes: B continuations, T tokens, D width, V vocabulary.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from torch import Tensor

from attnlab.attention import Layout
from attnlab.decoding.compiled import CompiledReading, kernel, not_compiled_because
from attnlab.decoding.writer import Reading
from attnlab.model import DecoderModel
from attnlab.tokens import Vocabulary


class OwnWriter:
    """A decoder and the vocabulary it was trained with."""

    def __init__(self, model: DecoderModel, vocabulary: Vocabulary, name: str = "the model") -> None:
        self.model, self.vocabulary, self.name = model, vocabulary, name
        self.size = vocabulary.size
        self.longest: int | None = model.spec.context
        self.stops = frozenset([vocabulary.stop])
        self.never: tuple[int, ...] = (vocabulary.start,)

    def begin(self, *, vectors: bool = False) -> Reading:
        if not_compiled_because(self.model) is None and kernel() is not None:
            return CompiledReading(self.model)
        return StatefulReading(self.model)

    def logits(self, tokens_BT: Tensor) -> Tensor:
        with _at_rest(self.model):
            logits: Tensor = self.model(tokens_BT.to(self.model.device))
        return logits.cpu()

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.start, *self.vocabulary.encode(text)]

    def decode(self, tokens: Sequence[int]) -> str:
        return self.vocabulary.decode(tokens)

    def piece(self, token: int) -> str:
        return self.vocabulary.piece(token)


class StatefulReading:
    """Any decoder of ours, by the decoding states of its mixers: a new token costs one step, and not the
    whole text again."""

    def __init__(self, model: DecoderModel) -> None:
        self.model, self.states, self.seen = model, model.begin(), 0

    def read(self, tokens_BT: Tensor) -> Tensor:
        B, T = tokens_BT.shape
        layout = Layout([T] * B, offset=self.seen, device=self.model.device)
        with _at_rest(self.model):
            hidden_ND = self.model.hidden(tokens_BT.to(self.model.device).reshape(-1), layout, self.states)
        self.seen += T
        vectors_BTD = hidden_ND.unflatten(0, (B, T))
        logits_BV: Tensor = self.model.head(vectors_BTD[:, -1])
        # Tokens are chosen on the processor, wherever the model is: the same seed gives the same text.
        self.vectors_BTD = vectors_BTD.cpu()
        return logits_BV.cpu()

    def keep(self, rows_B: Tensor) -> None:
        for state in self.states:
            state.keep(rows_B.to(self.model.device))


@contextlib.contextmanager
def _at_rest(model: DecoderModel) -> Iterator[None]:
    """Without dropout, and afterwards as it was."""
    if not model.training:
        yield
        return
    model.eval()
    try:
        yield
    finally:
        model.train()
