"""How a model is trained: the section of a declaration."""

from __future__ import annotations

from typing import Literal, Self

import torch
from pydantic import model_validator

from attnlab.spec import Positive, PositiveFloat, Spec
from attnlab.training.device import Device
from attnlab.training.optimizers import AdamW, Optimizer
from attnlab.training.precision import Precision, gains_by_bfloat16, settled
from attnlab.training.schedules import Constant, Schedule


class Training(Spec):
    """Budget, batches, optimiser. The budget is one of `steps`, `epochs`, `tokens`; one epoch by default."""

    steps: Positive | None = None
    epochs: PositiveFloat | None = None
    tokens: Positive | None = None
    batch: Positive = 32  # sequences per step
    accumulate: Positive = 1  # pieces in which a batch is worked through; the result is the same
    clip: PositiveFloat | None = 1.0  # largest norm of the gradient
    optimizer: Optimizer = AdamW()
    schedule: Schedule = Constant()
    precision: Precision = "auto"  # "bfloat16-head" where the machine gains by it, else "float32"
    device: Device = "cpu"
    evaluations: Positive = 5  # how often train and dev loss are measured on the way, the end included
    evaluate_every: Positive | None = None  # in steps, and at the end: in place of so many evaluations
    keep: Literal["last", "best"] = "last"  # which state is tested: the last one, or the best on dev
    patience: Positive | None = None  # evaluations without a better one after which a run ends early

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        given = [name for name in ("steps", "epochs", "tokens") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"a budget is given in one unit, not in {' and '.join(given)}")
        if self.patience is not None and self.keep == "last":
            raise ValueError('a run that ends early tests its best state: patience goes with keep = "best"')
        return self

    def evaluate_at(self, steps: int) -> set[int]:
        """The steps after which a run of so many is evaluated."""
        if self.evaluate_every is not None:
            return {*range(self.evaluate_every, steps, self.evaluate_every), steps}
        return {round(steps * k / self.evaluations) for k in range(1, self.evaluations + 1)}

    def resolve_steps(self, per_epoch: int, tokens_per_epoch: int) -> int:
        """The number of steps that the budget comes to on a training split."""
        if self.steps is not None:
            return self.steps
        if self.tokens is not None:
            return max(1, round(self.tokens * per_epoch / tokens_per_epoch))
        return max(1, round((self.epochs or 1.0) * per_epoch))

    @property
    def head_dtype(self) -> torch.dtype:
        chosen = settled(self.precision, gains_by_bfloat16())
        return torch.bfloat16 if chosen == "bfloat16-head" else torch.float32

    def settled(self, bfloat16: bool) -> Training:
        """With `auto` replaced by what it comes to on a machine that gains by bfloat16 or does not."""
        return self.model_copy(update={"precision": settled(self.precision, bfloat16)})
