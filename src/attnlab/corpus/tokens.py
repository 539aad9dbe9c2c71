"""Files that are already in tokens: one sentence a line, a space between every two tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnlab.corpus.document import Document
from attnlab.corpus.filed import FileCorpus
from attnlab.corpus.files import read_text
from attnlab.corpus.text import in_blocks
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class Tokens(FileCorpus):
    """Tokenized sentences, one a line, as in `.tokens` files; read them with `Words(split="space")`."""

    document: Literal["unit", "block"] = "unit"  # such files are usually shuffled: each sentence stands alone
    block: Positive = 100  # sentences in a block

    def documents(self, path: Path, name: str) -> list[Document]:
        lines = [" ".join(tokens) for line in read_text(path).split("\n") if (tokens := line.split())]
        return in_blocks(lines, self.block if self.document == "block" else 1, name)
