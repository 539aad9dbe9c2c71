"""A study that ends in a second: a text of few words, a narrow model, few steps; and an executor that works
on it in this process."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.study.cellwork import Workplace
from attnlab.study.executors import Listener
from attnlab.study.store import Cell, Store

DECLARATION = """\
name = "small"
question = "Does it matter how attention is computed?"
seeds = 2

[corpus]
part = "text"
train = "text.txt"
block = 4

[tokens]
part = "words"
minimum = 1

[model]
layers = 1
heads = 2
width = 16
context = 16

[training]
steps = 12
batch = 8
evaluations = 2

[measure]
sentences = ["the cat sees a dog", "nobody knows"]
samples = 2
train_tokens = 100
curve_tokens = 60
prefix_tokens = 60

[[arms]]
name = "dot"

[[arms]]
name = "additive"
score = "additive"
"""


def write_corpus(path: Path, lines: int = 160, seed: int = 0) -> None:
    """Sentences of a small grammar, so that there is something to learn."""
    draw = random.Random(seed)
    nouns, verbs = ("cat", "dog", "bird", "fish", "horse"), ("sees", "hears", "follows", "likes")
    path.write_text(
        "\n".join(
            " and ".join(
                f"{draw.choice('ax')} {draw.choice(nouns)} {draw.choice(verbs)} the {draw.choice(nouns)}"
                for _ in range(draw.choice([1, 1, 2]))
            )
            for _ in range(lines)
        )
        + "\n"
    )


class GoesOn:
    """Nobody wishes that it stops."""

    to_stop = False


class InProcess:
    """An executor without processes."""

    def __init__(self) -> None:
        self.worked_on: list[Cell] = []

    def plan(self, cells: int, threads: int | None = None) -> dict[str, Any]:
        return {"executor": "in-process", "threads": 1}

    def run(self, store: Store, cells: Sequence[Cell], plan: Mapping[str, Any], listener: Listener) -> None:
        workplace = Workplace(store, store.study())
        for cell in cells:
            self.worked_on.append(cell)
            workplace.work_on(cell, lambda event, about: None, GoesOn())  # type: ignore[arg-type]
            listener.ended(cell)


def measured(plain: Mapping[str, Any]) -> dict[tuple[str, int], tuple[str, Mapping[str, float]]]:
    """What a `results.json` says that a clock does not decide."""
    return {
        (arm["name"], run["seed"]): (run["status"], run["metrics"])
        for arm in plain["arms"]
        for run in arm["runs"]
    }


def but_for_clocks(plain: Any) -> Any:
    """The same without what a clock decides, at any depth: seconds, and what was done in one."""
    if isinstance(plain, Mapping):
        return {
            key: but_for_clocks(value)
            for key, value in plain.items()
            if not key.endswith(("seconds", "_per_second"))
        }
    return [but_for_clocks(value) for value in plain] if isinstance(plain, list) else plain


def records(out: Path) -> dict[str, Any]:
    """Everything runs measured, clocks aside."""
    return {
        str(path.relative_to(out)): but_for_clocks(json.loads(path.read_text("utf-8")))
        for path in sorted(out.glob("runs/*/*/result.json"))
    }
