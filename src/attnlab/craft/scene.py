"""A handful of keys and values, and what attention makes of them: `softmax(scale · K q) V`.

Shapes: n keys and values, d width of a key, m width of a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.errors import RequestError

Array = NDArray[np.float64]
MOST = 64  # keys; more than that is not done by hand


@dataclass(frozen=True)
class Scene:
    """Keys and values to attend to. Scores are `scale · K q`; 1 unless given, as when done by hand."""

    keys: Sequence[Sequence[float]]
    values: Sequence[Sequence[float]]
    scale: float = 1.0

    def __post_init__(self) -> None:
        K_nd, V_nm = table("keys", self.keys), table("values", self.values)
        if len(K_nd) != len(V_nm):
            raise RequestError(f"{len(K_nd)} keys and {len(V_nm)} values: each key has one value")
        if not 0 < self.scale < float("inf"):
            raise RequestError(f"the scale is {self.scale!r}: a finite number above 0 is wanted")
        object.__setattr__(self, "keys", tuple(map(tuple, K_nd.tolist())))
        object.__setattr__(self, "values", tuple(map(tuple, V_nm.tolist())))

    @cached_property
    def K_nd(self) -> Array:
        """The keys as scores see them, the scale included."""
        return self.scale * np.asarray(self.keys, dtype=float)

    @cached_property
    def V_nm(self) -> Array:
        return np.asarray(self.values, dtype=float)

    @property
    def size(self) -> int:
        return len(self.keys)

    def scores(self, q_d: ArrayLike) -> Array:
        scores_n: Array = self.K_nd @ self.query(q_d)
        return scores_n

    def weights(self, q_d: ArrayLike) -> Array:
        """The softmax of the scores."""
        return softmax(self.scores(q_d))

    def output(self, q_d: ArrayLike) -> Array:
        out_m: Array = self.weights(q_d) @ self.V_nm
        return out_m

    def query(self, q_d: ArrayLike) -> Array:
        """The numbers of a query, as many as a key has."""
        return vector("a query", q_d, self.K_nd.shape[1], "as the keys do")

    def index(self, i: int) -> int:
        """The number of a key, or an error that says which there are."""
        if not 0 <= i < self.size:
            raise RequestError(f"there is no key {i}: they are numbered from 0 to {self.size - 1}")
        return i

    def with_key(self, i: int, k_d: ArrayLike) -> Scene:
        """The same scene with another key in one place."""
        keys = list(self.keys)
        keys[self.index(i)] = tuple(vector("a key", k_d, self.K_nd.shape[1], "as the others do").tolist())
        return Scene(keys, self.values, self.scale)


def softmax(scores: Array) -> Array:
    """Over the last axis; the largest score is taken off first, so that nothing overflows."""
    weights: Array = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def table(what: str, rows: Any) -> Array:
    """Rows of numbers, all of one length."""
    rows = list(rows)
    if not rows:
        raise RequestError(f"no {what} are given: at least one is needed")
    if len(rows) > MOST:
        raise RequestError(f"{len(rows)} {what}: by hand, up to {MOST} are taken")
    widths = {np.size(row) for row in rows}
    if len(widths) > 1:
        raise RequestError(f"the {what} are not of one length: {', '.join(map(str, sorted(widths)))}")
    return np.stack([vector(f"row {i} of the {what}", row) for i, row in enumerate(rows)])


def vector(what: str, numbers: ArrayLike, width: int | None = None, why: str = "") -> Array:
    """Finite numbers in a row, as many as are wanted."""
    try:
        found = np.asarray(numbers, dtype=float).reshape(-1)
    except (TypeError, ValueError):
        raise RequestError(f"{what} is {numbers!r}: numbers are wanted") from None
    if not found.size:
        raise RequestError(f"{what} holds no number")
    if width is not None and found.size != width:
        raise RequestError(f"{what} has {width} numbers, {why}: not {found.size}")
    if not np.isfinite(found).all() or np.abs(found).max() > 1e9:
        raise RequestError(f"{what} holds {found[~(np.abs(found) <= 1e9)][0]!s}: numbers up to 1e9 are taken")
    return found


# Four keys and values in three dimensions, to select, to average and to copy from.
FOUR = Scene(
    keys=((0.47, 0.65, 0.60), (0.64, 0.50, -0.59), (-0.03, -0.48, -0.88), (0.43, -0.83, 0.35)),
    values=((-0.07, -0.88, 0.47), (0.37, -0.93, -0.07), (-0.25, -0.75, 0.61), (0.94, 0.20, 0.28)),
)
# Four keys of which the query (-2, 1, 1) likes the first one best.
BEST_KEY = Scene(
    keys=((0, 1, 2), (1, 1, 2), (-1, 1, -2), (0, -1, -2)),
    values=((3, 2, -4), (3, -2, 4), (3, 2, 0), (3, 2, 0)),
)
