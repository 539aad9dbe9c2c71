"""A study of distillation from a teacher of a few thousand parameters: every lesson, few steps."""

from __future__ import annotations

from pathlib import Path

from tests.adapt.distil.tiny_chat import chat_llama, write_dialogues

DECLARATION = """\
name = "tiny"
question = "Whose texts does a student learn from best?"
kind = "distillation"
seeds = 2

[corpus]
part = "table"
folder = "data"
train = "train.jsonl"
dev = "dev.jsonl"
test = "test.jsonl"
text = "dialogue"
references = ["summary", "summary1", "summary2"]

[take]
train = 12

[prompt]
instruction = "say it short {text}"
longest = 40

[teacher]
checkpoint = "teacher"

[student]
checkpoint = "teacher"
layers_kept = [0, 2]

[writing]
recipe = "greedy"
longest = 6
batch = 4

[training]
steps = 6
batch = 4
accumulate = 2
evaluations = 2

[[arms]]
name = "people's"

[[arms]]
name = "teacher"
lesson = "the-teacher"

[[arms]]
name = "untuned"
lesson = "nothing"

[[arms]]
name = "teacher's"
lesson = { part = "teachers-texts", references = 0.25 }

[[arms]]
name = "logits"
lesson = { part = "teachers-logits", temperature = 2.0, divergence = "reverse", hard = 0.2, references = 0.5 }
"""


def write_study(folder: Path) -> Path:
    """A teacher, dialogues, and the declaration."""
    chat_llama(folder / "teacher")
    write_dialogues(folder / "data")
    (folder / "tiny.toml").write_text(DECLARATION)
    return folder / "tiny.toml"
