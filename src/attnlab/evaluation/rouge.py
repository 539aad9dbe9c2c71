"""ROUGE of a text against references: the reference implementation (Lin 2004; the package rouge-score), with
words and sentences found in any script.

The package's own tokenizer throws away whatever is not a-z or 0-9, so that a text in Cyrillic or Chinese
scores nothing against itself; and its ROUGE-Lsum takes a line for a sentence.
"""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

from attnlab.corpus.sentences import paragraphs, sentences
from attnlab.errors import RequestError

# As records call them, and as the package does.
MEASURES = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL", "rouge_lsum": "rougeLsum"}

# Scripts that put no space between words: each of their letters counts as one.
_UNSPACED = (
    "CJK ",
    "HIRAGANA",
    "KATAKANA",
    "THAI",
    "LAO ",
    "KHMER",
    "MYANMAR",
    "TIBETAN",
    "BOPOMOFO",
    "YI SYLLABLE",
)
# Ends of sentences that the rules for English prose do not know.
_OTHER_ENDS = re.compile(r"(?<=[。！？])|(?<=[.!?…])\s+(?=[^\x00-\x7f])")


def words(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters, digits and their marks; a letter of a script
    without spaces is a word of its own. On ASCII these are the package's own."""
    found: list[str] = []
    before = "gap"
    for character in unicodedata.normalize("NFKC", text).lower():
        kind = _kind(character)
        if kind == "mark":  # belongs to the letter before it, if there is one
            kind = before
            if before != "gap":
                found[-1] += character
        elif kind == "part" and before == "part":
            found[-1] += character
        elif kind != "gap":
            found.append(character)
        before = kind
    return found


@cache
def _kind(character: str) -> str:
    """`part` of a word, a word `alone`, a `mark` on what stands before it, or a `gap`."""
    category = unicodedata.category(character)
    if category[0] == "M":
        return "mark"
    if category[0] not in "LN":
        return "gap"
    return "alone" if unicodedata.name(character, "").startswith(_UNSPACED) else "part"


def rouge(text: str, references: Sequence[str]) -> dict[str, float]:
    """The F-measure of each kind; of several references the one that a text matches best counts, for each
    kind by itself, as the reference implementation has it."""
    scores = _scorer().score_multi([_in_lines(one) for one in references], _in_lines(text))
    return {ours: float(scores[theirs].fmeasure) for ours, theirs in MEASURES.items()}


def refuse_without_rouge() -> None:
    """Said before anything runs."""
    if importlib.util.find_spec("rouge_score") is None:
        raise RequestError("scoring texts needs the package rouge-score: pip install 'attnlab[text]'")


@cache
def _scorer() -> Any:
    refuse_without_rouge()
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(list(MEASURES.values()), tokenizer=_Words())


class _Words:
    """What the package calls a tokenizer."""

    def tokenize(self, text: str) -> list[str]:
        return words(text)


def _in_lines(text: str) -> str:
    """A sentence a line, as ROUGE-Lsum reads it; the other kinds take a line's end for a space."""
    pieces = (one for part in paragraphs(text) for one in sentences(part))
    return "\n".join(line for piece in pieces for line in _OTHER_ENDS.split(piece) if line)
