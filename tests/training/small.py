"""A small split of random sequences, a small model, and a run that trains it: what these tests share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attnlab.model import Decoder, DecoderModel
from attnlab.tokens import Encoded
from attnlab.tokens.batches import Batches
from attnlab.training import NextToken, Run, Training

VOCABULARY = 37
SPEC = Decoder(layers=1, heads=2, width=16, context=16, dropout=0.2)


def split_of(lengths: list[int], seed: int = 0) -> Encoded:
    """Random sequences with these numbers of predictions, a document each."""
    sizes = np.asarray(lengths) + 1
    return Encoded(
        ids=np.random.default_rng(seed).integers(3, VOCABULARY, sizes.sum()).astype(np.int32),
        starts=np.concatenate([[0], sizes.cumsum()]),
        document=np.arange(len(sizes), dtype=np.int32),
        names=tuple(f"document {i}" for i in range(len(sizes))),
        bytes=np.asarray(lengths) * 5,
        size=VOCABULARY,
        start=0,
        stop=1,
        unknown=2,
    )


SPLIT = split_of([5, 16, 1, 9, 12, 3, 8, 16, 2, 7, 11, 4, 6])


class Quiet:
    """An observer that keeps the rows, saves at given steps, and stops, or breaks down, at another."""

    def __init__(
        self, *, save_at: tuple[int, ...] = (), stop_at: int | None = None, break_at: int | None = None
    ) -> None:
        self.save_at, self.stop_at, self.break_at = save_at, stop_at, break_at
        self.rows: list[Mapping[str, Any]] = []
        self.notes: list[str] = []
        self.began: list[int] = []
        self.step = 0

    def begin(self, step: int) -> None:
        self.began.append(step)
        self.step = step

    def note(self, text: str) -> None:
        self.notes.append(text)

    def row(self, row: Mapping[str, Any]) -> None:
        self.rows.append(row)

    def should_stop(self) -> bool:
        self.step += 1
        if self.step == self.break_at:
            raise KeyboardInterrupt
        return self.step == self.stop_at

    def should_save(self) -> bool:
        return self.step in self.save_at

    @property
    def losses(self) -> dict[int, float]:
        return {row["step"]: row["loss"] for row in self.rows}


def a_run(
    training: Training,
    *,
    seed: int = 3,
    spec: Decoder = SPEC,
    checkpoint: Path | None = None,
    evaluate: Callable[[], Mapping[str, Any]] = lambda: {"dev_loss": 1.0},
    dtype: torch.dtype = torch.float32,
) -> Run[DecoderModel]:
    model = spec.build(VOCABULARY, seed).to(dtype)
    return Run(
        model=model,
        objective=NextToken(dtype),
        batches=Batches(SPLIT, training.batch, seed),
        training=training,
        steps=training.resolve_steps(4, SPLIT.n_targets),
        seed=seed,
        evaluate=evaluate,
        checkpoint=checkpoint,
    )


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def same_bits(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
