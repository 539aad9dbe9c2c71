"""The slow and readable oracle: attention one sequence, one head and one query at a time, as it is defined.

Every operator made of parts is held against it. It shares only the parts with the fast path, and asks them
about a single pair or a single row, with what is hidden really taken out.

Shapes: T tokens of one sequence, D model width, H heads, M maps, d head width, n the keys a query sees.
"""

from __future__ import annotations

from functools import singledispatch

import torch
from torch import Tensor

from attnlab.attention.core import Core
from attnlab.attention.mixer import MixerLayer
from attnlab.attention.operator import Attention, AttentionLayer
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
    q_MTd, k_MTd, v_MTd = _project_one_by_one(layer, x_TD, position)
    bias_HTT = position.bias(positions_T, positions_T)
    rows = []
    for t in range(len(x_TD)):
        scores_MT = torch.stack(
            [_scores(layer.core, q_Td[t], k_Td) for q_Td, k_Td in zip(q_MTd, k_MTd, strict=True)]
        )
        if bias_HTT is not None:
            scores_MT = scores_MT + torch.stack([bias_HTT[m % len(bias_HTT), t] for m in range(len(q_MTd))])
        weights_MT = weights_slowly(layer.core, layer.parts, scores_MT, t)
        mixed = [weights_T @ v_Td for weights_T, v_Td in zip(weights_MT, v_MTd, strict=True)]
        rows.append(layer.merge(torch.cat(heads_slowly(layer.core, mixed))))
    return torch.stack(rows)


@singledispatch
def maps_slowly(core: Core, x_Hd: list[Tensor], what: str) -> list[Tensor]:
    """What every map takes of the query, the key or the value (`what`) of every head."""
    return x_Hd


@singledispatch
def weights_slowly(core: Core, parts: Attention, scores_MT: Tensor, t: int) -> Tensor:
    """(M, T): the weights of one query."""
    return torch.stack([weigh_row(parts, scores_T, t) for scores_T in scores_MT])


@singledispatch
def heads_slowly(core: Core, mixed_Md: list[Tensor]) -> list[Tensor]:
    """What the maps of every head have mixed, as that head gives it."""
    return mixed_Md


def weigh_row(parts: Attention, scores_T: Tensor, t: int) -> Tensor:
    """The weights of one query over all keys; those it cannot see are left out of the row, not masked."""
    mask, positions_T = parts.mask, torch.arange(len(scores_T))
    seen_T = mask.visible(positions_T[t : t + 1], positions_T)[0]
    entering = seen_T if mask.where == "before" else torch.ones_like(seen_T)
    weights = torch.zeros_like(scores_T)
    if entering.any():
        row_n = scores_T[entering].view(1, 1, 1, -1)
        weights[entering] = parts.weigh(row_n, torch.ones_like(row_n, dtype=torch.bool)).view(-1)
    weights = weights * seen_T
    return weights / weights.sum() if mask.where == "renormalised" else weights


def _project_one_by_one(
    layer: AttentionLayer, x_TD: Tensor, position: PositionScheme
) -> tuple[Tensor, Tensor, Tensor]:
    """(M, T, d) each: one token at a time, every key and value head given to each query head of its group."""
    made: dict[str, list[Tensor]] = {"query": [], "key": [], "value": []}
    for t, x_D in enumerate(x_TD):
        parts = dict(zip(made, layer.project(x_D[None]), strict=True))
        heads = parts["query"].shape[1]
        for what, x_1Gd in parts.items():
            shared = [x_1Gd[0, h * x_1Gd.shape[1] // heads] for h in range(heads)]
            x_1M1d = torch.stack(maps_slowly(layer.core, shared, what))[None, :, None]
            made[what].append(x_1M1d if what == "value" else position.turn(x_1M1d, torch.tensor([t])))
    q, k, v = (torch.cat(tokens, dim=2)[0] for tokens in made.values())
    return q, k, v


def _scores(core: Core, q_d: Tensor, k_Td: Tensor) -> Tensor:
    return torch.stack([core.score(q_d.view(1, 1, 1, -1), k_d.view(1, 1, 1, -1)).view(()) for k_d in k_Td])
