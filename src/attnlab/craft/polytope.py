"""Where points lie to one another: the nearest point of a hull, and the faces of one.

Everything here is decided by one small exact problem, the shortest point of a hull, which non-negative least
squares solves in finitely many steps; its solution is the proof of what is said.

Shapes: n points, d coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from attnlab.craft.scene import Array

TINY = 1e-9  # relative to the size of the points: closer than that counts as the same place


def shortest(points_nd: Array) -> Array:
    """The mixture (n numbers from 0 up that add up to one) of the points that is nearest to the origin."""
    n = len(points_nd)
    largest = float(np.abs(points_nd).max(initial=0.0)) or 1.0
    # |A x|² + (1 - Σx)² is least at a multiple of the mixture that is sought.
    A, b = np.vstack([points_nd.T / largest, np.ones(n)]), np.r_[np.zeros(points_nd.shape[1]), 1.0]
    x_n, _ = nnls(A, b)
    used = x_n > 0
    polished = np.linalg.lstsq(A[:, used], b)[0]  # nnls works with squares, and loses half of the digits
    if (polished > 0).all():
        x_n[used] = polished
    mixture_n: Array = x_n / x_n.sum()
    return mixture_n


def nearest_in_hull(points_nd: Array, to_d: Array) -> tuple[Array, float]:
    """The mixture of the points that is nearest to a place, and how far it is."""
    mixture_n = shortest(points_nd - to_d)
    distance = float(np.linalg.norm(mixture_n @ points_nd - to_d))
    return mixture_n, distance if distance > TINY * size_of(points_nd - to_d) else 0.0


@dataclass(frozen=True)
class Face:
    """The smallest face of the keys' hull that holds some chosen keys."""

    members: tuple[int, ...]  # the keys on it, the chosen ones among them
    direction: Array  # along it, members score alike and all others less: by 1 at least
    witness: Array | None  # where there are members that were not chosen: why one cannot do without them

    @property
    def margin(self) -> float:
        """How much less the best of the others scores, per unit of length."""
        length = float(np.linalg.norm(self.direction))
        return 1 / length if length else float("inf")


def face_of(keys_nd: Array, chosen: Sequence[int]) -> Face:
    """The smallest face with the chosen keys on it.

    A direction that favours them all alike is orthogonal to the flat through them. Seen along that flat they
    are one point; the others can be kept below it exactly if it is no mixture of theirs (Gordan). Where it is
    one, the keys in the mixture belong to the face as well, and we look again.
    """
    members, witness = sorted(set(chosen)), None
    limit = TINY * size_of(keys_nd - keys_nd.mean(0))
    while True:
        others = [j for j in range(len(keys_nd)) if j not in members]
        across = _complement(keys_nd[members[1:]] - keys_nd[members[0]], keys_nd.shape[1], limit)
        if not others:
            return Face(tuple(members), np.zeros(keys_nd.shape[1]), witness)
        behind = (keys_nd[members[0]] - keys_nd[others]) @ across
        mixture = shortest(behind)
        nearest = mixture @ behind
        length = float(np.linalg.norm(nearest))
        if length > limit:
            return Face(tuple(members), across @ nearest / length**2, witness)
        found = np.zeros(len(keys_nd))
        found[others] = mixture
        witness = found if witness is None else witness
        members = sorted({*members, *(j for j in others if found[j] > TINY)})


def _complement(along_kd: Array, width: int, limit: float) -> Array:
    """An orthonormal basis (as columns) of all that is orthogonal to some directions."""
    if not len(along_kd):
        return np.eye(width)
    _, sizes, rows = np.linalg.svd(along_kd)
    across: Array = rows[int((sizes > limit).sum()) :].T
    return across


def centred(points_nd: Array) -> Array:
    shifted: Array = points_nd - points_nd.mean(0)
    return shifted


def size_of(points_nd: Array) -> float:
    return float(np.abs(points_nd).max(initial=0.0)) or 1.0


def rank_of(points_nd: Array) -> int:
    """In how many dimensions the points lie apart."""
    shifted = centred(points_nd)
    return int(np.linalg.matrix_rank(shifted, tol=TINY * size_of(shifted) * max(shifted.shape)))
