"""AdamW whose average over the run is what is tested, in the place of a schedule.

Three sequences, as the paper names them: z is stepped, x is its average, and gradients are taken at y between
the two. While training the model holds y; while it is measured, and in the end, x.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.optim import Optimizer as TorchOptimizer

from attnlab.spec import PositiveFloat, Rate
from attnlab.training.optimizers.optimizer import Optimizer, by_decay


@dataclass(frozen=True, kw_only=True)
class ScheduleFree(Optimizer):
    """Schedule-free AdamW (Defazio and others 2024, https://arxiv.org/abs/2405.15682).

    It wants no decaying schedule; a warm-up is well.
    """

    learning_rate: PositiveFloat = 2.5e-3
    beta1: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.9  # how near to the average the gradients are taken
    beta2: Rate = 0.999
    epsilon: PositiveFloat = 1e-8
    weight_decay: Rate = 0.0

    def build(self, model: nn.Module) -> TorchOptimizer:
        groups = by_decay(model, self.weight_decay)
        return Averaging(groups, self.learning_rate, self.beta1, self.beta2, self.epsilon)


class Averaging(TorchOptimizer):
    """The three sequences. `state` holds z and Adam's second moment; x follows from y and z."""

    def __init__(
        self, groups: list[dict[str, Any]], lr: float, beta1: float, beta2: float, epsilon: float
    ) -> None:
        defaults = {"lr": lr, "beta1": beta1, "beta2": beta2, "eps": epsilon, "weight_decay": 0.0}
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for y in group["params"]:
                if y.grad is not None:
                    self._step(y, y.grad, self.state[y], group)

    def _step(self, y: Tensor, grad: Tensor, state: dict[str, Tensor], group: dict[str, Any]) -> None:
        if not state:
            state["z"], state["second"] = y.clone(), torch.zeros_like(y)
            state["step"], state["weights"] = torch.zeros(()), torch.zeros(())
            state["highest"] = torch.zeros(())
        beta1, beta2 = group["beta1"], group["beta2"]
        state["step"] += 1
        state["highest"] = torch.maximum(state["highest"], torch.as_tensor(float(group["lr"])))
        second = state["second"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction = 1 - beta2 ** state["step"].item()
        direction = grad / (second / correction).sqrt_().add_(group["eps"])
        if group["weight_decay"]:
            direction.add_(y, alpha=group["weight_decay"])
        # Later steps, and steps at a higher rate, weigh more in the average.
        weight = state["highest"].item() ** 2
        state["weights"] += weight
        share = weight / state["weights"].item() if weight else 0.0
        y.lerp_(state["z"], share).add_(direction, alpha=group["lr"] * (beta1 * (1 - share) - 1))
        state["z"].sub_(direction, alpha=group["lr"])

    @contextlib.contextmanager
    def evaluated(self) -> Iterator[None]:
        """x in the place of y, for as long as it lasts; y is then put back as it was, to the last bit."""
        kept = [(y, y.detach().clone()) for group in self.param_groups for y in group["params"]]
        self.settle()
        try:
            yield
        finally:
            with torch.no_grad():
                for y, value in kept:
                    y.copy_(value)

    @torch.no_grad()
    def settle(self) -> None:
        """x in the place of y for good: the end of a run."""
        for group in self.param_groups:
            for y in group["params"]:
                if self.state[y]:
                    y.lerp_(self.state[y]["z"], 1 - 1 / group["beta1"])
