"""Stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.optim import Optimizer as TorchOptimizer

from attnlab.spec import PositiveFloat, Rate
from attnlab.training.optimizers.optimizer import Optimizer, trained
from attnlab.training.optimizers.uncompiled import uncompiled


@dataclass(frozen=True, kw_only=True)
class Sgd(Optimizer):
    """Stochastic gradient descent with momentum."""

    learning_rate: PositiveFloat = 0.1
    momentum: Rate = 0.9
    weight_decay: Rate = 0.0

    def build(self, model: nn.Module) -> TorchOptimizer:
        return uncompiled(torch.optim.SGD)(
            trained(model),
            lr=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            fused=True,
        )
