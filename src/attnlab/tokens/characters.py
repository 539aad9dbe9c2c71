"""Character level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from attnlab.errors import CorpusError
from attnlab.spec import Positive
from attnlab.tokens.base import Tokenizer
from attnlab.tokens.vocabulary import START, STOP, UNKNOWN, Vocabulary

_SHOWN = {" ": "␣", "\n": "⏎", "\t": "⇥"}


@dataclass(frozen=True, kw_only=True)
class Characters(Tokenizer):
    """Characters (Unicode code points); those seen fewer than `minimum` times in training become `<UNK>`."""

    minimum: Positive = 1

    def fit(self, units: Iterable[str]) -> Vocabulary:
        seen: Counter[str] = Counter()
        for unit in units:
            seen.update(unit)
        frequent = sorted((c for c, n in seen.items() if n >= self.minimum), key=lambda c: (-seen[c], c))
        if not frequent:
            raise CorpusError(
                f"the vocabulary would be empty: no character occurs {self.minimum} times in training"
            )
        return CharacterVocabulary("".join(frequent))


@dataclass(frozen=True)
class CharacterVocabulary(Vocabulary, kind="characters"):
    """Ids 3 and up are characters, the most frequent first."""

    characters: str
    unknown = 2

    @property
    def size(self) -> int:
        return len(self.characters) + 3

    def encode(self, unit: str) -> list[int]:
        ids, unknown = self._ids, self.unknown
        return [ids.get(c, unknown) for c in unit]

    def ends(self, unit: str) -> list[int]:
        if unit.isascii():
            return list(range(1, len(unit) + 1))
        ends, total = [], 0
        for character in unit:
            total += len(character.encode())
            ends.append(total)
        return ends

    def text(self, ids: Sequence[int]) -> str:
        return "".join(self.characters[id - 3] if id >= 3 else UNKNOWN for id in ids)

    def piece(self, id: int) -> str:
        if id < 3:
            return (START, STOP, UNKNOWN)[id]
        character = self.characters[id - 3]
        return _SHOWN.get(character, character)

    def plain(self) -> dict[str, Any]:
        return {"characters": self.characters}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        return cls(plain["characters"])

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {character: i for i, character in enumerate(self.characters, start=3)}
