"""A study that tunes a tiny encoder, with a small search: a head, a search, and arms to be put together."""

from __future__ import annotations

from pathlib import Path

from ..adapt import tiny

HEAD = """\
name = "small"
question = "How much of it must be tuned?"
kind = "tuning"
seeds = 2

[corpus]
part = "labelled"
train = "train.txt"
dev = "dev.txt"
test = "test.txt"

[model]
checkpoint = "./bert"
longest = 20
products = "float32"

[training]
epochs = 2
batch = 16
optimizer = { part = "adam-w", learning_rate = 1e-2 }

"""
# Far from these rates so small an encoder gives one answer for everything, and its arm is invalid.
SEARCH = """\
[search]
part = "tpe"
trials = 3
first = 2

[search.space]
learning_rate = { low = 4e-3, high = 1.2e-2 }
batch = [8, 16]

"""


def arms(*named: str) -> str:
    return "".join(f"[[arms]]\nname = {name}\n" for name in named)


def write_texts(folder: Path) -> Path:
    """The labelled texts, and the encoder."""
    tiny.write_labelled(folder, train=128, dev=40, test=60)
    tiny.bert(folder / "bert")
    return folder
