"""Lines of a label and a text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from attnlab.corpus.document import Document
from attnlab.corpus.filed import FileCorpus
from attnlab.corpus.files import read_text
from attnlab.errors import CorpusError


@dataclass(frozen=True, kw_only=True)
class Labelled(FileCorpus):
    """`label text`, one example a line: the first word is the label, the rest the text."""

    def documents(self, path: Path, name: str) -> list[Document]:
        found = []
        for number, line in enumerate(read_text(path).split("\n"), 1):
            if not line.strip():
                continue
            label, *text = line.split(None, 1)
            if not text:
                raise CorpusError(f"{name}:{number}: a label and a text are needed, there is only {label!r}")
            found.append(Document(f"{name}:{number}", (text[0].strip(),), label=label))
        return found
