"""Outputs that fade when something large comes later: a normaliser gave way, and nothing new came in.

Shapes: B batch, H heads, T time, d width of a head.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.audit.operators.change import LARGER, with_another_future
from attnlab.audit.operators.subject import Inputs, Operator

# A weight that is renormalised with an epsilon in the denominator shrinks by up to this much.
EPSILON_SHRINKAGE = 1e-5


def faded(before: Tensor, after: Tensor, limit: float, most: float) -> bool:
    """Whether each row of `after` is its row of `before` times a number from 1 - `most` to 1."""
    square = (before * before).sum(-1, keepdim=True).clamp_min(1e-300)
    share = (before * after).sum(-1, keepdim=True) / square
    if ((after - share * before).abs() > limit).any():
        return False
    return bool(((share >= 1 - most - 1e-9) & (share <= 1 + EPSILON_SHRINKAGE)).all())


def only_underflowed(
    operator: Operator, inputs: Inputs, changed: Inputs, cut: int, *, training: bool
) -> bool:
    """Whether larger keys did no more than make weights of visible keys too small to be told from zero.

    A softmax that subtracts the largest score of all rows, hidden ones included, and then normalises is right
    in exact arithmetic: the largest cancels. So are its relatives. What remains then of a row is made of what
    it was made of, in the same order of weight, and of nothing that comes later.
    """
    if not {"q", "k", "v"} <= inputs.keys():
        return False
    other = with_another_future(changed, ["v"], [cut], LARGER, seed=77)
    one, two = (operator(x, training=training)[..., : cut + 1, :] for x in (changed, other))
    limit = operator.tolerance * LARGER.magnitude * _largest(inputs["v"])
    if not torch.allclose(one, two, rtol=0.0, atol=limit, equal_nan=True):
        return False  # a later value reaches an earlier output
    before, after = (_visible_weights(operator, x, cut, training) for x in (inputs, changed))
    whole = torch.isfinite(after)
    lost = (after == 0) & (before != 0)
    if not (lost | ~whole).any():
        return False
    order = before.argsort(-1)
    steps = after.gather(-1, order).diff(dim=-1)
    return bool((~(steps < -1e-6 * _largest(after))).all() and (after[whole] >= 0).all())


def _visible_weights(operator: Operator, inputs: Inputs, cut: int, training: bool) -> Tensor:
    """(B, H, cut + 1, cut + 1): what rows up to the cut take of values up to it, some values at a time."""
    B, H, T, d = inputs["v"].shape
    columns = []
    for start in range(0, cut + 1, d):
        v = torch.zeros(T, d, dtype=inputs["v"].dtype)
        for place, key in enumerate(range(start, min(start + d, cut + 1))):
            v[key, place] = 1.0
        given = {**inputs, "v": v.expand(B, H, T, d).contiguous()}
        columns.append(operator(given, training=training)[..., : cut + 1, :].double())
    return torch.cat(columns, -1)[..., : cut + 1]


def _largest(x: Tensor) -> float:
    numbers = x[torch.isfinite(x)].abs()
    return numbers.max().item() if numbers.numel() else 0.0
