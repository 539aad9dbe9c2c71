"""The output that comes nearest to a target: found by descent from many places, on every face of the keys'
hull.

Whether it is the nearest of all is another question; `floor` answers it.

Shapes: n keys, f those on a face, d their width, m width of a value, r dimensions that the keys span.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from attnlab.craft.floor import proved_floor
from attnlab.craft.polytope import TINY, Face, centred, face_of, nearest_in_hull, rank_of, size_of
from attnlab.craft.scene import Array, Scene, softmax

_EXACT = 1e-9  # an output this near is the target itself
_MOST_KEYS = 12  # for more, only the corners, the edges and the whole of the keys' hull are gone through


@dataclass(frozen=True)
class Nearest:
    """The nearest output that was found; where its face is not the whole hull, the limit of a growing
    query."""

    query_d: Array
    face: Face
    weights_n: Array
    distance: float
    floor: float  # proved: no query's output is nearer than this
    hull: float  # how far the target is from the hull of the values; part of the proof where it is above zero


def nearest_output(scene: Scene, target_m: Array, gap: float = 0.02) -> Nearest:
    """The nearest output to a target, and a floor that is lower by that share at most, if it can be
    proved."""
    _, hull = nearest_in_hull(scene.V_nm, target_m)
    found = [_descended(scene, target_m, face) for face in faces(scene.K_nd)]
    least = min(distance for distance, *_ in found)
    # Among equals a finite query is preferred, then the largest face: the least that has to grow.
    near = [one for one in found if one[0] <= least + max(_EXACT, 1e-6 * least)]
    distance, query_d, face, weights_n = max(near, key=lambda one: len(one[2].members))
    if distance <= max(_EXACT, hull + 1e-7):
        floor = hull
    else:
        floor = max(hull, _proved(scene, target_m, distance, gap * distance))
    return Nearest(query_d, face, weights_n, distance if distance > _EXACT else 0.0, floor, hull)


def _proved(scene: Scene, target_m: Array, distance: float, gap: float) -> float:
    if scene.size > _MOST_KEYS:
        return 0.0
    return proved_floor(scene.K_nd, scene.V_nm - target_m, distance, gap)


def faces(keys_nd: Array) -> Iterator[Face]:
    """Every face of the keys' hull, the whole one first."""
    n, rank = len(keys_nd), rank_of(keys_nd)
    most = rank if n <= _MOST_KEYS else min(rank, 2)
    whole = Face(tuple(range(n)), np.zeros(keys_nd.shape[1]), None)
    seen = {whole.members}
    yield whole
    for count in range(1, most + 1):
        for chosen in itertools.combinations(range(n), count):
            face = face_of(keys_nd, chosen)
            if face.members not in seen:
                seen.add(face.members)
                yield face


def _descended(scene: Scene, target_m: Array, face: Face) -> tuple[float, Array, Face, Array]:
    """The nearest output of a finite query that looks at the keys on a face only."""
    on = list(face.members)
    K_fd, V_fm = centred(scene.K_nd[on]), scene.V_nm[on]
    _, sizes, rows = np.linalg.svd(K_fd, full_matrices=False)
    basis_dr = rows[sizes > TINY * size_of(K_fd) * len(K_fd)].T
    Z_fr = K_fd @ basis_dr

    def apart(z_r: Array) -> Array:
        return softmax(Z_fr @ z_r) @ V_fm - target_m

    def slope(z_r: Array) -> Array:
        w_f = softmax(Z_fr @ z_r)
        return (V_fm - w_f @ V_fm).T @ (w_f[:, None] * Z_fr)

    best_r = np.zeros(basis_dr.shape[1])
    if best_r.size:
        starts = [best_r, *(step * z for z in Z_fr / size_of(Z_fr) for step in (1.0, 4.0))]
        tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "max_nfev": 200}
        ends = [least_squares(apart, start, jac=slope, **tight) for start in starts]
        best_r = min(ends, key=lambda end: float(end.cost)).x
    weights_n = np.zeros(scene.size)
    weights_n[on] = softmax(Z_fr @ best_r)
    return float(np.linalg.norm(apart(best_r))), basis_dr @ best_r, face, weights_n
