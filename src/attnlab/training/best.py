"""The best state a run went through, by what its evaluations saw on dev; never by the test split.

It is kept in a file of its own beside the checkpoint. Evaluations come out the same when a run goes on after
an interruption, so whatever the file holds beyond the checkpoint is written again before it counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torch import Tensor, nn

from attnlab.training.checkpoint import Checkpoint


@dataclass(frozen=True)
class Watched:
    """The measure of an evaluation that says how good a state is."""

    name: str = "dev_loss"
    better: Literal["lower", "higher"] = "lower"

    def is_better(self, value: float, than: float | None) -> bool:
        return than is None or (value < than if self.better == "lower" else value > than)


class Best:
    """Parameters put aside, in a file or, where the run has none, in memory."""

    def __init__(self, checkpoint: Path | None) -> None:
        # By the checkpoint's own name: a folder may hold several, as of a pretraining and what follows it.
        self.path = checkpoint.with_stem(f"{checkpoint.stem}.best") if checkpoint else None
        self._values: Mapping[str, Tensor] = {}

    def keep(self, model: nn.Module, step: int) -> None:
        if self.path is not None:
            Checkpoint.of(model, None, {"step": step}).write(self.path)
        else:
            self._values = {name: value.detach().clone() for name, value in model.state_dict().items()}

    def restore(self, model: nn.Module) -> None:
        if self.path is not None:
            Checkpoint.read(self.path).restore(model)
        else:
            model.load_state_dict(self._values)
