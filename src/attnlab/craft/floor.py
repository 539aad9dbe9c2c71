"""How near outputs can come to a target at best: a distance that is proved, by branch and bound.

Among the scores of one query, those of keys that depend on one another do too: Σ a s = 0 wherever Σ a k = 0
and Σ a = 0, and this also holds for what queries tend to. So we keep boxes of scores, each relative to the
best key's (from minus infinity to zero), narrow them by these relations, and leave out those in which
nothing comes nearer than what was found already. What remains is halved. When no box remains, nothing was
overlooked.

Shapes: b boxes, n keys, m width of a value.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnlab.craft.polytope import TINY, centred, rank_of, size_of
from attnlab.craft.scene import Array

Chosen = NDArray[np.bool_]

_LOOSE = 1e-9  # relations are kept up to this, so that rounding never narrows a box too far
Relation = tuple[tuple[int, ...], Array]  # keys, and the factors with which their scores add up to zero


@dataclass(frozen=True)
class Boxes:
    """Bounds of the scores relative to the best key's, where that key is one and the same."""

    low_bn: Array
    high_bn: Array

    def __len__(self) -> int:
        return len(self.low_bn)

    def where(self, kept_b: Chosen) -> Boxes:
        return Boxes(self.low_bn[kept_b], self.high_bn[kept_b])

    def halved(self) -> Boxes:
        """Each in two, across where weights differ most."""
        low_bn, high_bn = np.exp(self.low_bn), np.exp(self.high_bn)
        rows, widest_b = np.arange(len(self)), np.argmax(high_bn - low_bn, axis=1)
        middle_b = np.log((low_bn[rows, widest_b] + high_bn[rows, widest_b]) / 2)
        upper_low, lower_high = self.low_bn.copy(), self.high_bn.copy()
        upper_low[rows, widest_b] = lower_high[rows, widest_b] = middle_b
        return Boxes(np.r_[self.low_bn, upper_low], np.r_[lower_high, self.high_bn])

    def narrowed(self, relations: Sequence[Relation]) -> Boxes:
        """What the relations among scores leave of each box; those left with nothing are gone."""
        low_bn, high_bn = self.low_bn.copy(), self.high_bn.copy()
        for keys, factors in relations:
            for i, j in enumerate(keys):
                least_b, most_b = np.zeros(len(low_bn)), np.zeros(len(low_bn))
                for k, factor in zip(keys, -factors / factors[i], strict=True):
                    if k != j:
                        ends = factor * low_bn[:, k], factor * high_bn[:, k]
                        least_b += ends[0] if factor > 0 else ends[1]
                        most_b += ends[1] if factor > 0 else ends[0]
                loose_b = _LOOSE * (1 + np.abs(np.nan_to_num(least_b, posinf=0.0, neginf=0.0)))
                low_bn[:, j] = np.maximum(low_bn[:, j], least_b - loose_b)
                high_bn[:, j] = np.minimum(high_bn[:, j], most_b + loose_b)
        return Boxes(low_bn, high_bn).where(np.all(low_bn <= high_bn, axis=1))

    def bounds(self, apart_nm: Array) -> Array:
        """For each box a distance that no output in it gets below; `apart` are the values less the target.

        Seen along one direction, the least weighted mean of the values gives the upper end of its range to
        the lowest of them and the lower end to the others; which, is found by going through them in order.
        """
        low_bn, high_bn = np.exp(self.low_bn), np.exp(self.high_bn)
        middle_bn = (low_bn + high_bn) / 2
        out_bm = (middle_bn / middle_bn.sum(1, keepdims=True)) @ apart_nm
        length_b1 = np.linalg.norm(out_bm, axis=1, keepdims=True)
        along_bn = (out_bm / np.maximum(length_b1, 1e-300)) @ apart_nm.T
        order_bn = np.argsort(along_bn, axis=1)
        a_bn, l_bn, h_bn = (np.take_along_axis(x, order_bn, 1) for x in (along_bn, low_bn, high_bn))
        least_sums, most_sums = (np.cumsum(x, axis=1) for x in (h_bn * a_bn, h_bn))
        rest_sums, rest_most = (x[:, ::-1].cumsum(1)[:, ::-1] - x for x in (l_bn * a_bn, l_bn))
        means_bn = (least_sums + rest_sums) / np.maximum(most_sums + rest_most, 1e-300)
        found_b: Array = np.maximum(means_bn.min(1), 0.0)
        return found_b


def proved_floor(keys_nd: Array, apart_nm: Array, best: float, gap: float, most: int = 60_000) -> float:
    """A distance that no query gets below: `best - gap`, unless more than so many boxes at a time would be
    needed to prove it; then less, and as much as is proved."""
    relations, n = relations_among(keys_nd), len(keys_nd)
    floor = best - gap
    for i in range(n):  # the key that scores best
        low_bn, high_bn = np.full((1, n), -np.inf), np.zeros((1, n))
        low_bn[0, i] = 0.0
        boxes = Boxes(low_bn, high_bn)
        while len(boxes):
            boxes = boxes.narrowed(relations).narrowed(relations)
            bounds_b = boxes.bounds(apart_nm)
            open_b = bounds_b < floor
            if open_b.sum() > most:
                floor = float(bounds_b.min())
                break
            boxes = boxes.where(open_b).halved()
    return max(0.0, floor)


def relations_among(keys_nd: Array) -> list[Relation]:
    """Every smallest set of keys that depend on one another, with the factors of their dependence."""
    n, rank = len(keys_nd), rank_of(keys_nd)
    lifted_nd = np.c_[centred(keys_nd) / size_of(centred(keys_nd)), np.ones(n)]
    found: dict[tuple[int, ...], Array] = {}
    for chosen in itertools.combinations(range(n), min(n, rank + 2)):
        _, sizes, rows = np.linalg.svd(lifted_nd[list(chosen)].T)
        if (sizes > TINY * n).sum() != len(chosen) - 1:
            continue
        factors = rows[-1]
        used = np.abs(factors) > TINY * n
        found[tuple(np.array(chosen)[used].tolist())] = factors[used]
    return list(found.items())
