"""What a frozen body makes of texts, worked out once, so that only a head is left to train.

Which vector of a text the head looks at differs from model to model: a pooled one, the first token's, the
last one's. It is found out by trying, on a few texts, which of them gives the whole model's logits.

Shapes: B texts, T tokens, D model width, C labels, S texts of a split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from attnlab.adapt.answers import by_length
from attnlab.adapt.tuned import TunedModel
from attnlab.adapt.views import FeatureView, TextPiece, TextView

_PROBE = 8  # texts that are tried
_SAME = 1e-4  # of the largest logit: rounding in fp32

Taken = Callable[[Tensor, Tensor], Tensor]  # what goes into the head, and the mask, to one row per text


def _whole(given: Tensor, mask_BT: Tensor) -> Tensor:
    return given


def _first(given_BTD: Tensor, mask_BT: Tensor) -> Tensor:
    return given_BTD[:, :1]


def _last(given_BTD: Tensor, mask_BT: Tensor) -> Tensor:
    return given_BTD[torch.arange(len(given_BTD)), mask_BT.sum(1) - 1]


@torch.no_grad()
def frozen_features(model: TunedModel, views: Sequence[TextView]) -> list[FeatureView] | None:
    """Every split as features; None where the head is no function of one vector of a text."""
    model.eval()
    try:
        taken = _what_the_head_takes(model, views[0])
    except LookupError:
        return None
    return (
        None if taken is None else [FeatureView(view.texts, _features(model, view, taken)) for view in views]
    )


def _what_the_head_takes(model: TunedModel, view: TextView) -> Taken | None:
    order = np.argsort(view.texts.lengths, kind="stable")
    piece = view.piece(order[:: max(1, len(order) // _PROBE)])
    logits_BC, given = _caught(model, piece)
    for taken in (_whole,) if given.dim() == 2 else (_first, _last):
        try:
            again_BC = model.answer_from(taken(given, piece.mask_BT))
        except (IndexError, RuntimeError):  # not of a shape that this head takes
            continue
        if again_BC.shape == logits_BC.shape:
            gap = (again_BC - logits_BC).abs().max() / logits_BC.abs().max()
            if gap < _SAME:
                return taken
    return None


def _caught(model: TunedModel, piece: TextPiece) -> tuple[Tensor, Tensor]:
    """The logits, and what went into the head for them."""
    seen: list[Tensor] = []
    hook = model.head.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    try:
        logits_BC = piece.logits(model)
    finally:
        hook.remove()
    return logits_BC, seen[0]


def _features(model: TunedModel, view: TextView, taken: Taken) -> Tensor:
    rows_of: list[Tensor] = []
    order: list[int] = []
    for rows in by_length(view.texts):
        piece = view.piece(rows)
        rows_of.append(taken(_caught(model, piece)[1], piece.mask_BT).cpu())
        order += rows.tolist()
    return torch.cat(rows_of)[torch.from_numpy(np.argsort(order))]
