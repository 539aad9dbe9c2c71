"""A weighted mean of everything seen so far, whose weights are given as logarithms: a decoding state of
constant size, exact however large or small the weights are.

Shapes: B sequences; whatever else the weights and the values broadcast to.
"""

from __future__ import annotations

import torch
from torch import Tensor


class RunningMean:
    """Σ e^l v / Σ e^l, and log Σ e^l."""

    def __init__(self) -> None:
        self._log_weight: Tensor | None = None
        self._mean: Tensor | None = None

    def add(self, log_weight: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Take in one more; give back the mean and the logarithm of the whole weight."""
        if self._mean is None or self._log_weight is None:
            self._log_weight, self._mean = (
                log_weight,
                value.expand(torch.broadcast_shapes(log_weight.shape, value.shape)),
            )
        else:
            self._log_weight = torch.logaddexp(self._log_weight, log_weight)
            share = (log_weight - self._log_weight).exp()
            self._mean = self._mean + share * (value - self._mean)
        return self._mean, self._log_weight

    def keep(self, rows_B: Tensor) -> None:
        if self._mean is not None and self._log_weight is not None:
            self._mean, self._log_weight = self._mean[rows_B], self._log_weight[rows_B]
