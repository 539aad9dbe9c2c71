"""A study as a process of its own that notes down where it is: what is killed, and begun again.

The process is forked off from one that has loaded everything already, so that a kill falls into the work and
not into the loading of libraries.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab import report
from attnlab.study import run
from attnlab.study.cellwork import Workplace
from attnlab.study.executors import Listener
from attnlab.study.store import Cell, Store

from .small import GoesOn

SAVE_SECONDS = 0.05  # between two checkpoints; the command line has no word for it
LOADED = (
    *("torch._dynamo", "transformers", "peft", "optuna", "rouge_score.rouge_scorer", "sklearn.linear_model"),
    *("attnlab.report.page", "attnlab.study.kinds.tuning_bench", "attnlab.study.kinds.distillation_bench"),
    *("attnlab.verdict", "scipy.stats", "altair", "transformers.models.bert.modeling_bert"),
    "transformers.models.llama.modeling_llama",
)


def load_all() -> None:
    for name in LOADED:
        importlib.import_module(name)


class Here:
    """Works on the cells in this process, with one thread, and tells of them."""

    def plan(self, cells: int, threads: int | None = None) -> dict[str, Any]:
        return {"executor": "here", "threads": 1}

    def run(self, store: Store, cells: Sequence[Cell], plan: Mapping[str, Any], listener: Listener) -> None:
        workplace = Workplace(store, store.study(), SAVE_SECONDS)
        for cell in cells:

            def tell(event: str, about: Mapping[str, Any], cell: Cell = cell) -> None:
                if event == "row":
                    listener.row(cell, about)
                elif event == "note":
                    listener.note(str(about["text"]))

            workplace.work_on(cell, tell, GoesOn())
            listener.ended(cell)


class Notes:
    """A listener that writes down a line for everything it is told, at once."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a", buffering=1, encoding="utf-8")

    def tell(self, event: str, **about: Any) -> None:
        self.file.write(json.dumps({"event": event, "at": time.time(), **about}) + "\n")

    def stage(self, text: str) -> None:
        self.tell("stage", text=text)

    def planned(self, cells: Sequence[Cell], done: int, how: str) -> None:
        self.tell("planned", cells=len(cells))

    def row(self, cell: Cell, row: Mapping[str, Any]) -> None:
        self.tell("row", cell=[cell.arm, cell.seed], step=row["step"], of=row.get("of"))

    def ended(self, cell: Cell) -> None:
        self.tell("ended", cell=[cell.arm, cell.seed])

    def note(self, text: str) -> None:
        self.tell("note", text=text)


def start(study: Path, home: Path, events: Path) -> multiprocessing.process.BaseProcess:
    """The process: what it says goes to `said.txt`, what it keeps to a cache of its own."""
    forked = multiprocessing.get_context("fork")
    process = forked.Process(target=_watched, args=(study, home, events), daemon=True)  # never outlives us
    process.start()
    return process


def _watched(study: Path, home: Path, events: Path) -> None:
    os.environ["ATTNLAB_CACHE"] = str(home / "cache")
    os.setsid()  # a group, so that whatever it starts is killed with it
    said = os.open(home / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    notes = Notes(events)
    results = run(study, out=home / "out", on=Here(), listener=notes)
    notes.stage("reporting")
    report.write(results.path)
    notes.stage("done")
