"""The studies in a directory, read as lightly as a list needs, and nothing outside that directory.

A study is named by its folder. Only names that the directory itself lists are looked up, so no name can
climb out of it; a folder with a link that leads out is not shown at all.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.errors import RequestError, unknown

_DEEPEST = 3  # runs/<arm>/<seed>/file


class NotHere(RequestError):
    """What was asked for does not lie in the page's directory."""


@dataclass(frozen=True)
class Card:
    """A study as the list shows it."""

    name: str
    question: str
    arms: tuple[str, ...]
    seeds: int
    done: int
    verdicts: tuple[tuple[str, str], ...]  # arm, word
    changed: float  # when something last was written to it
    problem: str = ""

    @property
    def total(self) -> int:
        return len(self.arms) * self.seeds


class Shelf:
    """A directory of studies."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self) -> list[str]:
        """Every folder in it that holds a study."""
        with os.scandir(self.root) as entries:
            found = [e.name for e in entries if not e.name.startswith(".") and e.is_dir()]
        return sorted(name for name in found if (self.root / name / "study.json").is_file())

    def folder(self, name: str) -> Path:
        """The folder of a study, or `NotHere`."""
        names = self.names()
        if name not in names:
            raise NotHere(unknown("study", name, names))
        folder = self.root / name
        stray = next(self._strays(folder), None)
        if stray is not None:
            raise NotHere(f"{name!r} holds a link that leads out of the page's directory: {stray.name}")
        return folder

    def run(self, place: str) -> Path:
        """The folder of a run, named `study/arm/seed` as it lies in the directory."""
        study, _, rest = place.partition("/")
        folder = self.folder(study)
        known = {f"{p.parent.name}/{p.name}": p for p in folder.glob("runs/*/*") if p.is_dir()}
        if rest not in known:
            raise NotHere(unknown("run", rest, known))
        return known[rest]

    def cards(self) -> list[Card]:
        """Every study, what was written last first."""
        return sorted(map(self.card, self.names()), key=lambda card: -card.changed)

    def card(self, name: str) -> Card:
        try:
            folder = self.folder(name)
            declared = read_json(folder / "study.json").get("study", {})
            results = read_json(folder / "results.json") if (folder / "results.json").is_file() else {}
            done, changed = _runs_in(folder)
            verdicts = [(str(v["arm"]), str(v["verdict"])) for v in results.get("verdicts", ())]
            return Card(
                name=name,
                question=str(declared.get("question", "")),
                arms=tuple(str(arm["name"]) for arm in declared.get("arms", ())),
                seeds=int(declared.get("seeds", 0)),
                done=done,
                verdicts=tuple(verdicts),
                changed=changed,
            )
        except (RequestError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            return Card(name, "", (), 0, 0, (), 0.0, problem=f"cannot be read ({error})")

    def _strays(self, folder: Path, depth: int = 0) -> Iterator[Path]:
        """Links below a folder, and the folder itself, that lead out of the directory."""
        if folder.is_symlink() and not folder.resolve().is_relative_to(self.root):
            yield folder
            return
        with os.scandir(folder) as entries:
            for entry in entries:
                path = Path(entry.path)
                if entry.is_symlink() and not path.resolve().is_relative_to(self.root):
                    yield path
                elif entry.is_dir() and depth < _DEEPEST:
                    yield from self._strays(path, depth + 1)


def read_json(path: Path) -> Mapping[str, Any]:
    """A table from a JSON file."""
    found = json.loads(path.read_text("utf-8"))
    if not isinstance(found, dict):
        raise RequestError(f"{path.name} holds no table")
    return found


def _runs_in(folder: Path) -> tuple[int, float]:
    """How many runs are done, and when the latest of them, or the study itself, was written to."""
    done, paths = 0, [str(folder / "study.json"), *map(str, folder.glob("results.json"))]
    for run in folder.glob("runs/*/*"):
        with contextlib.suppress(NotADirectoryError):
            files = os.listdir(run)
            done += "result.json" in files
            paths += [f"{run}/metrics.jsonl"] if "metrics.jsonl" in files else []
    return done, max(os.stat(path).st_mtime for path in paths)
