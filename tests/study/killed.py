"""What can be told of a process that was killed: where it was, and whether the next one went on there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.study.study import slug

Cell = tuple[str, int]
At = tuple[int, int | None]  # a step, of how many


@dataclass(frozen=True)
class Attempt:
    """One process that worked on a study: its folder, and the events that it noted down."""

    home: Path
    events: Path
    began: float = 0.0

    @property
    def out(self) -> Path:
        return self.home / "out"

    def told(self) -> list[dict[str, Any]]:
        """The events; the last line may have been cut off."""
        if not self.events.exists():
            return []
        lines = self.events.read_text("utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def stage(self) -> str:
        """Where it was when it ended."""
        told = self.told()
        last = told[-1]
        stages = [event["text"] for event in told if event["event"] == "stage"]
        planned = next((event["cells"] for event in told if event["event"] == "planned"), None)
        ended = sum(event["event"] == "ended" for event in told)
        if stages[-1] == "reporting":
            return "reporting"
        if planned is None:
            return str(stages[-1])
        if ended == planned:
            return "judging"
        cell = self.cell()
        if cell is None:
            return "setting out on a run"
        setup = json.loads((cell / "spec.json").read_text("utf-8"))["setup"]
        doing = "writing texts" if "strategy" in setup else "training"
        if last["event"] == "row":
            return "measuring" if last["step"] == last["of"] and not self._pretrains(cell) else doing
        if self._touched(cell / "metrics.jsonl"):
            return doing
        if str(last.get("text")).startswith("training the decoder"):
            return "training"
        if self._touched(self.out / "search" / cell.parent.name / "journal.log"):
            return "searching"
        texts = [*(self.home / "cache" / "texts").glob("*/*.jsonl"), *(cell / "texts").glob("*.jsonl")]
        return "writing texts" if any(map(self._touched, texts)) else "setting out on a run"

    def _pretrains(self, cell: Path) -> bool:
        return (cell / "pretraining.jsonl").exists() and not self._touched(cell / "metrics.jsonl")

    def cell(self) -> Path | None:
        """The folder of the run it was at: taken up by this process, and not done."""
        for spec in self.out.glob("runs/*/*/spec.json"):
            if self._touched(spec) and not spec.with_name("result.json").exists():
                return spec.parent
        return None

    def goes_on_from(self, hit: Attempt, whole: Mapping[str, At]) -> bool:
        """Whether the run that was hit began, in this process, at another place than one that begins."""
        cells = {name for name, (step, _) in first_told(hit).items() if not hit.has_ended(name)}
        mine = first_told(self)
        runs = any(mine[name] != whole[name] if name in mine else self.has_ended(name) for name in cells)
        return runs or self._first_trial() > 1

    def has_ended(self, name: str) -> bool:
        return any(event["event"] == "ended" and _name(event) == name for event in self.told())

    def _first_trial(self) -> int:
        """The number of the first trial of a search that ended in this process; 0 where none did."""
        notes = (re.search(r"\btrial (\d+) of", str(event.get("text"))) for event in self.told())
        return next((int(note[1]) for note in notes if note), 0)

    def _touched(self, path: Path) -> bool:
        return path.exists() and path.stat().st_mtime >= self.began


def first_told(attempt: Attempt) -> dict[str, At]:
    """Of every run the first line of its curve that a process told of."""
    found: dict[str, At] = {}
    for event in attempt.told():
        if event["event"] == "row":
            found.setdefault(_name(event), (event["step"], event["of"]))
    return found


def _name(event: Mapping[str, Any]) -> str:
    arm, seed = event["cell"]
    return f"{slug(arm)}/{seed}"
