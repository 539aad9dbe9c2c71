"""The weights behind an operator, recovered by letting it mix the rows of an identity matrix.

Shapes: B batch, H heads, T queries, S keys, d width.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from attnlab.audit.operators.subject import Inputs, Operator
from attnlab.audit.rule import NotJudged, Seen, fine, found, rule, skipped

_CLOSE = 1e-3  # row sums, shares: an operator in 16 bits still tells 1 from what is not 1 by this


class NoWeights(NotJudged):
    """The operator has no weights to recover, and why."""


def recovered(operator: Operator, inputs: Inputs | None = None, *, causal: bool = True) -> Tensor:
    """(B, H, T, S): how much each output takes of each value, where that is what the operator does."""
    if operator.inputs == ("x",):
        raise NoWeights("no weights to look at: its weights are inside the module")
    d = operator.home.d
    sizes = replace(operator.home, T=d)
    inputs = inputs or operator.make(sizes, seed=21)
    identity = torch.eye(d, dtype=operator.dtype).expand(sizes.B, sizes.H, d, d).contiguous()
    turned = identity[..., torch.randperm(d, generator=torch.Generator().manual_seed(2))]
    try:
        with torch.no_grad():
            weights = operator({**inputs, "v": identity}, causal=causal)
            again = operator({**inputs, "v": turned}, causal=causal) @ turned.mT
            twice = operator({**inputs, "v": 2 * identity}, causal=causal)
    except Exception as error:  # it does not run on as many positions as it has channels
        raise NoWeights(
            f"no weights to look at: it does not run at length {d}, its width: {type(error).__name__}"
        ) from None
    if weights.shape != identity.shape:
        raise NoWeights(
            f"no weights to look at: outputs of shape {tuple(weights.shape)} hold no square of weights"
        )
    size = weights.abs().max().clamp_min(1e-30)
    if not bool(((weights - again).abs() <= 1e-3 * size).all()):
        raise NoWeights("no weights to look at: its channels do not share one weight per key")
    if not bool(((2 * weights - twice).abs() <= 1e-3 * size).all()):
        raise NoWeights("no weights to look at: its output is not linear in the values")
    return weights.double()


def score_slope(operator: Operator) -> float | None:
    """By how much a log-weight grows when the dot product of its query and key grows by one.

    Two sets of queries are compared, so that whatever depends on positions alone cancels; and each row is
    centred, so that its normaliser does.
    """
    sizes = replace(operator.home, T=operator.home.d)
    one, two = (operator.make(sizes, seed) for seed in (21, 22))
    two["k"] = one["k"]
    try:
        logs = [recovered(operator, inputs).log() for inputs in (one, two)]
    except NoWeights:
        return None
    products = [inputs["q"].double() @ inputs["k"].double().mT for inputs in (one, two)]
    seen = torch.isfinite(logs[0]) & torch.isfinite(logs[1]) & torch.ones_like(logs[0]).tril().bool()
    x, y = (_centred(pair[0] - pair[1], seen) for pair in (products, logs))
    if not bool(seen.sum() > 2 * seen[..., 0].numel()) or not (x * x).sum() > 0:
        return None
    slope = (x * y).sum() / (x * x).sum()
    left = ((y - slope * x) ** 2).sum() / (y * y).sum().clamp_min(1e-30)
    return slope.item() if left < 1e-4 else None


def _centred(values: Tensor, seen: Tensor) -> Tensor:
    values = torch.where(seen, values, 0.0)
    mean = values.sum(-1, keepdim=True) / seen.sum(-1, keepdim=True).clamp_min(1)
    return torch.where(seen, values - mean, 0.0)


@rule(
    "weights",
    tests="the weights recovered from identity values: what rows and columns sum to, signs, each "
    "position's weight "
    "on itself, how log-weights follow the dot product",
    claims="the weights are not normalised over the queries instead of the keys",
    threshold="sums within 1e-3 of one, which is apart from any other normalisation in any precision",
)
def weights(operator: Operator) -> Seen:
    weights_BHTS = recovered(operator)
    if not bool(torch.isfinite(weights_BHTS).all()):
        return skipped("weights are not all numbers: see finite")
    rows, columns = weights_BHTS.sum(-1), weights_BHTS.sum(-2)
    rows_are_one = bool(((rows - 1).abs() < _CLOSE).all())
    columns_are_one = bool(((columns - 1).abs() < _CLOSE).all())
    slope = score_slope(operator)
    detail = {
        "row_sums": [rows.min().item(), rows.max().item()],
        "column_sums": [columns.min().item(), columns.max().item()],
        "self_weight": weights_BHTS.diagonal(dim1=-2, dim2=-1).mean().item(),
        "negative": (weights_BHTS < -1e-9).double().mean().item(),
        "slope": slope,
        "slope_times_sqrt_width": None if slope is None else slope * math.sqrt(operator.home.d),
    }
    if columns_are_one and not rows_are_one:
        return found(
            "each key's weights sum to 1 over the queries, and a query's over the keys to "
            f"{rows.min():.3g} to "
            f"{rows.max():.3g}: the softmax runs over the wrong axis",
            **detail,
        )
    sums = "rows sum to 1" if rows_are_one else f"rows sum to {rows.min():.3g} to {rows.max():.3g}"
    parts = [sums, f"{detail['self_weight']:.2g} of the weight on the position itself"]
    if slope is not None:
        parts.append(f"log-weights grow by {slope:.4g} with q·k (1/√d is {operator.home.d**-0.5:.4g})")
    return fine(", ".join(parts), **detail)


@rule(
    "causal-flag",
    tests="with causal=False the future counts",
    claims="the flag does what it says",
    threshold="any movement beyond rounding",
)
def causal_flag(operator: Operator) -> Seen:
    if not operator.takes_causal:
        return skipped("there is no causal flag")
    inputs = operator.make(operator.home, seed=13)
    with torch.no_grad():
        closed = operator(inputs, causal=True)
        opened = operator(inputs, causal=False)
    if torch.equal(closed, opened):
        return skipped("the flag is ignored: causal=False gives what causal=True gives", ignored=True)
    return fine("causal=False gives another output", ignored=False)
