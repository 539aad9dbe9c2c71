"""What all corpora in the user's own files share: declared files per split, and the rest held out by rule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attnlab.corpus.base import Corpus
from attnlab.corpus.document import CORE, Document, Provenance, Splits, counts
from attnlab.corpus.files import digest_of, locate
from attnlab.corpus.split import Share, divide
from attnlab.spec import Count

Paths = str | tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FileCorpus(Corpus):
    """Documents from files. Where dev or test has no file of its own, it is held out of train."""

    train: Paths
    dev: Paths | None = None
    test: Paths | None = None
    extra: Mapping[str, Paths] = field(default_factory=dict, hash=False)  # further held-out splits, by name
    folder: str = "."  # where these files are
    dev_share: Share = 0.1  # of the training documents, where dev has no file of its own
    test_share: Share = 0.1  # the same for test
    split_seed: Count = 0
    licence: str = "none seen"  # the terms you have the text under, for the report

    def __post_init__(self) -> None:
        taken = sorted(set(self.extra) & set(CORE))
        if taken:
            raise ValueError(
                f"an extra split cannot be called {taken[0]!r}, like one of the three core splits"
            )

    @abstractmethod
    def documents(self, path: Path, name: str) -> list[Document]:
        """The documents of one file, in order; `name` is the file as declared."""

    @property
    def a_document(self) -> str:
        """What one document is, and which field says so; empty where that goes without saying."""
        return ""

    def load(self, base: Path | None = None) -> Splits:
        folder = self._folder(base)
        read = {
            split: tuple(d for name in names for d in self.documents(locate(name, folder), name))
            for split, names in self._declared().items()
        }
        division = divide(
            read["train"],
            dev=0.0 if "dev" in read else self.dev_share,
            test=0.0 if "test" in read else self.test_share,
            seed=self.split_seed,
            source=f"corpus {self.name!r} ({self._names('train')})",
            a_document=self.a_document,
        )
        train, dev, test = division.train, read.get("dev", division.dev), read.get("test", division.test)
        extra = {name: read[name] for name in self.extra}
        own = [f"{split} from {self._names(split)}" for split in read if split != "train"]
        rule = [] if {"dev", "test"} <= set(read) else [division.how]
        provenance = Provenance(
            source=f"{self._names('train')} (the user's files, read as {self.name!r})",
            version=None,
            licence=self.licence,
            sha256=self.digest(base),
            split="; ".join([*own, *rule]),
            counts=counts(train=train, dev=dev, test=test, **extra),
        )
        return Splits(train, dev, test, provenance, extra)

    def digest(self, base: Path | None = None) -> str:
        folder = self._folder(base)
        return digest_of(locate(name, folder) for names in self._declared().values() for name in names)

    def _folder(self, base: Path | None) -> Path:
        return (base or Path.cwd()) / Path(self.folder).expanduser()

    def _declared(self) -> dict[str, Sequence[str]]:
        files = {"train": self.train, "dev": self.dev, "test": self.test, **self.extra}
        return {
            split: (names,) if isinstance(names, str) else names
            for split, names in files.items()
            if names is not None
        }

    def _names(self, split: str) -> str:
        return ", ".join(self._declared()[split])
