"""Steps of equal size in every direction of a matrix; Adam for what is no matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.optim import Optimizer as TorchOptimizer

from attnlab.spec import PositiveFloat, Rate
from attnlab.training.optimizers.joined import Joined
from attnlab.training.optimizers.optimizer import Optimizer, trained
from attnlab.training.optimizers.uncompiled import uncompiled


@dataclass(frozen=True, kw_only=True)
class Muon(Optimizer):
    """Muon (Jordan 2024, https://kellerjordan.github.io/posts/muon) on the matrices inside a model: its
    momentum, made orthogonal, and scaled to the size of a step of AdamW, so that AdamW's rates suit it.

    Embeddings, heads, norms and biases are AdamW's, at the same rate.
    """

    learning_rate: PositiveFloat = 5e-4
    momentum: Rate = 0.95
    weight_decay: Rate = 0.1
    beta1: Rate = 0.9
    beta2: Rate = 0.95

    def build(self, model: nn.Module) -> TorchOptimizer:
        inside = _inside(model)
        matrices = [p for p in trained(model) if id(p) in inside]
        others = [p for p in trained(model) if id(p) not in inside]
        made: list[TorchOptimizer] = []
        if matrices:
            made.append(
                uncompiled(torch.optim.Muon)(
                    matrices,
                    lr=self.learning_rate,
                    momentum=self.momentum,
                    weight_decay=self.weight_decay,
                    adjust_lr_fn="match_rms_adamw",
                )
            )
        if others:
            betas = (self.beta1, self.beta2)
            made.append(
                uncompiled(torch.optim.AdamW)(
                    others, lr=self.learning_rate, betas=betas, weight_decay=0.0, fused=True
                )
            )
        return Joined(made)


def _inside(model: nn.Module) -> set[int]:
    """The weights of linear layers, but for the last one, which gives the answer."""
    linear = [m.weight for m in model.modules() if isinstance(m, nn.Linear)]
    embedded = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    return {id(weight) for weight in linear[:-1]} - embedded
