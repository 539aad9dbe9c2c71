"""What a model is looked at on: texts, and random passages said twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnlab.tokens import Reading, Vocabulary
from attnlab.tokens.examples import sequence_of

LONGEST_PASSAGE = 24  # tokens that are said twice, where the context has room for them


@dataclass(frozen=True)
class Probe:
    """A sequence of ids, and how to show each of them."""

    text: str
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    passage: int = 0  # how many tokens are said twice after the first one; 0 where none are


def probes_of(texts: Sequence[str], vocabulary: Vocabulary, context: int) -> tuple[Probe, ...]:
    """Texts as a language model reads them: a start, and as many tokens as the context holds."""
    found = []
    for text in texts:
        ids = (vocabulary.start, *vocabulary.encode(text))[:context]
        found.append(_probe(text, ids, vocabulary))
    return tuple(found)


def probes_read(
    texts: Sequence[str | tuple[str, str]], vocabulary: Vocabulary, reading: Reading, context: int
) -> tuple[Probe, ...]:
    """Texts, or pairs of them, as a classifier reads them: with the start and the stops that it knows."""
    found = []
    for text in texts:
        pair = (text,) if isinstance(text, str) else text
        ids, _ = sequence_of(pair, vocabulary, reading, context)
        found.append(_probe(" / ".join(pair), tuple(ids), vocabulary))
    return tuple(found)


def _probe(text: str, ids: tuple[int, ...], vocabulary: Vocabulary) -> Probe:
    return Probe(text, ids, tuple(vocabulary.piece(id) for id in ids))


def repeats(count: int, vocabulary: Vocabulary, context: int) -> tuple[Probe, ...]:
    """A start and then random tokens twice, always the same ones for a vocabulary and a context. None where
    there is no room for two tokens twice."""
    special = (vocabulary.start, vocabulary.stop, vocabulary.unknown)
    ordinary = [id for id in range(vocabulary.size) if id not in special]
    passage = min(LONGEST_PASSAGE, (context - 1) // 2, len(ordinary))
    if passage < 2:
        return ()
    found = []
    for number in range(count):
        # No token twice in a passage: what followed it the first time is one place only.
        drawn = np.random.default_rng([number, vocabulary.size]).permutation(len(ordinary))[:passage]
        once = [ordinary[place] for place in drawn]
        ids = (vocabulary.start, *once, *once)
        pieces = tuple(vocabulary.piece(id) for id in ids)
        found.append(Probe(f"{passage} random tokens, twice", ids, pieces, passage))
    return tuple(found)
