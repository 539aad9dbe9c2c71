"""How much of the held-out text was seen in training, exactly or nearly.

A text is a unit, or the second text of a pair: a passage that two questions share is overlap too.

Exact: the share of held-out texts that stand in train word for word, case and spacing aside.
Near: the share of held-out texts of at least eight words of which at least half of all eight-word stretches
occur somewhere in train. Stretches are compared by 64-bit hashes, so a chance match is next to impossible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from attnlab.corpus.document import Document

STRETCH = 8  # words
CONTAINED = 0.5  # of a text's stretches, for it to count as near

Hashes = NDArray[np.uint64]
_WORD = re.compile(r"\w+")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Overlap:
    """Of one held-out split with train."""

    exact: float  # the share of its texts
    near: float  # the share of its texts of eight words or more; 0 where there are none
    texts: int
    long_texts: int  # of eight words or more

    def plain(self) -> dict[str, float | int]:
        return asdict(self)


def overlaps(train: Sequence[Document], held_out: Mapping[str, Sequence[Document]]) -> dict[str, Overlap]:
    """The overlap of every held-out split with train."""
    seen_texts = set(_texts(train))
    ids: dict[str, int] = {}
    stretches, _ = _stretches(_texts(train), ids)
    seen = np.unique(stretches)
    return {name: _overlap(documents, seen_texts, seen, ids) for name, documents in held_out.items()}


def seen_in(train: Sequence[Document], texts: Iterable[str]) -> list[bool]:
    """Of every text, whether it stands in train word for word, case and spacing aside."""
    seen = set(_texts(train))
    return [_normal(text) in seen for text in texts]


def _overlap(
    documents: Sequence[Document], seen_texts: set[str], seen: Hashes, ids: dict[str, int]
) -> Overlap:
    texts = list(_texts(documents))
    exact = sum(text in seen_texts for text in texts)
    stretches, owner = _stretches(texts, ids)
    places = np.minimum(np.searchsorted(seen, stretches), max(len(seen) - 1, 0))
    found = seen[places] == stretches if len(seen) else np.zeros(len(stretches), dtype=np.bool_)
    total = np.bincount(owner, minlength=len(texts))
    shared = np.bincount(owner, weights=found, minlength=len(texts))
    long = total > 0
    near = int((shared[long] >= CONTAINED * total[long]).sum())
    return Overlap(
        exact / len(texts), near / int(long.sum()) if long.any() else 0.0, len(texts), int(long.sum())
    )


def _texts(documents: Iterable[Document]) -> Iterable[str]:
    for document in documents:
        yield from map(_normal, document.units)
        if document.pair is not None:
            yield _normal(document.pair)


def _normal(text: str) -> str:
    return " ".join(text.lower().split())


def _stretches(texts: Iterable[str], ids: dict[str, int]) -> tuple[Hashes, NDArray[np.int64]]:
    """The hash of every stretch of words, and which text it is from. `ids` numbers the words, and grows."""
    numbered = [[ids.setdefault(word, len(ids)) for word in _WORD.findall(text)] for text in texts]
    lengths = np.fromiter(map(len, numbered), np.int64, len(numbered))
    words = np.fromiter(chain.from_iterable(numbered), np.uint64, int(lengths.sum()))
    n = len(words) - STRETCH + 1
    if n <= 0:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    mixed = _mix(words + np.uint64(1))
    hashes = np.zeros(n, dtype=np.uint64)
    for i in range(STRETCH):
        hashes = _mix(hashes * _MULTIPLIER + mixed[i : i + n])
    owner = np.repeat(np.arange(len(numbered)), lengths)
    whole = owner[:n] == owner[STRETCH - 1 :]
    return hashes[whole], owner[:n][whole]


def _mix(x: Hashes) -> Hashes:
    """A bijection of 64 bits in which every bit of the input reaches every bit of the output."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
