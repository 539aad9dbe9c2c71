"""What strategies work on: any model that gives logits, with a tokenizer of its own.

Shapes: B continuations, T tokens, D width of the model, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor


class Reading(Protocol):
    """A model in the middle of B texts of one length: it remembers what it has read."""

    def read(self, tokens_BT: Tensor) -> Tensor:
        """Read on; the logits (B, V) of what follows."""

    def keep(self, rows_B: Tensor) -> None:
        """Go on with these texts only, in this order (one may be repeated)."""

    @property
    def vectors_BTD(self) -> Tensor:
        """What the last layer made of the tokens that were read last, of every one of them."""


class Writer(Protocol):
    """A language model that can be asked to continue a text."""

    name: str
    size: int  # of the vocabulary
    longest: int | None  # tokens that it can read; None: no limit is known
    stops: frozenset[int]  # tokens that end a text
    never: tuple[int, ...]  # tokens that cannot be written, such as the start

    def begin(self, *, vectors: bool = False) -> Reading:
        """A reading that has read nothing. Its vectors are kept if they are asked for here."""

    def logits(self, tokens_BT: Tensor) -> Tensor:
        """(B, T, V) in one pass over the whole texts: what every reading must agree with."""

    def encode(self, text: str) -> list[int]:
        """A prompt as tokens, with what the model wants to see before any text; never none at all."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Readable text."""

    def piece(self, token: int) -> str:
        """One token, as a table shows it."""


def room(writer: Writer, prompt: int, wanted: int) -> int:
    """How many tokens can follow a prompt of so many: the last of them need not be read."""
    return wanted if writer.longest is None else max(0, min(wanted, writer.longest - prompt + 1))


def continuation(writer: Writer, prompt: Sequence[int], tokens: Sequence[int]) -> str:
    """The text of what follows a prompt, with the space before it where there is one."""
    before, whole = writer.decode(prompt), writer.decode([*prompt, *tokens])
    return whole.removeprefix(before) if whole.startswith(before) else writer.decode(tokens)
