"""The slow and readable oracle: attention one sequence, one head and one query at a time, as it is defined.

Every operator made of parts is held against it. It shares only the parts with the fast path, and asks them
about a single pair or a single row, with what is hidden really taken out.

Shapes: T tokens of one sequence, D model width, H heads, d head width, n the keys a query sees.
"""

from __future__ import annotations

from functools import singledispatch

import torch
from torch import Tensor

from attnlab.attention.mixer import MixerLayer
from attnlab.attention.operator import AttentionLayer
from attnlab.attention.position import PositionScheme
from attnlab.errors import RequestError


@singledispatch
def mix_slowly(layer: MixerLayer, x_TD: Tensor, position: PositionScheme) -> Tensor:
    """(T, D): what `layer` makes of one sequence, by its definition. A mixer registers its own."""
    raise RequestError(f"no slow reference is registered for {type(layer).__name__}")


@mix_slowly.register
def attend_slowly(layer: AttentionLayer, x_TD: Tensor, position: PositionScheme) -> Tensor:
    """(T, D): what `layer` makes of one sequence."""
    positions_T = torch.arange(len(x_TD))
    q_HTd, k_HTd, v_HTd = _project_one_by_one(layer, x_TD, position)
    bias_HTT = position.bias(positions_T, positions_T)
    rows = []
    for t in range(len(x_TD)):
        heads = []
        for h in range(len(q_HTd)):
            scores = torch.stack([_score(layer, q_HTd[h, t], k_d) for k_d in k_HTd[h]])
            if bias_HTT is not None:
                scores = scores + bias_HTT[h, t]
            heads.append(_weights(layer, scores, positions_T, t) @ v_HTd[h])
        rows.append(layer.merge(torch.cat(heads)))
    return torch.stack(rows)


def _project_one_by_one(
    layer: AttentionLayer, x_TD: Tensor, position: PositionScheme
) -> tuple[Tensor, Tensor, Tensor]:
    turned = []
    for t, x_D in enumerate(x_TD):
        q, k, v = (part.view(1, -1, 1, part.shape[-1]) for part in layer.project(x_D[None]))
        where = torch.tensor([t])
        turned.append((position.turn(q, where), position.turn(k, where), v))
    q, k, v = (torch.cat(part, dim=2)[0] for part in zip(*turned, strict=True))
    group = len(q) // len(k)
    return (
        q,
        torch.stack([k[h // group] for h in range(len(q))]),
        torch.stack([v[h // group] for h in range(len(q))]),
    )


def _score(layer: AttentionLayer, q_d: Tensor, k_d: Tensor) -> Tensor:
    return layer.score(q_d.view(1, 1, 1, -1), k_d.view(1, 1, 1, -1)).view(())


def _weights(layer: AttentionLayer, scores_T: Tensor, positions_T: Tensor, t: int) -> Tensor:
    """The weights of one query over all keys; those it cannot see are left out of the row, not masked."""
    mask, weigh = layer.parts.mask, layer.parts.weigh
    seen_T = mask.visible(positions_T[t : t + 1], positions_T)[0]
    entering = seen_T if mask.where == "before" else torch.ones_like(seen_T)
    weights = torch.zeros_like(scores_T)
    if entering.any():
        row_n = scores_T[entering].view(1, 1, 1, -1)
        weights[entering] = weigh(row_n, torch.ones_like(row_n, dtype=torch.bool)).view(-1)
    weights = weights * seen_T
    return weights / weights.sum() if mask.where == "renormalised" else weights
