"""A step size for every number, by all the gradients it has seen."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.optim import Optimizer as TorchOptimizer

from attnlab.spec import PositiveFloat, Rate
from attnlab.training.optimizers.optimizer import Optimizer, by_decay
from attnlab.training.optimizers.uncompiled import uncompiled


@dataclass(frozen=True, kw_only=True)
class Adagrad(Optimizer):
    """Adagrad (Duchi, Hazan and Singer 2011, https://jmlr.org/papers/v12/duchi11a.html)."""

    learning_rate: PositiveFloat = 1e-2
    epsilon: PositiveFloat = 1e-10
    weight_decay: Rate = 0.0

    def build(self, model: nn.Module) -> TorchOptimizer:
        return uncompiled(torch.optim.Adagrad)(
            by_decay(model, self.weight_decay), lr=self.learning_rate, eps=self.epsilon, fused=True
        )
