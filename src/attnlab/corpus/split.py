"""Which documents are held out: a choice that depends on the declaration alone.

Documents stand in their natural order (by date, by place in the file). To hold out k of n, the order is cut
into k stretches of almost equal length and one document is taken from each, so that dev and test are spread
over the whole of it: over eras in the addresses, over plays in Shakespeare.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from attnlab.corpus.document import Document
from attnlab.errors import CorpusError

Share = Annotated[float, Field(gt=0.0, lt=1.0)]


@dataclass(frozen=True)
class Division:
    """Train, dev and test, and the sentence that says how they were made."""

    train: tuple[Document, ...]
    dev: tuple[Document, ...]
    test: tuple[Document, ...]
    how: str


def divide(
    documents: Sequence[Document],
    *,
    dev: float,
    test: float,
    seed: int,
    source: str,
    groups: Sequence[str] | None = None,
    a_document: str = "",
) -> Division:
    """Hold out a share of the documents for dev and test; a share of 0 takes none.

    Documents of one group (two messages of the same day) are never put on different sides.
    `a_document` says in words what one is here, for whoever has too few.
    """
    if not documents:
        raise CorpusError(f"{source}: there is no text in it")
    keys = list(groups) if groups is not None else [str(i) for i in range(len(documents))]
    order = list(dict.fromkeys(keys))
    n_dev, n_test = (max(1, round(share * len(order))) if share > 0 else 0 for share in (dev, test))
    if n_dev + n_test >= len(order):
        number = "1 document is" if len(order) == 1 else f"{len(order)} documents are"
        raise CorpusError(
            f"{source}: {number} too few to hold out {n_dev} for dev and {n_test} for test and still train; "
            f"give more text, smaller documents{f' ({a_document})' if a_document else ''}, "
            "or files of their own for dev and test"
        )
    side = {order[i]: name for i, name in _held_out(len(order), n_dev, n_test, seed).items()}
    chosen: dict[str, list[Document]] = {"train": [], "dev": [], "test": []}
    for key, document in zip(keys, documents, strict=True):
        chosen[side.get(key, "train")].append(document)
    how = (
        f"by document: {n_dev} of {len(order)} held out for dev and {n_test} for test, "
        f"spread evenly over their order (seed {seed})"
    )
    return Division(tuple(chosen["train"]), tuple(chosen["dev"]), tuple(chosen["test"]), how)


def _held_out(n: int, n_dev: int, n_test: int, seed: int) -> dict[int, str]:
    """The place of every held-out document, and its side."""
    k = n_dev + n_test
    side: dict[int, str] = {}
    for i in range(k):
        first, last = i * n // k, (i + 1) * n // k
        # Test takes its share of the stretches evenly; the stretch where it steps is the same for any seed.
        name = "test" if (i + 1) * n_test // k > i * n_test // k else "dev"
        side[first + _number(seed, i) % (last - first)] = name
    return side


def _number(seed: int, i: int) -> int:
    """A random-looking number that no version of any library will ever change."""
    return int.from_bytes(hashlib.sha256(f"attnlab split {seed} {i}".encode()).digest()[:8], "big")


def spread(n: int, wanted: int) -> list[int]:
    """`wanted` places spread evenly over `n`."""
    return [i * n // wanted for i in range(wanted)]
