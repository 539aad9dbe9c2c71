"""From two arrays of measurements to the table of differences a verdict rests on.

Shapes: S seeds, N documents. Row s of both arrays is the run with the same seed; column n the same document.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.errors import RequestError
from attnlab.verdict.crossed import Crossed, crossed_error

Array = NDArray[np.float64]

# Losses come from 32-bit arithmetic: differences below this share of the loss are rounding.
ROUNDING = 1e-7


@dataclass(frozen=True)
class Pairs:
    """The differences arm − baseline of all pairs of runs that finished."""

    differences_SN: Array
    weights_N: Array  # sums to one
    planned: int  # pairs, had every run finished
    arm_diverged: int
    baseline_diverged: int
    marked_diverged: int
    seeds_do_nothing: bool  # every run of each arm gave the very same numbers
    right_or_wrong: bool  # all values are 0 or 1
    rounding: float

    @property
    def seeds(self) -> int:
        return len(self.differences_SN)

    @property
    def documents(self) -> int:
        return int(self.differences_SN.shape[1])

    @property
    def effective_documents(self) -> float:
        """As many documents of equal weight would give as sure a mean."""
        return 1 / float((self.weights_N**2).sum())

    @property
    def lost(self) -> int:
        """Pairs that are not in the table."""
        return self.planned - self.seeds

    @property
    def identical(self) -> bool:
        return bool((self.differences_SN == 0).all())

    @property
    def effect(self) -> float:
        return float((self.differences_SN @ self.weights_N).mean())

    def crossed(self) -> Crossed:
        """Effect and error, guarded against a variance too small to be believed."""
        raw = crossed_error(self.differences_SN, self.weights_N)
        least = np.asarray(self.rounding**2)
        if self.right_or_wrong and self.documents > 1:
            # Ten items on which nobody differs do not show that nobody ever differs: count one that does.
            least = np.maximum(least, (self.weights_N**2).sum() ** 2)
        document_variance = np.maximum(raw.document_variance, least)
        return Crossed(
            raw.effect,
            raw.seed_variance,
            document_variance,
            raw.rest_variance,
            raw.seed_dof,
            raw.document_dof,
        )


def pair(
    baseline: ArrayLike,
    arm: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    diverged: ArrayLike | None = None,
    name: str = "the arm",
) -> Pairs:
    """Subtract run by run and document by document; runs with a value that is not finite leave the pair."""
    baseline_SN, arm_SN = table(baseline, "the baseline"), table(arm, name)
    if baseline_SN.shape != arm_SN.shape:
        raise RequestError(
            f"{name} has {_size(arm_SN)} and the baseline {_size(baseline_SN)}: "
            "both need the same seeds (rows) and the same documents (columns), in the same order"
        )
    seeds, documents = baseline_SN.shape
    baseline_lost = ~np.isfinite(baseline_SN).all(axis=1)
    arm_lost = ~np.isfinite(arm_SN).all(axis=1)
    marked = _mask(diverged, seeds)
    kept = ~(baseline_lost | arm_lost | marked)
    b_SN, a_SN = baseline_SN[kept], arm_SN[kept]
    same_rows = kept.sum() > 1 and bool((b_SN == b_SN[:1]).all() and (a_SN == a_SN[:1]).all())
    largest = max(float(np.abs(b_SN).mean()), float(np.abs(a_SN).mean())) if kept.any() else 0.0
    return Pairs(
        differences_SN=a_SN - b_SN,
        weights_N=shares(weights, documents),
        planned=seeds,
        arm_diverged=int(arm_lost.sum()),
        baseline_diverged=int(baseline_lost.sum()),
        marked_diverged=int((marked & ~arm_lost & ~baseline_lost).sum()),
        seeds_do_nothing=same_rows,
        right_or_wrong=bool(np.isin(b_SN, (0, 1)).all() and np.isin(a_SN, (0, 1)).all()),
        rounding=max(ROUNDING * largest, float(np.finfo(np.float64).tiny) ** 0.25),
    )


def table(values: ArrayLike, name: str) -> Array:
    """The measurements as (seeds, documents), or an error that says what they are instead."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RequestError(
            f"{name} must be numbers, a row a seed and a column a document, each row as long: {error}"
        ) from error
    if array.ndim != 2 or 0 in array.shape:
        hint = "; one number a run is reshape(-1, 1), one run is reshape(1, -1)" if array.ndim == 1 else ""
        raise RequestError(
            f"{name} must have the shape (seeds, documents), at least one of each, not {array.shape}{hint}"
        )
    return array


def shares(weights: ArrayLike | None, documents: int) -> Array:
    """Each document's part of the mean: its tokens over all tokens, or the same for all."""
    if weights is None:
        return np.full(documents, 1 / documents)
    weights_N = np.asarray(weights, dtype=np.float64)
    if weights_N.shape != (documents,):
        raise RequestError(
            f"weights must be one number a document, {documents} in all, not of shape {weights_N.shape}"
        )
    wrong = ~np.isfinite(weights_N) | (weights_N < 0)
    if wrong.any():
        place = int(wrong.argmax())
        raise RequestError(f"weight {place} is {weights_N[place]}: weights are finite and not below 0")
    if weights_N.sum() == 0:
        raise RequestError("all weights are 0: at least one document must count")
    return np.asarray(weights_N / weights_N.sum())


def _mask(diverged: ArrayLike | None, seeds: int) -> NDArray[np.bool_]:
    if diverged is None:
        return np.zeros(seeds, dtype=bool)
    mask = np.asarray(diverged)
    if mask.shape != (seeds,) or mask.dtype != bool:
        raise RequestError(
            f"diverged must be {seeds} of True or False, one a seed, not {mask.dtype} of shape {mask.shape}"
        )
    return mask


def _size(array_SN: Array) -> str:
    return f"{array_SN.shape[0]} seeds × {array_SN.shape[1]} documents"
