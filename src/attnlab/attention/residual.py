"""The linear layer at the end of a residual branch."""

from __future__ import annotations

from torch import nn


class EndsResidual(nn.Linear):
    """A linear layer whose output is added to the residual stream.

    A type of its own so that initial values can find it: they are made smaller the more layers add to the
    stream (`model.initial`).
    """
