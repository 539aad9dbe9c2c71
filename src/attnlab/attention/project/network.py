"""Projections as small networks: d hidden layers with ReLU, then a linear one, for any of q, k and v.

Cost O(T·D²) per layer.

Shapes: N tokens, D model width, H heads, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from attnlab.attention.dims import Dims
from attnlab.attention.project.project import Project, Projection
from attnlab.attention.project.role import ROLES, Role
from attnlab.spec import Count


@dataclass(frozen=True, kw_only=True)
class Network(Project):
    """`hidden_layers` layers of the model's width before the linear one; `on` names what has them."""

    hidden_layers: Count = 1
    on: tuple[Role, ...] = ROLES
    bias: bool = True

    def build(self, dims: Dims) -> NetworkProjection:
        return NetworkProjection(self, dims)


class NetworkProjection(Projection):
    """Linear layers named as in `Separate`, behind the hidden layers of those that have any."""

    def __init__(self, spec: Network, dims: Dims) -> None:
        super().__init__()
        self.heads = dims.heads
        for role in ROLES:
            depth = spec.hidden_layers if role in spec.on else 0
            hidden = [HiddenLayer(dims.width, dims.width, spec.bias) for _ in range(depth)]
            self.add_module(f"before_{role}", nn.Sequential(*hidden))
            self.add_module(role, nn.Linear(dims.width, dims.width, spec.bias))

    def forward(self, x_ND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (
            self.get_submodule(role)(self.get_submodule(f"before_{role}")(x_ND)).unflatten(
                -1, (self.heads, -1)
            )
            for role in ROLES
        )
        return q, k, v


class HiddenLayer(nn.Linear):
    """A linear layer with a ReLU after it."""

    def init_weights(self) -> None:
        """Kaiming's values: at a deviation of 0.02 nothing would come through thirty of these."""
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x_ND: Tensor) -> Tensor:
        return super().forward(x_ND).relu()
