"""Adam's second moments kept as a row and a column of each matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.optim import Optimizer as TorchOptimizer

from attnlab.spec import PositiveFloat, Rate
from attnlab.training.optimizers.optimizer import Optimizer, by_decay
from attnlab.training.optimizers.uncompiled import uncompiled


@dataclass(frozen=True, kw_only=True)
class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern 2018, https://arxiv.org/abs/1804.04235) as torch has it: the rate is the
    largest step relative to the size of a tensor."""

    learning_rate: PositiveFloat = 1e-2
    weight_decay: Rate = 0.0

    def build(self, model: nn.Module) -> TorchOptimizer:
        return uncompiled(torch.optim.Adafactor)(
            by_decay(model, self.weight_decay), lr=self.learning_rate, foreach=False
        )
