"""Several optimisers that each have some of the parameters, as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.optim import Optimizer


class Joined(Optimizer):
    """Steps them all. Their groups are shared, not copied: whoever sets a rate sets theirs."""

    def __init__(self, parts: Sequence[Optimizer]) -> None:
        self.parts = tuple(parts)
        super().__init__([group for part in self.parts for group in part.param_groups], {})
        self.param_groups = [group for part in self.parts for group in part.param_groups]

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for part in self.parts:
            part.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """As one optimiser would give it: parameters numbered through."""
        state: dict[int, Any] = {}
        groups: list[dict[str, Any]] = []
        first = 0
        for part in self.parts:
            own = part.state_dict()
            state |= {first + number: values for number, values in own["state"].items()}
            groups += [{**g, "params": [first + n for n in g["params"]]} for g in own["param_groups"]]
            first += _size(part)
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        first, seen = 0, 0
        for part in self.parts:
            last = first + _size(part)
            groups = state_dict["param_groups"][seen : seen + len(part.param_groups)]
            part.load_state_dict(
                {
                    "state": {n - first: v for n, v in state_dict["state"].items() if first <= n < last},
                    "param_groups": [{**g, "params": [n - first for n in g["params"]]} for g in groups],
                }
            )
            first, seen = last, seen + len(groups)
        # Theirs were replaced by what was loaded.
        self.param_groups = [group for part in self.parts for group in part.param_groups]


def _size(part: Optimizer) -> int:
    return sum(len(group["params"]) for group in part.param_groups)
