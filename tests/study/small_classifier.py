"""A study of classifiers that ends in a second: two sorts of short texts, a narrow encoder, few steps."""

from __future__ import annotations

import random
from pathlib import Path

DECLARATION = """\
name = "small"
question = "Is it about the sea?"
kind = "classifier"
seeds = 2

[corpus]
part = "labelled"
train = "train.txt"
test = "test.txt"

[tokens]
part = "words"
minimum = 1

[model]
layers = 1
heads = 2
width = 16
context = 12

[training]
steps = 30
batch = 16
evaluations = 2
optimizer = { part = "adam-w", learning_rate = 1e-2 }

[measure]
probes = ["a ship sails home"]

[[arms]]
name = "mean"

[[arms]]
name = "first"
pool = "class-token"
"""

PRETRAINED = """
[[arms]]
name = "pretrained"
start = { part = "pretrained", training = { steps = 8, batch = 8, evaluations = 2 } }
"""


def lines(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    things = {"sea": ("ship", "wave", "fish", "sail"), "land": ("horse", "field", "tree", "road")}
    found = []
    for _ in range(count):
        label = draw.choice(sorted(things))
        words = [
            draw.choice(things[label]) if draw.random() < 0.5 else draw.choice("abcdefgh") for _ in range(6)
        ]
        found.append(f"{label} {' '.join(words)}")
    return found


def write_study(folder: Path, *more: str, seen: int = 10) -> Path:
    """The declaration beside its texts; so many of the test texts stand in train too."""
    train = lines(120, seed=0)
    (folder / "train.txt").write_text("\n".join(train) + "\n")
    (folder / "test.txt").write_text("\n".join([*lines(60, seed=1), *train[:seen]]) + "\n")
    (folder / "small.toml").write_text(DECLARATION + "".join(more))
    return folder / "small.toml"
