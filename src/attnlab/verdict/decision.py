"""From effects and their errors to the four words, for any number of arms at once.

The last axis is the arms that share a baseline; axes before it are independent studies (the calibration
judges thousands at once, with this very code). Holm's steps guard the table: the chance that it holds any
wrong "better" or "worse" is alpha, and likewise for any wrong "equivalent".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnlab.verdict import distributions as stats
from attnlab.verdict.looks import Plan

Array = NDArray[np.float64]

UNDECIDED, LOWER, HIGHER, EQUIVALENT = 0, 1, 2, 3


@dataclass(frozen=True)
class Decision:
    """Per arm: the word as a code, the interval behind it, and p adjusted for looks and arms."""

    code: NDArray[np.int64]
    low: Array
    high: Array
    p: Array
    p_equivalent: Array


def decide(effect: Array, error: Array, dof: Array, *, margin: float, look: int, plan: Plan) -> Decision:
    """Judge arms against their baseline; `error` is the standard error and is above zero."""
    p = 2 * stats.t.sf(np.abs(effect) / error, dof)
    level, adjusted = _holm(p, look, plan, sides=2)
    reach = stats.t.isf(level / 2, dof) * error
    # Two one-sided tests: the effect is above -margin, and it is below +margin.
    p_inside = stats.t.sf((margin - np.abs(effect)) / error, dof)
    level_inside, adjusted_inside = _holm(p_inside, look, plan, sides=1)
    differs = p <= level
    code = np.where(p_inside <= level_inside, EQUIVALENT, UNDECIDED)
    code = np.where(differs, np.where(effect < 0, LOWER, HIGHER), code)
    return Decision(code, effect - reach, effect + reach, adjusted, adjusted_inside)


def _holm(p: Array, look: int, plan: Plan, *, sides: int) -> tuple[Array, Array]:
    """The level each arm is held to, and its adjusted p: p within its level if and only if adjusted <= alpha.

    Holm goes from the smallest p up, at alpha/m, alpha/(m-1), …, and stops at the first that fails; all
    arms from there on keep that step's level, so that the interval of an undecided arm holds zero.
    """
    arms = p.shape[-1]
    order = np.argsort(p, axis=-1)
    ranked = np.take_along_axis(p, order, -1)
    steps = np.array(
        [plan.level(look, alpha=plan.alpha / (arms - rank), sides=sides) for rank in range(arms)]
    )
    passed = np.logical_and.accumulate(ranked <= steps, axis=-1)
    reached = np.minimum(passed.sum(-1, keepdims=True), arms - 1)
    ranked_level = np.where(passed, steps, steps[reached])
    total = plan.sequential_p(ranked, look, sides=sides)
    ranked_adjusted = np.maximum.accumulate(np.minimum(total * (arms - np.arange(arms)), 1.0), axis=-1)
    level, adjusted = np.empty_like(p), np.empty_like(p)
    np.put_along_axis(level, order, ranked_level, -1)
    np.put_along_axis(adjusted, order, ranked_adjusted, -1)
    return level, adjusted
