"""How many parameters a model has, derived from its sizes and held against the model itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from torch import nn


@dataclass(frozen=True)
class Row:
    """One line of the derivation: `copies` times a tensor of the shape the formula names."""

    name: str
    formula: str
    copies: int
    count: int

    def plain(self) -> dict[str, Any]:
        return {"name": self.name, "formula": self.formula, "copies": self.copies, "count": self.count}


def count_parameters(model: nn.Module) -> int:
    """Trainable numbers, each counted once however often it is used."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def derive(model: nn.Module, sizes: dict[str, int]) -> list[Row]:
    """The count as rows of products, layers that repeat taken together; `sizes` names the numbers."""
    rows: dict[str, tuple[str, int, int]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        general = re.sub(r"\.\d+\.", ".*.", name)
        formula = " × ".join(_named(size, sizes) for size in parameter.shape)
        _, copies, count = rows.get(general, (formula, 0, 0))
        rows[general] = (formula, copies + 1, count + parameter.numel())
    return [Row(name, formula, copies, count) for name, (formula, copies, count) in rows.items()]


def _named(size: int, sizes: dict[str, int]) -> str:
    for name, value in sizes.items():
        if size == value:
            return f"{name} {size:,}"
    for name, value in sizes.items():
        if value > 1 and size % value == 0 and size // value <= 8:
            return f"{size // value}·{name} {size:,}"
    return f"{size:,}"
