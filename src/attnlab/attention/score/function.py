"""A score from a plain function, for trying one without writing a class.

    # my_scores.py
    @score_from
    def manhattan(q_BHTd, k_BHSd):
        return -(q_BHTd.unsqueeze(-2) - k_BHSd.unsqueeze(-3)).abs().sum(-1)

A declaration names it `my_scores.py:manhattan`.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attnlab.attention.score.score import Score, ScoreFunction


def score_from(function: ScoreFunction) -> type[Score]:
    """The score that `function(q_BHTd, k_BHSd) -> scores_BHTS` computes, as a part."""

    def call(self: Score, q_BHTd: Tensor, k_BHSd: Tensor) -> Tensor:
        return function(q_BHTd, k_BHSd)

    # The part is where the function was, so that `file.py:name` finds it and its file is in the fingerprint.
    place = {name: getattr(function, name) for name in ("__module__", "__qualname__", "__doc__")}
    made = type(getattr(function, "__name__", "function"), (Score,), {**place, "__call__": call})
    return dataclass(frozen=True, kw_only=True)(made)
