"""The audit of a pretrained classifier before it is tuned: neither neighbours nor padding reach an answer.

Shapes: B sequences, T tokens of the longest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnlab.adapt.tuned import Tunable
from attnlab.adapt.views import side_by_side
from attnlab.audit.classifiers import RULES, Classifier
from attnlab.record import Check

_LONGEST = 40


def audited(model: Tunable, labels: int, tokenizer: Any, base: Path | None) -> tuple[Check, ...]:
    """In fp64 and evaluation mode, on random tokens that mean nothing of their own."""
    built = model.build(labels, 0, base).double().eval()
    rows = built.inner.get_input_embeddings().weight.shape[0]
    first, last = _plain_tokens(tokenizer, rows)

    def answer(sequences: Sequence[Tensor]) -> Tensor:
        ids = [sequence.numpy() for sequence in sequences]
        ids_BT = side_by_side(ids, tokenizer.pad_token_id)
        mask_BT = side_by_side([row * 0 + 1 for row in ids], 0)
        return built.answer(ids_BT, mask_BT, None)

    subject = Classifier(
        answer=answer,
        vocabulary=last,
        longest=min(model.longest, _LONGEST),
        labels=labels,
        first_token=first,
    )
    with torch.random.fork_rng(devices=[]):
        return tuple(rule(subject) for rule in RULES)


def _plain_tokens(tokenizer: Any, rows: int) -> tuple[int, int]:
    """The widest stretch of ids without special ones."""
    special = sorted({-1, rows, *(i for i in tokenizer.all_special_ids if 0 <= i < rows)})
    gaps = [(b - a, a + 1, b) for a, b in itertools.pairwise(special)]
    _, first, last = max(gaps)
    return first, last
