"""What a head does, in a few figures: means over the queries of some sequences.

Weights of any kind are taken as shares of their row, so that a head whose rows do not sum to one, or hold
negative weights, can be put beside one whose rows do. The first query of a sequence is left out: in a causal
model it has nothing to choose from.

Shapes: H heads, T tokens of one sequence (queries, then keys), n tokens of a passage that is said twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# What each measure says of a query, in words for a report.
MEASURES = {
    "entropy": "how spread out the weights are, in nats: 0 for one key, log n for n alike",
    "distance": "how many tokens back or ahead the weights reach, on average",
    "first": "the share on the first token",
    "diagonal": "the share on the token itself",
    "previous": "the share on the token before",
    "induction": "on random tokens said twice: the share on what followed the same token the first time",
}


def shares_of(weights_HTT: Floats) -> Floats:
    """Every row as shares of its whole size; a row of zeros stays one."""
    size_HTT = np.abs(weights_HTT)
    total_HT1 = size_HTT.sum(-1, keepdims=True)
    return np.divide(size_HTT, total_HT1, out=np.zeros_like(size_HTT), where=total_HT1 > 0)


def per_query(weights_HTT: Floats) -> dict[str, Floats]:
    """Every measure but induction, for each head and each query from the second on: (H, T - 1)."""
    shares_HTT = shares_of(weights_HTT)[:, 1:]
    keys = np.arange(weights_HTT.shape[-1])
    queries = keys[1:]
    logs_HTT = np.log(np.where(shares_HTT > 0, shares_HTT, 1.0))
    return {
        "entropy": -(shares_HTT * logs_HTT).sum(-1),
        "distance": (shares_HTT * np.abs(queries[:, None] - keys)).sum(-1),
        "first": shares_HTT[:, :, 0],
        "diagonal": shares_HTT[:, queries - 1, queries],
        "previous": shares_HTT[:, queries - 1, queries - 1],
    }


def induction(weights_HTT: Floats, passage: int) -> Floats:
    """(H, n): the share of each token of the second time on what followed the same token the first time.
    The sequence is a start and the passage twice. Olsson et al. 2022, https://arxiv.org/abs/2209.11895."""
    again = np.arange(passage + 1, 2 * passage + 1)
    return shares_of(weights_HTT)[:, again, again - passage + 1]


def measured(maps: Sequence[Floats], passages: Sequence[int]) -> dict[str, list[float]]:
    """A figure for every head, over the queries of all sequences; `passages` says which are said twice."""
    found = [per_query(weights_HTT) for weights_HTT in maps if weights_HTT.shape[-1] > 1]
    figures = {
        name: np.concatenate([one[name] for one in found], axis=1).mean(1)
        for name in (found[0] if found else ())
    }
    twice = [induction(weights, n) for weights, n in zip(maps, passages, strict=True) if n]
    if twice:
        figures["induction"] = np.concatenate(twice, axis=1).mean(1)
    return {name: [round(float(figure), 5) for figure in values] for name, values in figures.items()}
