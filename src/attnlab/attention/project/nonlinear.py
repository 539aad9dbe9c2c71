"""One nonlinearity after one of the three linear projections.

Same parameters as `Separate`, same cost.

Shapes: N tokens, D model width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.attention.dims import Dims
from attnlab.attention.project.project import Project, Projection
from attnlab.attention.project.role import Role
from attnlab.attention.project.separate import SeparateProjection

_FUNCTIONS = {"relu": torch.relu, "tanh": torch.tanh, "gelu": F.gelu}


@dataclass(frozen=True, kw_only=True)
class Nonlinear(Project):
    """`function` applied to the queries, the keys or the values."""

    on: Role = "query"
    function: Literal["relu", "tanh", "gelu"] = "relu"
    bias: bool = True

    def build(self, dims: Dims) -> Projection:
        return NonlinearProjection(self, dims)


class NonlinearProjection(SeparateProjection):
    """Three linear layers, and the nonlinearity behind one of them."""

    def __init__(self, spec: Nonlinear, dims: Dims) -> None:
        super().__init__(dims, spec.bias)
        self.on, self.function = spec.on, _FUNCTIONS[spec.function]

    def forward(self, x_ND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().forward(x_ND)
        bent = {"query": q, "key": k, "value": v}
        bent[self.on] = self.function(bent[self.on])
        return bent["query"], bent["key"], bent["value"]
