"""What an optimiser is, and which parameters a weight decay acts on."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.optim import Optimizer as TorchOptimizer

from attnlab.spec import Part


class Optimizer(Part, family="optimizer"):
    """A rule by which gradients change parameters."""

    learning_rate: float

    def build(self, model: nn.Module) -> TorchOptimizer:
        raise TypeError(f"the optimizer {self.name!r} builds nothing")


def trained(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that are to change."""
    return [p for p in model.parameters() if p.requires_grad]


def by_decay(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """The matrices of linear layers, which decay; embeddings, norms and biases, which do not."""
    linear = {id(m.weight) for m in model.modules() if isinstance(m, nn.Linear)}
    embedded = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    decayed = [p for p in trained(model) if id(p) in linear - embedded]
    others = [p for p in trained(model) if id(p) not in linear - embedded]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]
