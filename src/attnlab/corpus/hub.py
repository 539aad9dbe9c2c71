"""Data sets of the Hugging Face hub, through the package `datasets`, which is loaded only here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.corpus.base import Corpus
from attnlab.corpus.document import Document, Provenance, Splits, counts, digest_of_documents
from attnlab.corpus.rows import Columns, Row, RowUnit, documents_of
from attnlab.corpus.split import Share, divide
from attnlab.errors import CorpusError, unknown
from attnlab.spec import Count, Positive


@dataclass(frozen=True, kw_only=True)
class Hub(Corpus):
    """A hub data set by name, or a directory that `datasets` can load."""

    dataset: str
    config: str | None = None
    revision: str | None = None  # a commit, so that the data cannot change under a study
    train: str = "train"  # names of the data set's own splits
    dev: str | None = None  # held out of train if not given
    test: str | None = None
    rows: Positive | None = None  # take only the first so many of each split: for quick runs
    text: str = "text"
    label: str | None = None
    pair: str | None = None
    references: tuple[str, ...] = ()
    document: str | None = None
    unit: RowUnit = "whole"
    dev_share: Share = 0.1
    test_share: Share = 0.1
    split_seed: Count = 0

    def __post_init__(self) -> None:
        if self.document is not None and (self.label is not None or self.pair is not None or self.references):
            raise ValueError(
                "rows joined into documents cannot have a label, a pair or references of their own"
            )

    def load(self, base: Path | None = None) -> Splits:
        found = _load(self.dataset, self.config, self.revision, base)
        wanted = {"train": self.train, "dev": self.dev, "test": self.test}
        tables = {
            side: _table(found, name, self.dataset) for side, name in wanted.items() if name is not None
        }
        read = {side: self._documents(table, str(wanted[side])) for side, table in tables.items()}
        division = divide(
            read["train"],
            dev=0.0 if "dev" in read else self.dev_share,
            test=0.0 if "test" in read else self.test_share,
            seed=self.split_seed,
            source=self.dataset,
        )
        train = division.train
        dev, test = tuple(read.get("dev", division.dev)), tuple(read.get("test", division.test))
        own = [f"{side} is the data set's {wanted[side]!r}" for side in read if side != "train"]
        about = tables["train"].info
        provenance = Provenance(
            source=f"hub data set {self.dataset}" + (f" ({self.config})" if self.config else ""),
            version=self.revision or (str(about.version) if about.version else None),
            licence=about.license or "none seen",
            sha256=digest_of_documents(train=train, dev=dev, test=test),
            split="; ".join([*own, *([] if {"dev", "test"} <= set(read) else [division.how])]),
            citation=about.citation.strip() or None,
            counts=counts(train=train, dev=dev, test=test),
        )
        return Splits(train, dev, test, provenance)

    def _documents(self, table: Any, split: str) -> list[Document]:
        columns = Columns(
            text=self.text,
            label=self.label,
            pair=self.pair,
            references=self.references,
            document=self.document,
            unit=self.unit,
        )
        return documents_of(self._rows(table, split), columns)

    def _rows(self, table: Any, split: str) -> Iterator[Row]:
        # A class label is a number in the table and a name in its description.
        names = getattr(table.features.get(self.label), "names", None) if self.label else None
        for number, values in enumerate(table):
            if self.rows is not None and number >= self.rows:
                return
            if names is not None and values[self.label] is not None and values[self.label] >= 0:
                values = {**values, self.label: names[values[self.label]]}
            yield Row(f"{self.dataset}/{split}:{number + 1}", values)


def _load(dataset: str, config: str | None, revision: str | None, base: Path | None) -> Any:
    try:
        import datasets
    except ImportError:
        raise CorpusError("the corpus 'hub' needs the package datasets: pip install 'attnlab[hf]'") from None
    local = (base or Path.cwd()) / dataset if "\0" not in dataset else None
    try:
        name = str(local) if local is not None and local.is_dir() else dataset
        return datasets.load_dataset(name, config, revision=revision)
    except Exception as error:  # the network, the hub and its files share no base class
        reason = next(iter(str(error).strip().splitlines()), "")
        raise CorpusError(
            f"the data set {dataset!r} could not be loaded: {type(error).__name__}: {reason}"
        ) from error


def _table(found: Any, name: str, dataset: str) -> Any:
    if name not in found:
        raise CorpusError(f"{dataset}: {unknown('split', name, found)}")
    return found[name]
