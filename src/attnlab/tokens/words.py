"""Word level: every word of the training split that is frequent enough, and one id for all others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Literal, Self

from attnlab.errors import CorpusError
from attnlab.spec import Positive
from attnlab.tokens.base import Tokenizer
from attnlab.tokens.spacing import join
from attnlab.tokens.vocabulary import START, STOP, UNKNOWN, Vocabulary

Split = Literal["punctuation", "space"]

_TOKENS: dict[Split, re.Pattern[str]] = {
    "space": re.compile(r"\S+"),
    "punctuation": re.compile(
        r"""
          (?:[^\W\d_]\.){2,}                          # U.S., a.m.
        | \d+(?:[.,:]\d+)+                            # 1,000.50 and 12:30
        | ['’](?:s|re|ve|ll|d|m)\b                    # the end of a possessive or a contraction
        | [^\W_]+(?:(?:-|['’](?!(?:s|re|ve|ll|d|m)\b))[^\W_]+)*  # words, well-known and o'clock among them
        | -{2,} | \.{2,} | _+                         # dashes, dots and rules
        | [^\w\s]                                     # any other mark by itself
        """,
        re.VERBOSE | re.IGNORECASE,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Words(Tokenizer):
    """Words; those seen fewer than `minimum` times in training become `<UNK>`."""

    minimum: Positive = 4  # with the default corpus: a vocabulary of 13,669
    maximum: Positive | None = None  # keep at most so many, the most frequent ones
    lowercase: bool = False
    split: Split = "punctuation"  # "space" for text that is already in tokens

    def fit(self, units: Iterable[str]) -> Vocabulary:
        find = _TOKENS[self.split].findall
        seen: Counter[str] = Counter()
        for unit in units:
            seen.update(find(unit.lower() if self.lowercase else unit))
        # A text may itself hold the spelling of a special token; that is never a word.
        for special in (START, STOP, UNKNOWN):
            seen.pop(special, None)
        frequent = [(word, n) for word, n in seen.items() if n >= self.minimum]
        if not frequent:
            most = max(seen.values(), default=0)
            raise CorpusError(
                f"the vocabulary would be empty: no word occurs {self.minimum} times in the training split "
                f"({len(seen)} distinct words, the most frequent occurs {most} times); "
                "lower `minimum`, or give more text"
            )
        frequent.sort(key=lambda item: (-item[1], item[0]))
        return WordVocabulary(tuple(word for word, _ in frequent[: self.maximum]), self.lowercase, self.split)


@dataclass(frozen=True)
class WordVocabulary(Vocabulary, kind="words"):
    """Ids 3 and up are words, the most frequent first."""

    words: tuple[str, ...]
    lowercase: bool
    split: Split
    unknown = 2

    @property
    def size(self) -> int:
        return len(self.words) + 3

    def encode(self, unit: str) -> list[int]:
        ids, unknown = self._ids, self.unknown
        return [ids.get(t, unknown) for t in _TOKENS[self.split].findall(self._cased(unit))]

    def ends(self, unit: str) -> list[int]:
        cased, total = self._cased(unit), len(unit.encode())
        ends = [match.end() for match in _TOKENS[self.split].finditer(cased)]
        if not cased.isascii():
            sizes = (len(cased[a:b].encode()) for a, b in pairwise([0, *ends]))
            # A few letters have a lower case of another length, so the sum may be off by some bytes.
            ends = [min(end, total) for end in accumulate(sizes)]
        return [*ends[:-1], total] if ends else []

    def text(self, ids: Sequence[int]) -> str:
        return join(self.piece(id) for id in ids)

    def piece(self, id: int) -> str:
        return self.words[id - 3] if id >= 3 else (START, STOP, UNKNOWN)[id]

    def plain(self) -> dict[str, Any]:
        return {"words": list(self.words), "lowercase": self.lowercase, "split": self.split}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        return cls(tuple(plain["words"]), plain["lowercase"], plain["split"])

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words, start=3)}

    def _cased(self, unit: str) -> str:
        return unit.lower() if self.lowercase else unit
