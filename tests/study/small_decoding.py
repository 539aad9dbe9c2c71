"""A study of decoding strategies on a decoder that it trains within: few prompts, short texts."""

from __future__ import annotations

from pathlib import Path

from .small import write_corpus

DECLARATION = """\
name = "strategies"
question = "Which strategy repeats itself?"
kind = "decoding"
seeds = 2

[trained]
corpus = { part = "text", train = "text.txt", block = 4 }
tokens = { part = "words", minimum = 1 }
model = { layers = 1, heads = 2, width = 16, context = 40 }
training = { steps = 30, batch = 8, evaluations = 1, optimizer = { part = "adam-w", learning_rate = 1e-2 } }

[prompts]
texts = ["a cat sees"]
held_out = 3
words = 2

[written]
continuations = 4
longest = 12
shown = 2
steps = [1, 3]
likeliest = 5

[[arms]]
name = "plain"
strategy = "plain"

[[arms]]
name = "greedy"
strategy = "greedy"

[[arms]]
name = "two filters"
strategy = "temperature=0.7+top-p=0.7"

[[arms]]
name = "beam"
strategy = "beam=3"
"""


def write_study(folder: Path) -> Path:
    """The declaration beside its corpus."""
    write_corpus(folder / "text.txt")
    (folder / "strategies.toml").write_text(DECLARATION)
    return folder / "strategies.toml"
