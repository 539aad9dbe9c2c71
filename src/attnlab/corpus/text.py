"""Plain text files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnlab.corpus.document import Document
from attnlab.corpus.filed import FileCorpus
from attnlab.corpus.files import read_text
from attnlab.corpus.sentences import paragraphs, sentences
from attnlab.spec import Positive

Unit = Literal["line", "sentence", "paragraph"]


@dataclass(frozen=True, kw_only=True)
class Text(FileCorpus):
    """Plain text: its lines, sentences or paragraphs, one at a time."""

    unit: Unit = "line"
    # What is held out, and paired by a verdict, as a whole: a stretch of the text, one unit (where the order
    # of units means nothing, as in a file of shuffled sentences), or the whole file.
    document: Literal["block", "unit", "file"] = "block"
    block: Positive = 100  # units in a block

    @property
    def a_document(self) -> str:
        size = {"block": f"{self.block} {self.unit}s in a row", "unit": f"a {self.unit}", "file": "a file"}
        return f"one is {size[self.document]}; see corpus.block and corpus.document"

    def documents(self, path: Path, name: str) -> list[Document]:
        units = units_of(read_text(path), self.unit)
        size = {"block": self.block, "unit": 1, "file": len(units)}[self.document]
        return in_blocks(units, size, name)


def units_of(text: str, unit: Unit) -> list[str]:
    """The text in pieces; pieces of nothing but spaces are left out."""
    if unit == "line":
        return [line.strip() for line in text.split("\n") if line.strip()]
    parts = paragraphs(text)
    return parts if unit == "paragraph" else [s for part in parts for s in sentences(part)]


def in_blocks(units: list[str], size: int, name: str) -> list[Document]:
    """Documents of `size` consecutive units, named by the file and the numbers of their units."""
    found = []
    for first in range(0, len(units), size):
        block = tuple(units[first : first + size])
        places = f"{first + 1}" if len(block) == 1 else f"{first + 1}-{first + len(block)}"
        found.append(Document(f"{name}:{places}", block))
    return found
