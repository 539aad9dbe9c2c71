"""What a tokenizer becomes once it has seen the training split: a fixed map between text and ids."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from attnlab.errors import StoreError, unknown

START, STOP, UNKNOWN = "<START>", "<STOP>", "<UNK>"


class Vocabulary(ABC):
    """Immutable. Ids 0 and 1 start and stop a sequence; no text is ever encoded as one of them."""

    kinds: ClassVar[dict[str, type[Vocabulary]]] = {}
    kind: ClassVar[str]
    start: int = 0
    stop: int = 1
    unknown: int | None = None

    def __init_subclass__(cls, kind: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if kind is not None:
            cls.kind, Vocabulary.kinds[kind] = kind, cls

    @property
    @abstractmethod
    def size(self) -> int:
        """How many ids there are, the special ones among them."""

    @abstractmethod
    def encode(self, unit: str) -> list[int]:
        """The ids of a text, without start and stop."""

    @abstractmethod
    def ends(self, unit: str) -> list[int]:
        """For every id that `encode` gives: how many UTF-8 bytes of the text end with it.

        A space counts with the token after it, one at the very end with the last.
        """

    @abstractmethod
    def text(self, ids: Sequence[int]) -> str:
        """Readable text of ids that are neither start nor stop."""

    @abstractmethod
    def piece(self, id: int) -> str:
        """One token as a picture shows it."""

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """Everything `from_plain` needs, as plain data."""

    @classmethod
    @abstractmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The vocabulary that `plain` was made of."""

    def decode(self, ids: Sequence[int]) -> str:
        """Readable text: start is left out, a stop between two texts is a line break."""
        parts: list[list[int]] = [[]]
        for id in ids:
            if id == self.stop:
                parts.append([])
            elif id != self.start:
                parts[-1].append(int(id))
        return "\n".join(self.text(part) for part in parts if part)

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind, **self.plain()}, ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Vocabulary:
        plain = json.loads(text)
        kind = plain.pop("kind", None)
        if kind not in Vocabulary.kinds:
            raise StoreError(unknown("kind of vocabulary", kind, Vocabulary.kinds))
        return Vocabulary.kinds[kind].from_plain(plain)

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that are equal for equal vocabularies."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]
