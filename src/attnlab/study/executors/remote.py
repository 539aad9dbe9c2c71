"""What happens on another machine: one cell of a study whose directory both machines see.

The directory is all that connects them. What a run tells goes into files of its cell, where whoever gave out
the work reads it; the wish that work stops is a file too. So it is the same for Ray, for Slurm, and for
whatever else can call a function somewhere.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import attnlab
from attnlab.errors import AttnlabError, WorkError
from attnlab.study.cellwork import Workplace
from attnlab.study.curve import read_curve
from attnlab.study.mirror import is_url
from attnlab.study.mirrored import at_hand
from attnlab.study.store import Cell, Store, describe

_ASK_SECONDS = 1.0  # between two looks whether the work should stop: a look may cross a network


@dataclass(frozen=True, kw_only=True)
class Errand:
    """A cell to work on, and everything a process elsewhere needs to know for it."""

    directory: str  # that all machines see, or a URL
    arm: str
    seed: int
    threads: int
    save_seconds: float
    stop_file: str  # in the directory; when it is there, the work stops at a checkpoint

    @property
    def cell(self) -> Cell:
        return Cell(self.arm, self.seed)


@dataclass(frozen=True)
class Report:
    """How an errand ended: "done", "busy", "interrupted", or "broken" and why."""

    outcome: str
    reason: str = ""


def run_errand(errand: Errand) -> Report:
    """Work on the cell in this process. What goes wrong with the run is its result; what is wrong with the
    place (no such directory, another version, other code) is the report's."""
    import torch

    torch.set_num_threads(errand.threads)
    try:
        if not is_url(errand.directory):
            return _work(errand, errand.directory)
        with at_hand(errand.directory, errand.cell, errand.stop_file) as here:
            return _work(errand, str(here)) if here else Report("busy")
    except AttnlabError as error:
        return Report("broken", describe(error))


def _work(errand: Errand, directory: str) -> Report:
    workplace = _workplace(directory, errand.save_seconds)
    told = _Told(workplace.store.folder(errand.cell))
    return Report(workplace.work_on(errand.cell, told, _StopFile(Path(directory, errand.stop_file))))


@lru_cache(maxsize=1)
def _workplace(directory: str, save_seconds: float) -> Workplace:
    """Kept for the next errand of the same study: a corpus is prepared once in a process."""
    store = Store(Path(directory))
    header = store.header
    theirs = header.get("environment", {}).get("attnlab")
    if theirs != attnlab.__version__:
        raise WorkError(f"this machine has attnlab {attnlab.__version__}, and the study is of {theirs}")
    study = store.study()
    if study.fingerprint != header["fingerprint"]:
        raise WorkError(
            f"the study in {directory} reads another way on this machine: a file of code that it names is "
            "not the same here, or the versions of what it uses differ"
        )
    return Workplace(store, study, save_seconds)


class _StopFile:
    """The wish to stop, as a file that appears."""

    def __init__(self, path: Path) -> None:
        self.path, self._asked = path, -_ASK_SECONDS

    @property
    def to_stop(self) -> bool:
        now = time.monotonic()
        if now - self._asked < _ASK_SECONDS:
            return False
        self._asked = now
        return self.path.exists()


class _Told:
    """What a run tells, left in its folder: notes, and signs of life. Its curve lies there already."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self("begun", {})

    def __call__(self, event: str, about: Mapping[str, Any]) -> None:
        try:
            if event == "note":
                with (self.folder / "notes.txt").open("a", encoding="utf-8") as file:
                    file.write(str(about["text"]).replace("\n", " ") + "\n")
            (self.folder / ".alive").write_text(str(time.time_ns()))
        except OSError:  # a sign of life is not worth a run
            return


class Following:
    """The files of one cell, read by whoever gave it out: what is new since the last look."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rows = len(read_curve(folder / "metrics.jsonl"))
        self._notes = len(self._all_notes())
        self._alive = self._sign()
        self.heard: float | None = None  # when it last gave a sign of life; None before it began

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """The last new line of its curve: nobody watches more than that."""
        found = read_curve(self.folder / "metrics.jsonl")
        if len(found) != self._rows and found:
            yield found[-1]
        self._rows = len(found)
        sign = self._sign()
        if sign != self._alive:
            self._alive, self.heard = sign, time.monotonic()

    def notes(self) -> Iterator[str]:
        found = self._all_notes()
        yield from found[self._notes :]
        self._notes = len(found)

    def _all_notes(self) -> list[str]:
        try:
            return (self.folder / "notes.txt").read_text("utf-8").splitlines()
        except OSError:
            return []

    def _sign(self) -> int:
        try:
            return (self.folder / ".alive").stat().st_mtime_ns
        except OSError:
            return 0
