"""Optimisers, as parts of a declaration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn
from torch.optim import Optimizer as TorchOptimizer

from attnlab.spec import Part, PositiveFloat, Rate


class Optimizer(Part, family="optimizer"):
    """A rule by which gradients change parameters."""

    learning_rate: float

    def build(self, model: nn.Module) -> TorchOptimizer:
        raise TypeError(f"the optimizer {self.name!r} builds nothing")


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
        decayed, others = _by_decay(model)
        groups = [
            {"params": decayed, "weight_decay": self.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(
            groups, lr=self.learning_rate, betas=(self.beta1, self.beta2), eps=self.epsilon, fused=True
        )


@dataclass(frozen=True, kw_only=True)
class Sgd(Optimizer):
    """Stochastic gradient descent with momentum."""

    learning_rate: PositiveFloat = 0.1
    momentum: Rate = 0.9
    weight_decay: Rate = 0.0

    def build(self, model: nn.Module) -> TorchOptimizer:
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            fused=True,
        )


def _by_decay(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    linear = {id(m.weight) for m in model.modules() if isinstance(m, nn.Linear)}
    embedded = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    trained: Iterable[nn.Parameter] = [p for p in model.parameters() if p.requires_grad]
    decayed = [p for p in trained if id(p) in linear - embedded]
    return decayed, [p for p in trained if id(p) not in linear - embedded]
