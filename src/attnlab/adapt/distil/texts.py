"""Texts that a model writes, kept as they come: whoever is interrupted, or comes after, finds them.

A folder holds `settings.json`, everything the texts depend on, and a file of JSON lines for every batch. A
batch is written whole or not at all, with a digest; a damaged one is written again. Several processes may
work on one folder: each takes batches that no other has.

What a model says in a batch depends, in the last digits of its sums, on what else is in it: so batches are
fixed beforehand, and one that is made again comes out the same.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from attnlab.adapt.distil.prompt import Asked
from attnlab.corpus import Document
from attnlab.decoding import HubWriter, Recipe, write_each
from attnlab.decoding.strategies import Greedy
from attnlab.errors import StoreError
from attnlab.spec import Positive, Spec, fingerprint
from attnlab.training import Interrupted, Observer
from attnlab.wholefile import claimed, write_json, write_whole

_BUSY_WAIT = 1.0  # seconds before batches that another process is at are looked at again
_TOLD = 10  # how often the progress of a long piece of work is told


class Writing(Spec):
    """How texts are written."""

    recipe: Recipe = Recipe(steps=(Greedy(),))
    longest: Positive = 80  # tokens of a text
    batch: Positive = 16  # texts written together
    seed: int = 0  # of the random numbers, where the recipe draws


@dataclass(frozen=True)
class Text:
    """What a model wrote on one request."""

    name: str
    text: str
    tokens: int
    ended: bool  # by its own word; otherwise because it had said enough


@dataclass(frozen=True)
class Texts:
    """The texts of one model on one set of requests, in a folder."""

    folder: Path
    asked: Asked
    writing: Writing
    settings: dict[str, Any]  # of the model: whatever else its texts depend on

    @property
    def whole_settings(self) -> dict[str, Any]:
        """Everything that the texts depend on, plain."""
        requests = hashlib.sha256(json.dumps([self.asked.names, self.asked.ids]).encode()).hexdigest()
        return {"model": self.settings, "writing": self.writing.plain(), "requests": requests}

    @property
    def key(self) -> str:
        return fingerprint(self.whole_settings)

    def at(self, folder: Path) -> Texts:
        """The same texts, kept elsewhere."""
        return replace(self, folder=folder)

    def kept(self) -> list[Text] | None:
        """All texts, in the order of the requests; None while some are missing."""
        found: dict[str, Text] = {}
        for number, places in enumerate(self._batches()):
            rows = self._read(number, places)
            if rows is None:
                return None
            found |= {row.name: row for row in rows}
        return [found[name] for name in self.asked.names]

    def write(self, open_writer: Callable[[], HubWriter], observer: Observer, what: str) -> list[Text]:
        """All texts, those that are missing written now. The model is opened only if it is needed."""
        self._begin()
        batches = self._batches()
        missing = [number for number, places in enumerate(batches) if self._read(number, places) is None]
        if missing:
            self._write_missing(open_writer(), batches, missing, observer, what)
        kept = self.kept()
        if kept is None:
            raise StoreError(f"{self.folder}: texts that were written there are gone; run it again")
        return kept

    def _write_missing(
        self,
        writer: HubWriter,
        batches: list[list[int]],
        missing: list[int],
        observer: Observer,
        what: str,
    ) -> None:
        def beat() -> None:
            if observer.should_stop():
                raise Interrupted

        told = len(batches) - len(missing)
        while missing:
            for number in list(missing):
                beat()
                with claimed(self._file(number).with_suffix(".lock")) as ours:
                    if not ours:
                        continue
                    if self._read(number, batches[number]) is None:
                        self._keep(number, self._written(writer, batches[number], beat))
                missing.remove(number)
                done = len(batches) - len(missing)
                if done - told >= len(batches) / _TOLD or not missing:
                    told = done
                    observer.note(f"{what}: {done} of {len(batches)} batches written")
            if missing:
                time.sleep(_BUSY_WAIT)

    def _written(self, writer: HubWriter, places: list[int], beat: Callable[[], None]) -> list[Text]:
        made = write_each(
            writer,
            [self.asked.ids[place] for place in places],
            self.writing.recipe,
            longest=self.writing.longest,
            seeds=[self.writing.seed * len(self.asked) + place for place in places],
            beat=beat,
        )
        return [
            Text(self.asked.names[place], writer.decode(text.tokens).strip(), len(text.tokens), text.ended)
            for place, text in zip(places, made, strict=True)
        ]

    def _batches(self) -> list[list[int]]:
        """Places of requests, those of similar length together: little is spent on padding."""
        order = sorted(range(len(self.asked)), key=lambda place: (len(self.asked.ids[place]), place))
        size = self.writing.batch
        return [order[start : start + size] for start in range(0, len(order), size)]

    def _begin(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.folder}: cannot be written ({error.strerror})") from None
        write_json(self.folder / "settings.json", {"key": self.key, **self.whole_settings})

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:05}.jsonl"

    def _keep(self, number: int, rows: list[Text]) -> None:
        lines = "".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows)
        head = json.dumps({"key": self.key, "sha256": hashlib.sha256(lines.encode()).hexdigest()})
        write_whole(self._file(number), f"{head}\n{lines}")

    def _read(self, number: int, places: Sequence[int]) -> list[Text] | None:
        """The texts of a batch, or nothing where there are none, or others, or damaged ones."""
        try:
            head, _, lines = self._file(number).read_text("utf-8").partition("\n")
            about = json.loads(head)
            if about != {"key": self.key, "sha256": hashlib.sha256(lines.encode()).hexdigest()}:
                return None
            rows = [Text(**json.loads(line)) for line in lines.split("\n") if line]
        except (OSError, ValueError, TypeError):
            return None
        return rows if [row.name for row in rows] == [self.asked.names[place] for place in places] else None


def keep_beside(path: Path, documents: Sequence[Document], written: Sequence[Text]) -> None:
    """Every text beside people's, for whoever wants to read them all."""
    rows = [
        {"name": d.name, "text": w.text, "tokens": w.tokens, "ended": w.ended, "references": d.references}
        for d, w in zip(documents, written, strict=True)
    ]
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
