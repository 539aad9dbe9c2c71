"""What the keys of records are called in front of a reader."""

from __future__ import annotations

import re

from attnlab.report import numbers
from attnlab.report.numbers import Spread

_SPLITS = {"train": "train", "dev": "dev", "test": "test"}
_KNOWN = {
    "last_batch_loss": "last training loss",
    "peak_memory_mb": "peak memory, MB",
    "prefix_perplexity": "prefix-only perplexity",
    "ordinary_perplexity": "ordinary perplexity",
    "bits_per_byte": "bits per byte",
    "rouge_1": "ROUGE-1",
    "rouge_2": "ROUGE-2",
    "rouge_l": "ROUGE-L",
    "rouge_lsum": "ROUGE-Lsum",
    "model_loss": "loss under the model",
    "model_perplexity": "perplexity under the model",
    "second_loss": "loss under the second model",
    "second_perplexity": "perplexity under the second model",
    "distinct_1": "distinct-1",
    "distinct_2": "distinct-2",
    "distinct_3": "distinct-3",
    "self_bleu": "self-BLEU",
}


_AT_LENGTH = re.compile(r"test_loss_at_([1-9]\d*)")


def length_of(key: str) -> int | None:
    """How many tokens a block had: `test_loss_at_64` → 64; None for any other key."""
    found = _AT_LENGTH.fullmatch(key)
    return int(found[1]) if found else None


def label(key: str) -> str:
    """`test_bits_per_byte` → `test bits per byte`."""
    if key in _KNOWN:
        return _KNOWN[key]
    split, _, rest = key.partition("_")
    if split in _SPLITS and rest:
        return f"{split} {_KNOWN.get(rest, rest.replace('_', ' '))}"
    return key.replace("_", " ")


def quoted(name: str) -> str:
    """In a sentence, a name of several words needs its ends shown."""
    return name if name.replace("-", "").replace("_", "").isalnum() else f"“{name}”"


def shown(key: str, found: Spread | None) -> str:
    """A measure over seeds, in the unit its key calls for."""
    if found is not None and key.endswith("seconds"):
        return numbers.duration(found.mean)
    return numbers.with_error(found)
