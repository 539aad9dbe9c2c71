"""Byte-level byte-pair encoding: nothing is ever unknown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field

from attnlab.errors import CorpusError
from attnlab.spec import Positive
from attnlab.tokens.base import Tokenizer
from attnlab.tokens.vocabulary import START, STOP, Vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Encoder

_OURS = 2  # start and stop come before the ids of the encoder


@dataclass(frozen=True, kw_only=True)
class Bpe(Tokenizer):
    """Byte pairs merged by how often they occur in training, until there are `size` ids."""

    size: Annotated[int, Field(ge=256 + _OURS)] = 8192  # the 256 bytes, start and stop among them
    minimum: Positive = 2  # how often a pair must occur to be merged

    def fit(self, units: Iterable[str]) -> Vocabulary:
        from tokenizers import Tokenizer as Encoder
        from tokenizers import models, pre_tokenizers, trainers

        encoder = Encoder(models.BPE())
        encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        # The special ids are kept outside of the encoder, so that no text can spell them.
        trainer = trainers.BpeTrainer(
            vocab_size=self.size - _OURS,
            min_frequency=self.minimum,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            special_tokens=[],
            show_progress=False,
        )
        texts = list(units)
        if not any(text.strip() for text in texts):
            raise CorpusError("the vocabulary would be empty: there is no text in the training split")
        encoder.train_from_iterator(texts, trainer)
        return BpeVocabulary(json.dumps(json.loads(encoder.to_str()), ensure_ascii=False))


@dataclass(frozen=True)
class BpeVocabulary(Vocabulary, kind="bpe"):
    """Ids 2 and up are the encoder's, in its order."""

    encoder: str  # as the package `tokenizers` writes it

    @property
    def size(self) -> int:
        return int(self._encoder.get_vocab_size()) + _OURS

    def encode(self, unit: str) -> list[int]:
        return [id + _OURS for id in self._encoder.encode(unit, add_special_tokens=False).ids]

    def ends(self, unit: str) -> list[int]:
        # In the byte-level alphabet a token has one character for every byte.
        ends, total = [], 0
        for token in self._encoder.encode(unit, add_special_tokens=False).tokens:
            total += len(token)
            ends.append(total)
        return ends

    def text(self, ids: Sequence[int]) -> str:
        return str(self._encoder.decode([id - _OURS for id in ids], skip_special_tokens=False))

    def piece(self, id: int) -> str:
        if id < _OURS:
            return (START, STOP)[id]
        token = str(self._encoder.id_to_token(id - _OURS))
        text = self.text([id])
        # Part of a character of several bytes is shown in the byte-level alphabet.
        return token if "\ufffd" in text else text.replace(" ", "␣").replace("\n", "⏎")

    def plain(self) -> dict[str, Any]:
        return {"encoder": json.loads(self.encoder)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        return cls(json.dumps(plain["encoder"], ensure_ascii=False))

    @cached_property
    def _encoder(self) -> Encoder:
        from tokenizers import Tokenizer, decoders

        encoder = Tokenizer.from_str(self.encoder)
        encoder.decoder = decoders.ByteLevel()
        return encoder
