"""Adam with decoupled weight decay."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.optim import Optimizer as TorchOptimizer

from attnlab.spec import PositiveFloat, Rate
from attnlab.training.optimizers.optimizer import Optimizer, by_decay
from attnlab.training.optimizers.uncompiled import uncompiled


@dataclass(frozen=True, kw_only=True)
class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019, https://arxiv.org/abs/1711.05101).

    Weight decay acts on the matrices of linear layers, not on embeddings, norms and biases.
    """

    learning_rate: PositiveFloat = 5e-4
    beta1: Rate = 0.9
    beta2: Rate = 0.95
    epsilon: PositiveFloat = 1e-8
    weight_decay: Rate = 0.1

    def build(self, model: nn.Module) -> TorchOptimizer:
        return uncompiled(torch.optim.AdamW)(
            by_decay(model, self.weight_decay),
            lr=self.learning_rate,
            betas=(self.beta1, self.beta2),
            eps=self.epsilon,
            fused=True,
        )
