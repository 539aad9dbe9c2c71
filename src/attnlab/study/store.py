"""A study's directory: what was declared, every run, the results. The only state there is."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.errors import AttnlabError, StoreError
from attnlab.record import SCHEMA, RunResult
from attnlab.spec import differences
from attnlab.study.declaration import study_from_plain
from attnlab.study.study import UNDECIDING, Study, slug
from attnlab.wholefile import claimed, write_json

URL_NOTE = ".url"  # of a study that is kept at a URL: which


@dataclass(frozen=True)
class Cell:
    """One arm with one seed: the unit of work."""

    arm: str
    seed: int

    def __str__(self) -> str:
        return f"{self.arm}, seed {self.seed}"


class Store:
    """The directory of one study."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def address(self) -> str:
        """Where other machines find the study."""
        return str(self.path.resolve())

    def open_for(self, study: Study, header: Mapping[str, Any]) -> None:
        """The directory for a study, made where there is none; one that holds another study is refused."""
        path = self.path
        try:
            if (path / "study.json").is_file():
                self._refuse_if_changed(study)
            elif path.exists() and not path.is_dir():
                raise StoreError(f"{path} is a file: name a directory with --out")
            elif path.exists() and any(file.name != URL_NOTE for file in path.iterdir()):
                raise StoreError(f"{path} is not empty and holds no study: name another directory with --out")
            (path / "runs").mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # no permission, no room, no name that a directory could have
            raise StoreError(
                f"{path}: cannot be used ({getattr(error, 'strerror', None) or error})"
            ) from None
        if not (path / "study.json").is_file():
            self.write_header(study, header)

    def write_header(self, study: Study, header: Mapping[str, Any]) -> None:
        """`study.json`: the declaration as resolved, its fingerprint, and what is known of where it ran."""
        declared = {
            "schema": SCHEMA,
            "study": study.plain(),
            "fingerprint": study.fingerprint,
            "better": study.judged_by.metric.better,
            "base": str(study.base) if study.base else None,
        }
        write_json(self.path / "study.json", {**declared, **header})

    @property
    def header(self) -> dict[str, Any]:
        return self._read("study.json")

    def study(self) -> Study:
        """The study as it was declared here."""
        header = self.header
        base = Path(header["base"]) if header.get("base") else None
        return study_from_plain(header["study"], source=str(self.path / "study.json"), base=base)

    @property
    def is_begun(self) -> bool:
        """Whether there is any run that another declaration, or another text, would be mixed with."""
        return any(self.path.glob("runs/*/*/spec.json"))

    def refuse_if_other_text(self, corpus: Mapping[str, Any]) -> None:
        """The same declaration may name a file whose text has changed since."""
        kept, now = (c.get("provenance", {}).get("sha256") for c in (self.header.get("corpus", {}), corpus))
        if self.is_begun and kept and now and kept != now:
            raise StoreError(
                f"{self.path} holds runs on another text: the declaration is the same, but what its corpus "
                "reads has changed since. Name another directory with --out, or remove this one."
            )

    def _refuse_if_changed(self, study: Study) -> None:
        header = self.header
        if header["fingerprint"] == study.fingerprint or not self.is_begun:
            return
        found = differences(header["study"], study.plain())
        changes = [str(d) for d in found if d.place not in UNDECIDING]
        what = "\n".join(f"  {change}" for change in changes) or "  a file of code that it names"
        raise StoreError(
            f"{self.path} holds another version of this study, and mixing their runs would compare different "
            f"things. What changed:\n{what}\nName another directory with --out, or remove this one."
        )

    def folder(self, cell: Cell) -> Path:
        return self.path / "runs" / slug(cell.arm) / str(cell.seed)

    def result(self, cell: Cell) -> RunResult | None:
        """What the run measured; None while it is not done. A run that failed counts as not done."""
        try:
            result = RunResult.from_plain(json.loads((self.folder(cell) / "result.json").read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None  # not there, or damaged: it will be made again from its checkpoint
        return None if result.status == "failed" else result

    def failure(self, cell: Cell) -> str | None:
        """Why the run failed, if that is how it ended."""
        try:
            plain = json.loads((self.folder(cell) / "result.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return str(plain.get("reason")) if plain.get("status") == "failed" else None

    def write_result(self, result: RunResult) -> None:
        folder = self.folder(Cell(result.arm, result.seed))
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "result.json", result.plain())

    def write_results(self, results: Mapping[str, Any]) -> None:
        write_json(self.path / "results.json", results)

    # A directory that all machines see needs nothing of these four; a URL does (mirrored.py).

    def look_at(self, cells: Sequence[Cell]) -> None:
        """Have here how far these cells are that others work on."""

    def bring(self, cell: Cell) -> None:
        """Have here what another machine left of a cell."""

    def wish(self, name: str) -> None:
        """Let everybody find a file of this name."""
        (self.path / name).touch()

    def unwish(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def claimed(self, cell: Cell) -> contextlib.AbstractContextManager[bool]:
        """Hold a cell, so that no other process works on it; gives False where another one does."""
        return claimed(self.folder(cell) / ".lock")

    def _read(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            plain = json.loads(path.read_text("utf-8"))
        except OSError as error:
            raise StoreError(f"{path}: cannot be read ({error.strerror})") from None
        except ValueError as error:
            raise StoreError(f"{path}: damaged ({error})") from None
        if not isinstance(plain, dict) or not plain.keys() >= {"study", "fingerprint"}:
            raise StoreError(f"{path}: not the declaration of a study that attnlab ran")
        return plain


def open_study(path: Path) -> Store:
    """The store of a study that was run before."""
    if not (path / "study.json").is_file():
        raise StoreError(f"{path} holds no study (there is no study.json in it)")
    return Store(path)


def describe(error: Exception) -> str:
    """An error in one line, for a record."""
    return str(error) if isinstance(error, AttnlabError) else f"{type(error).__name__}: {error}"
